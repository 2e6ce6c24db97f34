//! Every refusal in one table: which status, which stable code, which words.
//!
//! Public text is kept apart from internal text: what a store says about itself is logged and never answered.
//! No handler picks a status of its own for an error.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use giga_api::wire;
pub use giga_api::wire::ProblemCode as Code;
use giga_coordinator::{Error, Sight};
use giga_domain::flag::FlagError;
use giga_domain::manifest::ManifestError;
use giga_domain::{JobId, Refusal, TalkError};
use giga_ports::{BlobError, EffectsError, StoreError};

/// Each has one status and one title for ever.
const fn row(code: Code) -> (StatusCode, &'static str) {
    match code {
        Code::InvalidRequest => (StatusCode::BAD_REQUEST, "Invalid request"),
        Code::InvalidManifest => (StatusCode::BAD_REQUEST, "Invalid manifest"),
        Code::Unauthenticated => (StatusCode::UNAUTHORIZED, "Not authenticated"),
        Code::Forbidden => (StatusCode::FORBIDDEN, "Not allowed"),
        Code::NotFound => (StatusCode::NOT_FOUND, "Not found"),
        Code::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "Method not allowed"),
        Code::RequestTimeout => (StatusCode::REQUEST_TIMEOUT, "Request too slow"),
        Code::Fenced => (StatusCode::CONFLICT, "The lease is not held any more"),
        Code::IllegalTransition => (StatusCode::CONFLICT, "Not from this stage"),
        Code::ResultMismatch => (StatusCode::CONFLICT, "Another result than was looked at"),
        Code::UnseenChanges => (StatusCode::CONFLICT, "The diff does not show everything"),
        Code::NotYours => (StatusCode::CONFLICT, "Not yours to take"),
        Code::QuestionClosed => (StatusCode::CONFLICT, "The question is not open"),
        Code::LogGap => (StatusCode::CONFLICT, "Log offset gap"),
        Code::IdempotencyConflict => (StatusCode::CONFLICT, "Idempotency key used for something else"),
        Code::FactoryExists => (StatusCode::CONFLICT, "Factory already enrolled"),
        Code::NotExpected => (StatusCode::CONFLICT, "The pool does not expect it"),
        Code::PoolInUse => (StatusCode::CONFLICT, "The pool has factories"),
        Code::FactoryInUse => (StatusCode::CONFLICT, "Another process is this factory"),
        Code::NoHeartbeat => (StatusCode::CONFLICT, "No heartbeat yet"),
        Code::RepoOwned => (StatusCode::CONFLICT, "Another product owns the repository"),
        Code::RevMismatch => (StatusCode::PRECONDITION_FAILED, "Changed in the meantime"),
        Code::PayloadTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Body too large"),
        Code::RangeNotSatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, "No such bytes"),
        Code::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Unsupported media type"),
        Code::Unroutable => (StatusCode::UNPROCESSABLE_ENTITY, "No factory could run it"),
        Code::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, "Too many requests"),
        Code::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "Internal error"),
        Code::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "Unavailable"),
        Code::StorageFull => (StatusCode::INSUFFICIENT_STORAGE, "No room left"),
        Code::NoSecret => (StatusCode::CONFLICT, "No such secret"),
        Code::SecretKey => (StatusCode::CONFLICT, "Secrets cannot be opened"),
    }
}

pub(crate) const fn status(code: Code) -> StatusCode {
    row(code).0
}

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    body: Box<wire::Problem>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let (status, title) = row(code);
        let body = wire::Problem {
            title: title.to_owned(),
            status: status.as_u16(),
            code,
            detail: detail.into(),
            ..wire::Problem::default()
        };
        let retry_after = matches!(code, Code::Unavailable).then_some(Duration::from_secs(1));
        Self { code, body: Box::new(body), retry_after }
    }

    /// One field, header or parameter was wrong; the message says what would be right.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let (field, message) = (field.into(), message.into());
        let mut problem = Self::new(Code::InvalidRequest, format!("{field}: {message}"));
        problem.body.errors.push(wire::FieldError { field, line: None, message });
        problem
    }

    /// The same about a part of what was sent: `deps[0]` of `jobs[3]` is `jobs[3].deps[0]`.
    pub(crate) fn within(mut self, part: &str) -> Self {
        for error in &mut self.body.errors {
            let own = std::mem::take(&mut error.field);
            error.field = if own.is_empty() { part.to_owned() } else { format!("{part}.{own}") };
        }
        self.body.detail = match self.body.errors.as_slice() {
            [only] if self.code == Code::InvalidRequest => format!("{}: {}", only.field, only.message),
            _ => format!("{part}: {}", self.body.detail),
        };
        self
    }

    /// The same, about one field of what was sent; the code stays.
    fn at(mut self, field: String) -> Self {
        let detail = std::mem::take(&mut self.body.detail);
        // Where it came alone it named the field itself.
        let own = field.rsplit('.').next().map(|own| format!("{own}: ")).unwrap_or_default();
        let message = detail.strip_prefix(&own).unwrap_or(&detail).to_owned();
        self.body.detail = format!("{field}: {message}");
        self.body.errors.push(wire::FieldError { field, line: None, message });
        self
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, detail)
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(Code::Unauthenticated, detail)
    }

    /// The same words whether the job does not exist or is none of the caller's business.
    pub(crate) fn no_job(id: JobId) -> Self {
        Self::new(Code::NotFound, format!("there is no job {id}"))
    }

    pub(crate) fn no_factory(id: &giga_domain::FactoryId) -> Self {
        Self::new(Code::NotFound, format!("there is no factory {id}"))
    }

    /// A refusal of a submit, in words that name nothing which the caller may not see.
    pub(crate) fn told_to(sight: &Sight, error: Error) -> Self {
        match error {
            Error::ForeignRepo(foreign) => Self::new(Code::RepoOwned, foreign.told_to(sight)),
            Error::At { field, error } => Self::told_to(sight, *error).at(field),
            other => other.into(),
        }
    }

    /// Something that should hold did not; the text is for the log only.
    pub(crate) fn internal(text: &str) -> Self {
        tracing::error!(error = text, "a request failed");
        Self::new(Code::Internal, "something went wrong inside the coordinator; its log says what")
    }

    /// The caller may come again after that.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(Code::TooManyRequests, detail) }
    }

    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.body.detail
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = *self.body;
        body.retry_after_ms = self.retry_after.map(|wait| whole_seconds(wait).saturating_mul(1_000));
        let mut response = (status(self.code), axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        if self.code == Code::Unauthenticated {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"gigafactory\""));
        }
        response
    }
}

/// Rounded up: never told to come too early.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_millis().div_ceil(1_000) as u64).max(1)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(error) => error.into(),
            Error::Manifest(error) => error.into(),
            Error::Invalid(problem) => Self::field(problem.field, problem.message),
            Error::Flag(error) => match error {
                FlagError::Unknown { .. } => Self::new(Code::NotFound, error.to_string()),
                FlagError::BadValue { .. } => Self::field("value", error.to_string()),
            },
            Error::ForeignRepo(_) => Self::new(Code::RepoOwned, error.to_string()),
            Error::Unroutable(_) => {
                let detail = format!("{error}; the flag `strict` refuses such jobs");
                Self::new(Code::Unroutable, detail)
            }
            Error::At { field, error } => Self::from(*error).at(field),
            Error::NotYours(_) => Self::new(Code::NotYours, error.to_string()),
            Error::Broker(broker) => {
                tracing::warn!(error = %broker, "the broker could not be reached");
                Self::new(Code::Unavailable, "the broker cannot be reached just now; try again")
            }
            Error::Blob(blob) => blob.into(),
            Error::Effects(effects) => effects.into(),
            Error::FactoryInUse { .. } => Self::new(Code::FactoryInUse, error.to_string()),
            Error::TooMany { reason, retry_after } => Self::too_many(reason, retry_after),
            Error::NoSecret { .. } => Self::new(Code::NoSecret, error.to_string()),
            Error::SecretKeys(_) => {
                tracing::error!(%error, "the key file for secrets cannot be used");
                Self::new(Code::SecretKey, error.to_string())
            }
            Error::NoHeartbeat(_) => Self::new(Code::NoHeartbeat, error.to_string()),
        }
    }
}

impl From<EffectsError> for Problem {
    fn from(error: EffectsError) -> Self {
        let text = error.to_string();
        match error {
            EffectsError::NoSuchTracker(..) => Self::field("tracker", text),
            EffectsError::NoSuchItem { .. } => Self::new(Code::NotFound, text),
            EffectsError::Malformed(_) => Self::field("item", text),
            // Its words are for the caller: they hold neither token nor address.
            EffectsError::Unreachable(_) => Self::new(Code::Unavailable, text),
        }
    }
}

impl From<BlobError> for Problem {
    fn from(error: BlobError) -> Self {
        match &error {
            BlobError::Gap { .. } => Self::new(Code::LogGap, error.to_string()),
            BlobError::TooLarge { .. } => Self::new(Code::PayloadTooLarge, error.to_string()),
            BlobError::NoRoom { .. } => {
                tracing::warn!(%error, "logs and artifacts are refused");
                Self::new(Code::StorageFull, error.to_string())
            }
            BlobError::Busy(_) => Self::too_many(error.to_string(), Duration::from_secs(1)),
            BlobError::BrokeOff(reason) => Self::field("body", reason.clone()),
            BlobError::NotFound(_) => Self::new(Code::NotFound, error.to_string()),
            BlobError::Unavailable { .. } => {
                tracing::error!(%error, "the blob store failed");
                Self::new(Code::Unavailable, "logs and artifacts cannot be reached; try again")
            }
        }
    }
}

impl From<ManifestError> for Problem {
    fn from(error: ManifestError) -> Self {
        let mut problem = Self::new(Code::InvalidManifest, error.to_string());
        let errors = error.problems.into_iter();
        problem.body.errors =
            errors.map(|p| wire::FieldError { field: p.field, line: p.line, message: p.message }).collect();
        problem
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::NoSuchJob(_)
            | StoreError::NoSuchFactory(_)
            | StoreError::NoSuchToken(_)
            | StoreError::NoSuchArtifact(_)
            | StoreError::NoSuchPool(_)
            | StoreError::NoSuchEffect(_) => Self::new(Code::NotFound, text),
            StoreError::Refused(refusal) => refusal.into(),
            StoreError::RevMismatch { .. } | StoreError::SecretChanged(_) => {
                Self::new(Code::RevMismatch, text)
            }
            StoreError::TooManySecrets(_) | StoreError::TooManyPools(_) => Self::field("name", text),
            StoreError::PoolInUse { .. } => Self::new(Code::PoolInUse, text),
            StoreError::NotExpected { .. } => Self::new(Code::NotExpected, text),
            StoreError::KeyReused { job, .. } => {
                let mut problem = Self::new(Code::IdempotencyConflict, text);
                problem.body.job_id = Some(job.to_string());
                problem
            }
            StoreError::UnknownDep(_) => {
                let mut problem = Self::new(Code::InvalidManifest, text.clone());
                problem.body.errors.push(wire::FieldError {
                    field: "deps".to_owned(),
                    line: None,
                    message: text,
                });
                problem
            }
            StoreError::UnknownParent(_) | StoreError::Cycle(_) => Self::new(Code::InvalidManifest, text),
            StoreError::TooDeep(_) | StoreError::TooManyChildren { .. } => {
                let remedy = "an admin can set how many with `giga product policy`";
                Self::new(Code::InvalidManifest, format!("{text}; {remedy}"))
            }
            StoreError::ParentClosed(..) => Self::new(Code::IllegalTransition, text),
            StoreError::TooManyWebhooks(_) => Self::field("productId", text),
            StoreError::RepoOwned { .. } => Self::new(Code::RepoOwned, text),
            StoreError::FactoryExists(_) => {
                let detail = format!("{text}; rotate its token, or deregister it first");
                Self::new(Code::FactoryExists, detail)
            }
            StoreError::Unavailable { .. } => {
                tracing::warn!(error = %text, "the store could not be reached");
                Self::new(Code::Unavailable, "the store cannot be reached just now; try again")
            }
            // Only the dispatcher has a term, and it does not speak HTTP.
            StoreError::Broken { .. } | StoreError::StaleTerm { .. } => Self::internal(&text),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let text = refusal.to_string();
        match refusal {
            Refusal::Fenced { current, stage, .. } => {
                let mut problem = Self::new(Code::Fenced, text);
                problem.body.lease_epoch = Some(current.0);
                problem.body.stage = Some(stage.into());
                problem
            }
            Refusal::Illegal { from, .. } => {
                let mut problem = Self::new(Code::IllegalTransition, text);
                problem.body.stage = Some(from.into());
                problem
            }
            Refusal::NotClaimable(_) => Self::new(Code::NotYours, text),
            Refusal::NotAReviewer(..) | Refusal::WeakerGate { .. } => Self::new(Code::Forbidden, text),
            Refusal::OtherCommit { .. } => Self::new(Code::ResultMismatch, text),
            Refusal::Talk(error) => match error {
                TalkError::NoSuchQuestion(_) | TalkError::WhichOne(_) => Self::field("question", text),
                TalkError::NotAnOption { .. } => Self::field("answer", text),
                TalkError::NothingOpen | TalkError::Answered { .. } | TalkError::Closed(_) => {
                    Self::new(Code::QuestionClosed, text)
                }
                TalkError::TooManyOpen(_) | TalkError::TooManyAsked(_) | TalkError::TooManyMessages(_) => {
                    Self::too_many(text, Duration::from_mins(1))
                }
            },
            Refusal::Unseen(_) => Self::new(Code::UnseenChanges, text),
            Refusal::OtherResult { current, .. } => {
                let mut problem = Self::new(Code::ResultMismatch, text);
                problem.body.lease_epoch = Some(current.0);
                problem
            }
        }
    }
}
