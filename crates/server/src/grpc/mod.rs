//! gRPC on the port of the API: jobs for workers and factories, health, reflection.
//!
//! As in REST no call decides anything: who may call is judged by the same functions and refused in the same words, and
//! the coordinator does the rest. The codes are chosen in one place, here.

mod auth;
mod dispatch;
mod fleet;
mod grant;
mod health;
mod scaler;
mod tokenless;

pub use grant::grant_message;

use std::any::Any;

use axum::Router;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use giga_coordinator::Error;
use tonic::service::Routes;
use tonic::{Code as Grpc, Status};
use tower_http::catch_panic::CatchPanicLayer;

use self::tokenless::OpenStreams;
use crate::app::App;
use crate::problem::{Code, Problem};

/// How gRPC spells Retry-After.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Every gRPC service. One more is one more line, and its name in [`health`].
pub(crate) fn router(app: &App) -> Router {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(giga_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("both descriptor sets are generated with the code that serves them");
    let options = &app.options;
    let streams =
        OpenStreams::new(options.tokenless_streams, options.tokenless_per_peer, options.tokenless_longest);
    let tokenless = Routes::new(health::service(app.clone()))
        .add_service(reflection)
        .into_axum_router()
        .reset_fallback()
        .layer(middleware::from_fn_with_state(streams, tokenless::bounded));
    Routes::new(dispatch::service(app.clone()))
        .add_service(fleet::service(app.clone()))
        .add_service(scaler::service(app.clone()))
        .into_axum_router()
        // What is no service is answered like any other path that is not there.
        .reset_fallback()
        .merge(tokenless)
        .layer(middleware::map_response(with_remedy))
        .layer(CatchPanicLayer::custom(panicked))
}

/// What cannot be decoded because it is too large is refused before any of our code runs, in words without a remedy.
async fn with_remedy(response: Response) -> Response {
    let too_large = Status::from_header_map(response.headers()).filter(|status| {
        status.code() == Grpc::OutOfRange && status.message().contains("message length too large")
    });
    if too_large.is_none() {
        return response;
    }
    let most = giga_domain::limits::TOPIC_REQUEST_BYTES;
    let text = format!("the message is larger than {most} bytes, the most that one call takes; send fewer");
    Status::resource_exhausted(text).into_http::<axum::body::Body>().into_response()
}

/// A bug in a call costs that call and nothing else.
fn panicked(panic: Box<dyn Any + Send + 'static>) -> Response {
    let _ = crate::observe::panicked(panic);
    let text = "something went wrong inside the coordinator; its log says what";
    Status::internal(text).into_http::<axum::body::Body>().into_response()
}

impl From<Problem> for Status {
    fn from(problem: Problem) -> Self {
        let code = match problem.code() {
            Code::InvalidRequest | Code::InvalidManifest | Code::UnsupportedMediaType => {
                Grpc::InvalidArgument
            }
            Code::Unauthenticated => Grpc::Unauthenticated,
            Code::Forbidden => Grpc::PermissionDenied,
            Code::NotFound => Grpc::NotFound,
            Code::MethodNotAllowed => Grpc::Unimplemented,
            Code::RequestTimeout => Grpc::DeadlineExceeded,
            Code::Fenced
            | Code::NotYours
            | Code::RevMismatch
            | Code::ResultMismatch
            | Code::UnseenChanges => Grpc::Aborted,
            Code::IdempotencyConflict | Code::FactoryExists | Code::FactoryInUse | Code::RepoOwned => {
                Grpc::AlreadyExists
            }
            Code::IllegalTransition
            | Code::LogGap
            | Code::NoHeartbeat
            | Code::NotExpected
            | Code::PoolInUse
            | Code::QuestionClosed
            | Code::Unroutable
            | Code::NoSecret
            | Code::SecretKey => Grpc::FailedPrecondition,
            Code::PayloadTooLarge | Code::TooManyRequests | Code::StorageFull => Grpc::ResourceExhausted,
            Code::RangeNotSatisfiable => Grpc::OutOfRange,
            Code::Internal => Grpc::Internal,
            Code::Unavailable => Grpc::Unavailable,
        };
        let mut status = Self::new(code, problem.detail());
        if let Some(wait) = problem.retry_after() {
            let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
            status.metadata_mut().insert(PUSHBACK, millis.into());
        }
        status
    }
}

/// A refusal of the coordinator, with fields spelled as they are in the proto.
fn refused(error: Error) -> Status {
    match error {
        Error::Invalid(mut problem) => {
            problem.field = snake_case(&problem.field);
            Status::from(Problem::from(Error::Invalid(problem)))
        }
        other => Status::from(Problem::from(other)),
    }
}

fn snake_case(field: &str) -> String {
    let mut text = String::with_capacity(field.len() + 4);
    for letter in field.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// The server stops; another one, or this one after its restart, will take the call.
fn stopping() -> Status {
    Status::unavailable("the coordinator is shutting down; connect again")
}
