//! What a use case can refuse, in words that a caller can act on. The HTTP status is chosen elsewhere.

use giga_domain::flag::FlagError;
use giga_domain::id::IdError;
use giga_domain::manifest::ManifestError;
use giga_ports::StoreError;
use giga_scheduler::Unroutable;
use thiserror::Error;

/// A field of a request, what was wrong with it, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct FieldProblem {
    pub field: String,
    pub message: String,
}

impl FieldProblem {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }

    pub fn from_id(field: impl Into<String>, error: &IdError) -> Self {
        Self::new(field, error.to_string())
    }
}

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Blob(#[from] giga_ports::BlobError),
    #[error(transparent)]
    Broker(#[from] giga_ports::BrokerError),
    #[error(transparent)]
    Effects(#[from] giga_ports::EffectsError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Invalid(#[from] FieldProblem),
    #[error(transparent)]
    Flag(#[from] FlagError),
    /// Only under the flag `strict`; otherwise it is a warning.
    #[error("{0}")]
    Unroutable(Unroutable),
    /// Only where the flag `foreign_repos` does not route it; otherwise it is a warning.
    #[error("{0}")]
    ForeignRepo(crate::ForeignRepo),
    /// The same, about one of many.
    #[error("{field}: {error}")]
    At { field: String, error: Box<Error> },
    #[error("the job is not yours to take: {0}")]
    NotYours(&'static str),
    #[error(
        "factory {factory} is running on {host} since {since} and was heard from at {seen}; stop it there, choose another \
         name with --id, or take this one over with --take-over"
    )]
    FactoryInUse {
        factory: giga_domain::FactoryId,
        host: String,
        since: giga_domain::Timestamp,
        seen: giga_domain::Timestamp,
    },
    /// More than is let through at a time.
    #[error("{reason}")]
    TooMany { reason: String, retry_after: std::time::Duration },
    #[error(
        "there is no secret {name} in product {product}; set it with `giga secret set {name} --product {product}`"
    )]
    NoSecret { product: giga_domain::ProductId, name: giga_domain::SecretName },
    #[error(transparent)]
    SecretKeys(#[from] giga_ports::SecretKeyError),
    #[error("factory {0} has not sent a heartbeat yet; send one first")]
    NoHeartbeat(giga_domain::FactoryId),
}
