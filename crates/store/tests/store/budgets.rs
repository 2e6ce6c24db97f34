//! Random histories against limits, on a store: whatever is claimed, reported, ended, evicted or left to die, the product
//! never spends more than its limit and what single runs overran their caps by.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::budget::PerPeriod;
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::token::{Permission, TokenRecord, TokenSecret};
use giga_domain::{
    Actor, BudgetChange, BudgetSettings, FactoryId, FailReason, Failure, Holder, HolderAction, Job, JobId,
    Period, ProductId, RunReport, Spend, Usd,
};
use giga_ports::store::{
    Advertise, ChangeBudget, Claim, Claimed, Enroll, EvictJobs, ExpireLeases, Hold, NewEviction, NewJob,
    Submit,
};
use giga_ports::{Clock, Store};
use giga_testkit::ManualClock;
use giga_testkit::store_suite::StoreFixture;
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone)]
enum Step {
    Claim { cap: Usd },
    Start(usize),
    Spend(usize, Usd),
    End(usize, End),
    Evict(usize),
    Wait(u64),
    Reap,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Report(Usd),
    Fail(bool),
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    let one = 0..6_usize;
    // Mostly within the cap of at most 50.
    let usd = || prop_oneof![9 => 0..50i64, 1 => 50..90i64].prop_map(Usd::from_micros);
    let end = prop_oneof![
        3 => usd().prop_map(End::Report),
        1 => any::<bool>().prop_map(End::Fail),
        1 => Just(End::Release),
    ];
    prop_oneof![
        6 => (1..50i64).prop_map(|cap| Step::Claim { cap: Usd::from_micros(cap) }),
        4 => one.clone().prop_map(Step::Start),
        4 => (one.clone(), usd()).prop_map(|(one, usd)| Step::Spend(one, usd)),
        4 => (one.clone(), end).prop_map(|(one, end)| Step::End(one, end)),
        1 => one.prop_map(Step::Evict),
        2 => (0..40_000u64).prop_map(Step::Wait),
        2 => Just(Step::Reap),
    ]
}

#[derive(Clone)]
struct Held {
    job: Job,
    cap: Usd,
    reported: Usd,
}

struct Fleet {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    product: ProductId,
    factory: FactoryId,
    held: Vec<Held>,
    made: u128,
    /// By how much single runs went beyond their caps.
    overrun: Usd,
}

impl Fleet {
    async fn new(limits: PerPeriod<Option<Usd>>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = crate::fixtures::memory::Memory.open(clock.clone()).await;
        let (product, factory): (ProductId, FactoryId) = ("demo".parse().unwrap(), "mac-1".parse().unwrap());
        let token = TokenRecord {
            id: "token-1".parse().unwrap(),
            hash: TokenSecret::from_random("factory", [7; 32]).hash(),
            permission: Permission::Factory { factory: factory.clone(), scope: FactoryScope::default() },
            label: String::new(),
            created_at: clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        let actor = || Actor::system("test");
        let new = Enroll { id: factory.clone(), scope: FactoryScope::default(), token, actor: actor() };
        store.enroll(new).await.unwrap();
        let seats = Advertised { seat_limit: 1_000, ..Advertised::default() };
        store.advertise(Advertise { factory: factory.clone(), advertised: seats }).await.unwrap();
        let change = BudgetChange::Set(BudgetSettings { limits, job_cap: None });
        let request = "set".parse().unwrap();
        let write = ChangeBudget { product: product.clone(), change, if_rev: None, request, actor: actor() };
        store.change_budget(write).await.unwrap();
        Self { store, clock, product, factory, held: Vec::new(), made: 0, overrun: Usd::ZERO }
    }

    async fn play(&mut self, step: Step) {
        match step {
            Step::Claim { cap } => self.claim(cap).await,
            Step::Start(one) => self.hold(one, vec![HolderAction::Start], Usd::ZERO).await,
            Step::Spend(one, usd) => {
                let spent = HolderAction::Spend(Spend { usd, tokens: 1 });
                self.hold(one, vec![spent, HolderAction::Renew { lease: LEASE }], usd).await;
            }
            Step::End(one, End::Report(usd)) => {
                let report = RunReport { cost: Some(usd), ..RunReport::default() };
                self.hold(one, vec![HolderAction::Start, HolderAction::Report(report)], usd).await;
            }
            Step::End(one, End::Fail(retryable)) => {
                let failure = Failure { reason: FailReason::Crash, detail: None };
                self.hold(one, vec![HolderAction::Fail { failure, retryable }], Usd::ZERO).await;
            }
            Step::End(one, End::Release) => {
                self.hold(one, vec![HolderAction::Release { checkpoint: None }], Usd::ZERO).await;
            }
            Step::Evict(one) => {
                let Some(Held { job, .. }) = self.held.get(one) else { return };
                let Some(job) = self.store.read().job(job.id).await.unwrap() else { return };
                let asked = vec![NewEviction { job: job.id, rev: job.rev, for_job: None }];
                self.store
                    .evict(EvictJobs { term: None, asked, grace: LEASE / 3, actor: Actor::system("test") })
                    .await
                    .unwrap();
            }
            Step::Wait(millis) => self.clock.advance(Duration::from_millis(millis)),
            Step::Reap => {
                let reaped = self.store.expire_leases(ExpireLeases { limit: 100 }).await.unwrap().jobs;
                self.held.retain(|held| !reaped.contains(&held.job.id));
            }
        }
    }

    async fn claim(&mut self, cap: Usd) {
        self.made += 1;
        let mut new = NewJob {
            id: JobId::from_parts(self.clock.now(), self.made),
            product: self.product.clone(),
            spec: serde_json::from_value(json!({ "name": "work" })).unwrap(),
            manifest: json!({}),
            body: String::new(),
            persona: None,
            under: None,
            tree: giga_domain::TreeLimits::default(),
            fingerprint: String::new(),
        };
        new.spec.budget.usd = Some(cap);
        let (job, request) = (new.id, format!("r{}", self.made).parse().unwrap());
        self.store.submit(Submit { jobs: vec![new], actor: Actor::system("test") }).await.unwrap();
        let factory = self.factory.clone();
        let claim = Claim { job, rev: None, dispatch_seq: None, factory, request, lease: LEASE };
        if let Claimed::Granted(job) = self.store.claim(claim).await.unwrap() {
            self.held.push(Held { job, cap, reported: Usd::ZERO });
        }
    }

    /// `usd` is what the holder tells with it, which counts only where it is heard.
    async fn hold(&mut self, one: usize, actions: Vec<HolderAction>, usd: Usd) {
        let Some(Held { job, cap, reported }) = self.held.get(one).cloned() else { return };
        let holder = Holder { factory: self.factory.clone(), epoch: job.epoch };
        let Ok(after) = self.store.hold(Hold { job: job.id, holder, actions }).await else { return };
        let newest = reported.max(usd);
        self.overrun += newest.less(cap) - reported.less(cap);
        self.held[one].reported = newest;
        if after.lease().is_none() {
            self.held.remove(one);
        }
    }

    async fn check(&self) -> Result<(), TestCaseError> {
        let budget = self.store.read().budget(&self.product).await.unwrap().unwrap();
        let now = self.clock.now();
        for period in Period::ALL {
            let Some(limit) = budget.settings.limits.of(period) else { continue };
            let used = budget.spent_in(period, now).usd + budget.reserved;
            prop_assert!(used <= *limit + self.overrun, "{used} of {limit} and {}", self.overrun);
        }
        Ok(())
    }
}

const LEASE: Duration = Duration::from_secs(30);

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_passes_a_limit_but_by_overruns(
        day in proptest::option::of(0..300i64),
        total in 0..400i64,
        history in proptest::collection::vec(step(), 1..80),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let limits = PerPeriod {
                day: day.map(Usd::from_micros),
                total: Some(Usd::from_micros(total)), ..PerPeriod::default() };
            let mut fleet = Fleet::new(limits).await;
            for step in history {
                fleet.play(step).await;
                fleet.check().await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}
