//! From the core's types to the wire's, where the wire crate cannot do it itself. Boring on purpose.

use std::collections::HashSet;

use giga_api::wire;
use giga_coordinator::{Alert, BudgetView, Burndown, Directive, Diverged, FlagValue};
use giga_domain::factory::FactoryRepo;
use giga_domain::flag::FlagType;
use giga_domain::token::{Permission, TokenRecord};
use giga_domain::{Access, Account, AccountState, Delivery, Factory, JobId, PerTerm, ProductId};
use giga_ports::store::JobText;
use giga_scheduler::{BlockerCode, Explanation, FactoryVerdict, Filter, Remedy};

use crate::app::App;
use crate::caller::{Caller, Products};
use crate::problem::Problem;
use crate::routes;

fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

pub(crate) fn job_with_text(job: &giga_domain::Job, text: JobText) -> wire::Job {
    wire::Job {
        manifest: Some(text.manifest),
        body_md: Some(text.body),
        persona_md: text.persona,
        ..wire::Job::from(job).with_reviews(job)
    }
}

impl App {
    /// The factories as this caller may see them: of other products neither the names nor the jobs.
    pub(crate) async fn factories_for(
        &self,
        caller: &Caller,
        factories: Vec<Factory>,
    ) -> Result<Vec<wire::Factory>, Problem> {
        let visible = factories.into_iter().filter(|f| caller.products.meets(&f.scope.products));
        let held: Vec<(Factory, Vec<JobId>)> = visible
            .map(|factory| {
                let held = self.coordinator.held_by(&factory.id);
                (factory, held)
            })
            .collect();
        let hidden = match &caller.products {
            Products::All => HashSet::new(),
            products @ Products::Only(_) => {
                let ids: Vec<JobId> = held.iter().flat_map(|(_, held)| held.iter().copied()).collect();
                let jobs = self.coordinator.reads().jobs_by_id(&ids).await?;
                jobs.iter().filter(|job| !products.allows(&job.product)).map(|job| job.id).collect()
            }
        };
        Ok(held.into_iter().map(|(factory, held)| self.factory(caller, &factory, &held, &hidden)).collect())
    }

    fn factory(
        &self,
        caller: &Caller,
        factory: &Factory,
        held: &[JobId],
        hidden: &HashSet<JobId>,
    ) -> wire::Factory {
        let advertised = &factory.advertised;
        let products = factory.scope.products.iter().filter(|p| caller.products.allows(p));
        let sight = caller.sight();
        let sees = |repo: &str| self.coordinator.sees_repo(&sight, repo);
        wire::Factory {
            id: factory.id.to_string(),
            state: factory.state.into(),
            live: self.coordinator.is_live(factory),
            health: advertised.health.into(),
            health_reason: advertised.health_reason.clone(),
            capabilities: factory.scope.cut(&advertised.capabilities).tokens().collect(),
            advertised: advertised.capabilities.tokens().collect(),
            products: texts(products),
            repos: advertised.repos.iter().filter(|repo| sees(&repo.name)).map(repo).collect(),
            can_clone: advertised.can_clone,
            clones: advertised.clones.iter().filter(|url| sees(url)).cloned().collect(),
            host: advertised.instance.as_ref().map(|instance| instance.host.clone()),
            seat_limit: advertised.seat_limit,
            seats_used: held.len() as u32,
            load: advertised.load,
            delivery: self.coordinator.wished_delivery(&factory.id).into(),
            actual_delivery: advertised.delivery.unwrap_or(Delivery::Poll).into(),
            running: texts(held.iter().filter(|id| !hidden.contains(id))),
            accounts: advertised.accounts.iter().map(|account| self.account(account)).collect(),
            enrolled_at: factory.enrolled_at.to_string(),
            last_seen_at: self.coordinator.last_seen(factory).map(|at| at.to_string()),
        }
    }
}

impl App {
    fn account(&self, account: &Account) -> wire::FactoryAccount {
        let (state, until) = match self.coordinator.access(account) {
            Access::Open => (AccountState::Open, None),
            Access::OutOfQuota { until } => (AccountState::OutOfQuota, Some(until.to_string())),
            Access::SignedOut => (AccountState::SignedOut, None),
        };
        wire::FactoryAccount {
            engine: account.engine.clone(),
            account: account.account.to_string(),
            state: state.into(),
            until,
        }
    }
}

fn repo(repo: &FactoryRepo) -> wire::FactoryRepo {
    wire::FactoryRepo {
        name: repo.name.clone(),
        url: repo.url.clone(),
        last_used_at: repo.last_used_at.map(|at| at.to_string()),
        merges_into: repo.merges_into.clone(),
    }
}

/// `sees` says whether the caller may know of a factory.
pub(crate) fn explanation(
    explanation: Explanation,
    sees: impl Fn(&FactoryVerdict) -> bool,
) -> wire::Explanation {
    let blockers = explanation.blockers.into_iter();
    let remedies = explanation.remedies.into_iter();
    wire::Explanation {
        summary: explanation.summary,
        blockers: blockers.map(|b| wire::Blocker { code: blocker(b.code), message: b.message }).collect(),
        remedies: remedies.map(remedy).collect(),
        factories: explanation.factories.into_iter().filter(sees).map(verdict).collect(),
    }
}

fn remedy(remedy: Remedy) -> wire::Remedy {
    let call = remedy.fix.as_ref().and_then(routes::call_of);
    wire::Remedy { message: remedy.message, command: remedy.command, call }
}

fn verdict(verdict: FactoryVerdict) -> wire::FactoryVerdict {
    wire::FactoryVerdict {
        factory_id: verdict.factory_id.to_string(),
        feasible: verdict.feasible,
        rejected_by: verdict
            .rejected_by
            .map(|r| wire::Rejection { filter: filter(r.filter), detail: r.detail }),
        score: verdict.score,
        terms: (verdict.terms.iter().flat_map(PerTerm::iter))
            .map(|(term, value)| (term.into(), *value))
            .collect(),
    }
}

/// Words of the core that the wire crate cannot see. A new one is a compile error here.
macro_rules! shown_as {
    ($(fn $name:ident($core:ty) -> $wire:ty { $($word:ident)* $(, $other:pat => $as:expr)? })*) => {
        $(pub(crate) fn $name(core: $core) -> $wire {
            match core { $(<$core>::$word => <$wire>::$word,)* $($other => $as,)? }
        })*
    };
}

shown_as! {
    fn directive(Directive) -> wire::Directive { Cancel Preempt Drain Input Park }
    fn blocker(BlockerCode) -> wire::BlockerCode {
        NoFactories Order Pool Preemption Dependency Child Question Review Ship Merge Failed, BlockerCode::Filter(by) => filter(by)
    }
    fn filter(Filter) -> wire::BlockerCode {
        Draining Stale Down Product Capabilities Repo Quota Seats InUse NotReady Paused Budget Concurrency Offered Excluded
        Unfit
    }
}

pub(crate) fn alert(alert: Alert) -> wire::Alert {
    wire::Alert {
        code: alert.kind.into(),
        severity: alert.severity().into(),
        title: alert.title().to_owned(),
        remedy: alert.remedy().map(remedy),
        message: alert.message,
        product_id: alert.product.map(|id| id.to_string()),
        job_id: alert.job.map(|id| id.to_string()),
        factory_id: alert.factory.map(|id| id.to_string()),
        since: alert.since.map(|at| at.to_string()),
    }
}

pub(crate) fn flag(flag: FlagValue) -> wire::Flag {
    wire::Flag {
        name: flag.name,
        about: flag.def.about.to_owned(),
        value: flag.value,
        default: flag.default,
        takes: match flag.def.kind {
            FlagType::Bool => "true or false".to_owned(),
            FlagType::Choice(words) => format!("one of {}", words.join(", ")),
            FlagType::Integer { min, max } => format!("a whole number from {min} to {max}"),
        },
        is_default: flag.is_default,
    }
}

pub(crate) fn divergence(diverged: Diverged) -> wire::Divergence {
    wire::Divergence {
        job_id: diverged.job.to_string(),
        product_id: diverged.product.map(|id| id.to_string()),
        routed_to: diverged.routed_to,
        claimed_by: diverged.claimed_by,
        lag_ms: diverged.lag_ms,
        at: diverged.at.to_string(),
    }
}

/// Empty: every product.
pub(crate) fn products_of(permission: &Permission) -> &[ProductId] {
    match permission {
        Permission::User { products, .. } => products,
        Permission::Factory { scope, .. } => &scope.products,
        Permission::Pool { .. } | Permission::Scaler { .. } => &[],
    }
}

pub(crate) fn token(token: &TokenRecord) -> wire::Token {
    let (role, factory_id) = match &token.permission {
        Permission::User { role, .. } => (wire::Role::from(*role).into(), None),
        Permission::Factory { factory, .. } => (wire::TokenRole::Factory, Some(factory.to_string())),
        Permission::Pool { factory, .. } => {
            (wire::TokenRole::Pool, factory.as_ref().map(ToString::to_string))
        }
        Permission::Scaler { .. } => (wire::TokenRole::Scaler, None),
    };
    wire::Token {
        id: token.id.to_string(),
        label: token.label.clone(),
        role,
        products: texts(products_of(&token.permission)),
        factory_id,
        created_at: token.created_at.to_string(),
        expires_at: token.expires_at.map(|at| at.to_string()),
        revoked_at: token.revoked_at.map(|at| at.to_string()),
    }
}

pub(crate) fn budget(view: &BudgetView) -> wire::Budget {
    wire::Budget::of(&view.budget, view.now)
}

pub(crate) fn burndown(burndown: &Burndown) -> wire::Burndown {
    let buckets = burndown.buckets.iter().map(|bucket| wire::BurndownBucket {
        from: bucket.from.to_string(),
        usd: bucket.usd,
        tokens: bucket.tokens,
        runs: bucket.runs,
        cumulative_usd: bucket.cumulative,
    });
    wire::Burndown {
        product_id: burndown.product.to_string(),
        from: burndown.from.to_string(),
        to: burndown.to.to_string(),
        bucket_ms: u64::try_from(burndown.bucket.as_millis()).unwrap_or(u64::MAX),
        ceiling_usd: burndown.limit.map(|(_, limit)| limit),
        ceiling_of: burndown.limit.map(|(period, _)| period.into()),
        total_usd: burndown.total(),
        buckets: buckets.collect(),
    }
}
