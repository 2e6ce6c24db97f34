//! Errors in the store's own words. Which HTTP status each gets is decided elsewhere, last.

use giga_domain::{
    ArtifactId, EffectId, FactoryId, JobId, PoolName, ProductId, Refusal, Rev, SecretName, Term, TokenId,
};
use thiserror::Error;

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("there is no job {0}")]
    NoSuchJob(JobId),
    #[error("there is no factory {0}")]
    NoSuchFactory(FactoryId),
    #[error("there is no token {0}")]
    NoSuchToken(TokenId),
    #[error("there is no artifact {0}")]
    NoSuchArtifact(ArtifactId),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("it is at revision {current} by now, not {given}")]
    RevMismatch { given: Rev, current: Rev },
    #[error("idempotency key `{key}` already made job {job} from another manifest or body")]
    KeyReused { key: String, job: JobId },
    #[error("deps: there is no job {0} in this product")]
    UnknownDep(JobId),
    #[error("parent: there is no job {0} in this product")]
    UnknownParent(JobId),
    #[error("parent: job {0} {1}")]
    ParentClosed(JobId, &'static str),
    /// From the job that would wait to itself again.
    #[error("deps: {} would wait for itself", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → "))]
    Cycle(Vec<JobId>),
    #[error("parent: children of children go {0} deep at most")]
    TooDeep(usize),
    #[error("parent: job {parent} may have {most} children at most")]
    TooManyChildren { parent: JobId, most: usize },
    #[error("repos: `{repo}` belongs to product {owner}")]
    RepoOwned { repo: String, owner: ProductId },
    #[error("there are {0} webhooks for it already; remove one first")]
    TooManyWebhooks(usize),
    /// Somebody else set it meanwhile.
    #[error("the secret {0} was changed by somebody else just now")]
    SecretChanged(SecretName),
    #[error("the product has {0} secrets already; remove one first")]
    TooManySecrets(usize),
    #[error("there is no effect {0}")]
    NoSuchEffect(EffectId),
    #[error("factory {0} is already enrolled")]
    FactoryExists(FactoryId),
    #[error("there is no pool {0}")]
    NoSuchPool(PoolName),
    #[error(
        "pool {pool} still has {members} factories; `giga pool set {pool} --max 0` lets them leave, then remove it"
    )]
    PoolInUse { pool: PoolName, members: usize },
    #[error("there are {0} pools already; remove one first")]
    TooManyPools(usize),
    /// The member was given up, or the pool has all that it may have.
    #[error("pool {pool} does not expect factory {factory}: {why}")]
    NotExpected { pool: PoolName, factory: FactoryId, why: &'static str },
    /// Somebody else leads by now.
    #[error("term {given} is over; the dispatcher's term is {current}")]
    StaleTerm { given: Term, current: Term },
    /// Passing: the same call may go through later. Whether it took effect is not known.
    #[error("the store cannot be reached: {reason}")]
    Unavailable {
        reason: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Not passing: a row that cannot be read, a constraint that should hold. A bug or a damaged file.
    #[error("the store is broken: {reason}")]
    Broken {
        reason: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl StoreError {
    pub fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable { reason: source.to_string(), source: Some(Box::new(source)) }
    }

    pub fn broken(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Broken { reason: source.to_string(), source: Some(Box::new(source)) }
    }

    pub fn broken_because(reason: impl Into<String>) -> Self {
        Self::Broken { reason: reason.into(), source: None }
    }

    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
