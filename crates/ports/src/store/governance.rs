//! What the store knows beside jobs: budgets, products, profiles, and what the world outside is to be told.
//!
//! The same rules as for [`super::Store`]: atomic, durable when answered, judged by the store's clock, safe to repeat.

use std::time::Duration;

use async_trait::async_trait;
use giga_domain::{
    Actor, Budget, BudgetChange, Charge, Effect, EffectId, EffectOutcome, EffectReceiver, EffectStateName,
    EffectTarget, FeedPos, JobId, NewEffect, Product, ProductId, ProductSettings, Profile, ProfileContent,
    RequestId, Rev, Term, Timestamp, Usd, Webhook, WebhookId,
};

use super::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
pub trait Governance: Send + Sync {
    /// What people change about a budget. The same request again is answered and does nothing.
    async fn change_budget(&self, write: BudgetWrite) -> Result<Budget>;

    /// Replaces the settings. A repository that another product owns is refused as [`StoreError::RepoOwned`].
    async fn set_product(&self, write: ProductWrite) -> Result<Product>;

    /// The next version, or the newest where that has the very same content.
    async fn add_profile(&self, new: NewProfile, actor: Actor) -> Result<Profile>;

    /// Asks holders to let go, each by compare-and-set on what the asker saw: whether it was asked. With a term, as the
    /// dispatcher, which is refused whole when its term is over.
    async fn evict(
        &self,
        term: Option<Term>,
        asked: Vec<NewEviction>,
        grace: Duration,
        actor: Actor,
    ) -> Result<Vec<bool>>;

    /// A known id is answered with what is there; one too many for its product, or for the whole fleet, is refused with
    /// [`StoreError::TooManyWebhooks`]. `since` is the feed's head: whoever fans out can pass over all that came
    /// before the first of them, so nobody has to follow the feed while nobody listens.
    async fn add_webhook(&self, new: NewWebhook, actor: Actor) -> Result<Webhook>;

    /// What is still to be sent to it is given up. One that is gone is fine.
    async fn remove_webhook(&self, id: WebhookId, actor: Actor) -> Result<()>;

    /// Puts what a stretch of the feed is to tell into the outbox and moves the cursor from `from` to `to`, in one step.
    /// False, and nothing done, where the cursor stands elsewhere by now; true again for a stretch that is in there already.
    /// Effects that are known are passed over, and so are those for a webhook that is gone.
    async fn fan_out(&self, from: FeedPos, to: FeedPos, effects: Vec<NewEffect>) -> Result<bool>;

    /// Puts one more into the outbox, apart from the feed: somebody asked for it. A known one that is over is sent again.
    async fn add_effect(&self, new: NewEffect) -> Result<Effect>;

    /// Effects that are due for this receiver, longest due first, each taken for `lease`.
    async fn take_effects(
        &self,
        receiver: EffectReceiver,
        limit: usize,
        lease: Duration,
    ) -> Result<Vec<Effect>>;

    /// What came of an attempt. An attempt that is not the last changes nothing.
    async fn settle_effect(&self, id: EffectId, attempt: u32, outcome: EffectOutcome) -> Result<Effect>;

    /// Another chance for one that was given up.
    async fn revive_effect(&self, id: EffectId, actor: Actor) -> Result<Effect>;

    /// Removes effects that were over before that time; says how many.
    async fn retire_effects(&self, before: Timestamp, limit: usize) -> Result<usize>;

    /// The secret of that name, which every coordinator shares: `fresh` becomes it where there is none yet.
    async fn secret(&self, name: &'static str, fresh: [u8; 32]) -> Result<[u8; 32]>;
}

#[async_trait]
pub trait GovernanceReads: Send + Sync {
    /// `None` for a product that nothing was ever set, set aside or charged for.
    async fn budget(&self, product: &ProductId) -> Result<Option<Budget>>;

    /// Those of them that there are, by product.
    async fn budgets(&self) -> Result<Vec<Budget>>;

    /// What was charged in each stretch of `bucket` from `from` on, up to `to`; empty stretches are left out.
    async fn burndown(
        &self,
        product: &ProductId,
        from: Timestamp,
        to: Timestamp,
        bucket: Duration,
    ) -> Result<Vec<SpendBucket>>;

    /// The ledger of a job, by epoch.
    async fn charges(&self, job: JobId) -> Result<Vec<Charge>>;

    /// What was charged to each of these jobs, all of its runs together; those that cost nothing may be left out.
    async fn charged_to(&self, jobs: &[JobId]) -> Result<Vec<(JobId, Usd)>>;

    /// How all jobs of a subtree stand that do the work, and what they have cost, however many they are.
    async fn subtree_totals(&self, root: JobId) -> Result<SubtreeTotals>;

    /// By id; those that were ever set.
    async fn products(&self) -> Result<Vec<Product>>;

    /// The newest version of each, by name.
    async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>>;

    /// That version, or the newest.
    async fn profile(&self, product: &ProductId, name: &str, version: Option<u32>)
    -> Result<Option<Profile>>;

    /// By id.
    async fn webhooks(&self) -> Result<Vec<Webhook>>;

    /// Up to where the feed has been put into the outbox.
    async fn fan_out_cursor(&self) -> Result<FeedPos>;

    async fn effect(&self, id: &EffectId) -> Result<Option<Effect>>;

    /// Newest first.
    async fn effects(
        &self,
        filter: &EffectFilter,
        before: Option<(Timestamp, EffectId)>,
        limit: usize,
    ) -> Result<Vec<Effect>>;

    /// Everybody for whom something waits, longest due first, and when the first of it is due. As dear as there are
    /// receivers, however much waits for each.
    async fn effect_receivers(&self) -> Result<Vec<(EffectReceiver, Timestamp)>>;

    /// How the outbox stands, for people. Counts no further than [`EffectCounts::MOST`].
    async fn effect_counts(&self) -> Result<EffectCounts>;
}

#[derive(Debug, Clone)]
pub struct BudgetWrite {
    pub product: ProductId,
    pub change: BudgetChange,
    /// Another revision is refused with [`StoreError::RevMismatch`].
    pub if_rev: Option<Rev>,
    pub request: RequestId,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct ProductWrite {
    pub product: ProductId,
    pub settings: ProductSettings,
    pub if_rev: Option<Rev>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct NewProfile {
    pub product: ProductId,
    pub name: String,
    pub content: ProfileContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewEviction {
    pub job: JobId,
    /// What the asker saw.
    pub rev: Rev,
    /// Who needs the seat; `None` where its product's budget is paused.
    pub for_job: Option<JobId>,
}

#[derive(Debug, Clone)]
pub struct NewWebhook {
    pub id: WebhookId,
    pub product: Option<ProductId>,
    pub url: String,
    pub kinds: Vec<giga_domain::EventKind>,
    pub secret: giga_domain::WebhookSecret,
}

/// The jobs of a tree that do the work; composites only stand for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubtreeTotals {
    /// Indexed by `Stage as usize`.
    pub by_stage: [u64; 10],
    /// What runs have cost so far, those that are under way included.
    pub spent: Usd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendBucket {
    pub from: Timestamp,
    pub usd: Usd,
    pub tokens: u64,
    pub runs: u64,
}

/// Everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffectFilter {
    /// Empty: all, those of the fleet included.
    pub products: Vec<ProductId>,
    pub state: Option<EffectStateName>,
    pub target: Option<EffectTarget>,
    pub job: Option<JobId>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EffectCounts {
    pub pending: u64,
    pub dead: u64,
    /// When the one that waits longest was made.
    pub oldest_pending: Option<Timestamp>,
}

impl EffectCounts {
    /// So many, or more.
    pub const MOST: u64 = 100_000;
}
