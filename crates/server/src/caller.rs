//! Who is asking, and which products they may see.
//!
//! A caller is made only by the guard, from a live token. An empty list of products never means "every product" here,
//! so that a filter that lost its last entry cannot open up.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use giga_coordinator::Sight;
use giga_domain::product::DEFAULT_PRODUCT;
use giga_domain::token::{Permission, Role, TokenRecord, TokenSecret};
use giga_domain::{Actor, FactoryId, Holder, Job, JobId, PoolName, ProductId, Timestamp, TokenId};

use crate::app::App;
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Products {
    All,
    Only(Vec<ProductId>),
}

impl Products {
    fn of(products: &[ProductId]) -> Self {
        if products.is_empty() { Self::All } else { Self::Only(products.to_vec()) }
    }

    pub(crate) fn allows(&self, product: &ProductId) -> bool {
        match self {
            Self::All => true,
            Self::Only(own) => own.contains(product),
        }
    }

    /// May something that serves `others` (empty: every product) serve one of these?
    pub(crate) fn meets(&self, others: &[ProductId]) -> bool {
        others.is_empty() || others.iter().any(|product| self.allows(product))
    }

    /// Is a scope of `others` (empty: every product) no wider than this?
    pub(crate) fn covers(&self, others: &[ProductId]) -> bool {
        match self {
            Self::All => true,
            Self::Only(own) => !others.is_empty() && others.iter().all(|product| own.contains(product)),
        }
    }

    /// As store filters want it: empty allows everything.
    pub(crate) fn as_filter(&self) -> &[ProductId] {
        match self {
            Self::All => &[],
            Self::Only(own) => own,
        }
    }

    /// For messages.
    pub(crate) fn listed(&self) -> String {
        match self {
            Self::All => "every product".to_owned(),
            Self::Only(own) => own.iter().map(ProductId::as_str).collect::<Vec<_>>().join(", "),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    User(Role),
    Factory(FactoryId),
    /// Enrols factories of a pool: that one, or whichever it starts.
    Pool {
        pool: PoolName,
        factory: Option<FactoryId>,
    },
    /// Asks how many factories of a pool are wanted.
    Scaler(PoolName),
    /// What runs inside a job, under the lease that holds it.
    Job(Inside),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inside {
    pub(crate) job: JobId,
    pub(crate) holder: Holder,
}

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) token: TokenId,
    pub(crate) label: String,
    pub(crate) who: Who,
    /// What the token allows: the measure of what its bearer may hand out or change for everybody.
    pub(crate) scope: Products,
    /// The same, narrowed by `x-product-id`: the measure of what is shown and meant.
    pub(crate) products: Products,
    /// None: never.
    pub(crate) expires_at: Option<Timestamp>,
    /// To ask again later whether the token is still live.
    pub(crate) secret: TokenSecret,
}

impl Caller {
    pub(crate) fn new(token: TokenRecord, secret: TokenSecret) -> Self {
        let (who, products) = match token.permission {
            Permission::User { role, products } => (Who::User(role), Products::of(&products)),
            Permission::Factory { factory, scope } => (Who::Factory(factory), Products::of(&scope.products)),
            Permission::Pool { pool, factory } => (Who::Pool { pool, factory }, Products::Only(Vec::new())),
            Permission::Scaler { pool } => (Who::Scaler(pool), Products::Only(Vec::new())),
        };
        let (scope, expires_at) = (products.clone(), token.expires_at);
        Self { token: token.id, label: token.label, who, scope, products, expires_at, secret }
    }

    /// From a job token whose epoch holds the job right now.
    pub(crate) fn inside(job: &Job, holder: Holder, secret: TokenSecret) -> Result<Self, Problem> {
        let name = format!("job-{}-{}", job.id, holder.epoch);
        let token = name.parse().map_err(|_| Problem::internal("a job token cannot be named"))?;
        let products = Products::Only(vec![job.product.clone()]);
        let who = Who::Job(Inside { job: job.id, holder });
        let scope = products.clone();
        Ok(Self { token, label: name, who, scope, products, expires_at: None, secret })
    }

    pub(crate) fn actor(&self) -> Actor {
        match &self.who {
            Who::User(_) | Who::Job(_) | Who::Pool { .. } | Who::Scaler(_) => {
                Actor::Token(self.token.clone())
            }
            Who::Factory(factory) => Actor::Factory(factory.clone()),
        }
    }

    /// A job token is for its own job and no other, whoever holds that.
    pub(crate) fn is_kept_from(&self, job: JobId) -> bool {
        matches!(&self.who, Who::Job(inside) if inside.job != job)
    }

    /// The one product that the call is about: the header names it, or the token leaves no choice.
    pub(crate) fn product(&self) -> Result<ProductId, Problem> {
        match &self.products {
            Products::All => {
                DEFAULT_PRODUCT.parse().map_err(|_| Problem::internal("the default product is malformed"))
            }
            Products::Only(own) if own.len() == 1 => Ok(own[0].clone()),
            Products::Only(_) => {
                let own = self.products.listed();
                Err(Problem::field("x-product-id", format!("say in this header which of {own} is meant")))
            }
        }
    }

    /// What it may be told about.
    pub(crate) fn sight(&self) -> Sight {
        match &self.products {
            Products::All => Sight::Everything,
            Products::Only(own) => Sight::Products(own.clone()),
        }
    }

    /// The factory whose token this is.
    pub(crate) fn factory(&self) -> Result<&FactoryId, Problem> {
        match &self.who {
            Who::Factory(factory) => Ok(factory),
            Who::User(role) => {
                let role = role.as_str();
                Err(Problem::forbidden(format!(
                    "only a factory may do this, with its own token; this token has the role {role}"
                )))
            }
            Who::Pool { pool, .. } | Who::Scaler(pool) => Err(Problem::forbidden(format!(
                "only a factory may do this, with its own token; this is a credential of pool {pool}"
            ))),
            Who::Job(inside) => {
                let job = inside.job;
                Err(Problem::forbidden(format!(
                    "only a factory may do this, with its own token; this is the token of job {job}"
                )))
            }
        }
    }

    /// A factory speaks for itself only.
    pub(crate) fn speaks_for(&self, given: &FactoryId) -> Result<(), Problem> {
        let own = self.factory()?;
        if own == given {
            Ok(())
        } else {
            Err(Problem::forbidden(format!(
                "factoryId: this token belongs to factory {own}, it cannot speak for {given}"
            )))
        }
    }

    fn sees(&self, job: &Job) -> bool {
        let its_own = match &self.who {
            Who::User(_) => true,
            // What it holds, or held last: after a restart it asks what became of its work.
            Who::Factory(factory) => job.last_factory.as_ref() == Some(factory),
            Who::Job(inside) => inside.job == job.id,
            Who::Pool { .. } | Who::Scaler(_) => false,
        };
        its_own && self.products.allows(&job.product)
    }
}

impl App {
    /// The job, unless it does not exist or is none of the caller's business: both answer alike.
    pub(crate) async fn visible_job(&self, caller: &Caller, id: JobId) -> Result<Job, Problem> {
        let job = self.coordinator.reads().job(id).await?;
        job.filter(|job| caller.sees(job)).ok_or_else(|| Problem::no_job(id))
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Self>().cloned();
        caller.ok_or_else(|| Problem::internal("a public route asked who is calling"))
    }
}
