//! What a product may spend: who is let in, who closes it, who opens it again.

use std::time::Duration;

use futures::future::join_all;
use giga_domain::budget::{Closed, PauseCause, PerPeriod};
use giga_domain::{
    Budget, BudgetChange, BudgetSettings, Event, EventKind, FactoryId, HolderAction, JobId, JobSpec, Period,
    ProductId, RunReport, Stage, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{ChangeBudget, Claimed, Hold, Lost, NewJob};
use tokio::task::JoinSet;

use super::World;
use super::world::{LEASE, holder, product, request, user};

/// A dollar.
pub(super) const USD: Usd = Usd::from_dollars(1);

pub(super) fn day(limit: Usd) -> BudgetSettings {
    let limits = PerPeriod { day: Some(limit), ..PerPeriod::default() };
    BudgetSettings { limits, job_cap: None }
}

pub(super) fn cap(usd: Usd) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.budget.usd = Some(usd)
}

pub(super) fn report(usd: Usd) -> HolderAction {
    HolderAction::Report(RunReport { cost: Some(usd), ..RunReport::default() })
}

impl World {
    pub(super) async fn change_budget(&self, change: BudgetChange) -> Budget {
        self.store.change_budget(write(change)).await.unwrap()
    }

    pub(super) async fn budget(&self) -> Budget {
        self.budget_of(&product("demo")).await
    }

    pub(super) async fn budget_of(&self, product: &ProductId) -> Budget {
        let found = self.store.read().budget(product).await.unwrap();
        found.unwrap_or_else(|| Budget::new(product.clone()))
    }

    /// The books balance: what is reserved is what stands on the leases.
    pub(super) async fn balanced(&self) {
        let live = self.store.read().live_jobs(None, 100_000).await.unwrap();
        let mut products: Vec<ProductId> = live.iter().map(|job| job.product.clone()).collect();
        products.extend(self.store.read().budgets().await.unwrap().into_iter().map(|budget| budget.product));
        for product in products {
            let of_product = live.iter().filter(|job| job.product == product);
            let on_leases: Usd = of_product.filter_map(|job| Some(job.lease()?.reserved)).sum();
            let budget = self.budget_of(&product).await;
            assert_eq!(budget.reserved, on_leases, "{product}: {budget:?}");
        }
    }

    async fn spent_today(&self) -> Usd {
        self.budget().await.spent_in(Period::Day, self.now()).usd
    }

    /// A job of this cap, claimed, or why not.
    async fn try_claim(&self, factory: &FactoryId, usd: Usd) -> Claimed {
        let job = self.submitted(cap(usd)).await;
        self.claim(job.id, factory).await
    }

    /// A job of this cap that has run and cost so much.
    async fn spend(&self, factory: &FactoryId, usd: Usd) {
        let (job, holder) = self.building(factory, cap(usd)).await;
        self.hold(job.id, &holder, [report(usd)]).await.unwrap();
        self.balanced().await;
    }

    /// What happened to the budget.
    async fn reported(&self) -> Vec<Event> {
        let mut feed = self.feed().await;
        feed.retain(|event| event.kind.as_str().starts_with("budget."));
        for event in &feed {
            assert_eq!((&event.product, event.job), (&Some(product("demo")), None), "{event:?}");
            assert_eq!(event.data["productId"], "demo");
        }
        feed
    }

    async fn event_kinds(&self) -> Vec<EventKind> {
        self.reported().await.into_iter().map(|event| event.kind).collect()
    }
}

fn write(change: BudgetChange) -> ChangeBudget {
    let request = super::steer_request();
    ChangeBudget { product: product("demo"), change, if_rev: None, request, actor: user() }
}

fn short(claimed: &Claimed) -> Option<(Period, Usd)> {
    match claimed {
        Claimed::Lost(Lost::Budget(Closed::Short { period, missing })) => Some((*period, *missing)),
        _ => None,
    }
}

fn paused(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Lost(Lost::Budget(Closed::Paused)))
}

fn granted(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Granted(_))
}

pub async fn a_product_without_a_budget_spends_freely(world: &World) {
    let mac = world.factory("mac-1").await;
    assert_eq!(world.store.read().budget(&product("demo")).await.unwrap(), None);
    let (job, holder) = world.building(&mac, |_| ()).await;
    assert_eq!(job.lease().unwrap().reserved, Usd::ZERO);
    assert_eq!(world.store.read().budget(&product("demo")).await.unwrap(), None, "there is nothing to tell");
    assert_eq!(world.store.read().budgets().await.unwrap(), []);
    world.hold(job.id, &holder, [report(7 * USD)]).await.unwrap();
    assert_eq!(world.spent_today().await, 7 * USD, "what it cost is known all the same");
    assert!(granted(&world.try_claim(&mac, 1_000 * USD).await));
    assert_eq!(world.event_kinds().await, []);
}

pub async fn what_fits_is_admitted_and_no_more(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(5 * USD))).await;
    for _ in 0..2 {
        assert!(granted(&world.try_claim(&mac, 2 * USD).await));
        world.balanced().await;
    }
    let third = world.submitted(cap(2 * USD)).await;
    let before = world.snapshot(third.id).await;
    assert_eq!(short(&world.claim(third.id, &mac).await), Some((Period::Day, USD)));
    assert_eq!(world.snapshot(third.id).await, before, "it stays where it was");
    assert!(granted(&world.try_claim(&mac, USD).await), "a smaller one fits exactly");
    assert_eq!(short(&world.try_claim(&mac, Usd::LEAST).await), Some((Period::Day, Usd::LEAST)));
    let uncapped = world.submitted(|_| ()).await;
    assert_eq!(
        short(&world.claim(uncapped.id, &mac).await),
        Some((Period::Day, Usd::LEAST)),
        "nothing is left"
    );
    assert_eq!(world.event_kinds().await, [EventKind::BudgetChanged], "full is not exhausted");
}

pub async fn the_tightest_period_decides(world: &World) {
    let mac = world.factory("mac-1").await;
    for period in Period::ALL {
        let mut limits =
            PerPeriod { day: Some(9 * USD), week: Some(9 * USD), month: Some(9 * USD), total: None };
        *limits.of_mut(period) = Some(2 * USD);
        world.change_budget(BudgetChange::Set(BudgetSettings { limits, job_cap: None })).await;
        assert_eq!(short(&world.try_claim(&mac, 3 * USD).await), Some((period, USD)));
    }
}

pub async fn the_cap_of_those_that_name_none(world: &World) {
    let mac = world.factory("mac-1").await;
    let settings = BudgetSettings { job_cap: Some(2 * USD), ..day(5 * USD) };
    world.change_budget(BudgetChange::Set(settings)).await;
    let (plain, _) = world.assigned(&mac, |_| ()).await;
    assert_eq!(plain.lease().unwrap().reserved, 2 * USD);
    let (own, _) = world.assigned(&mac, cap(USD)).await;
    assert_eq!(own.lease().unwrap().reserved, USD, "its own stands above");
    assert_eq!(world.budget().await.reserved, 3 * USD);
    world.assigned(&mac, |_| ()).await;
    let fourth = world.submitted(|_| ()).await;
    assert_eq!(short(&world.claim(fourth.id, &mac).await), Some((Period::Day, 2 * USD)));
    world.balanced().await;
}

pub async fn a_reached_limit_pauses_once(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(3 * USD))).await;
    let (late, late_holder) = world.building(&mac, cap(USD)).await;
    let (job, holder) = world.building(&mac, cap(2 * USD)).await;
    // It overran, and the limit is reached by it alone.
    world.hold(job.id, &holder, [report(4 * USD)]).await.unwrap();
    assert_eq!(world.event_kinds().await, [EventKind::BudgetChanged, EventKind::BudgetExhausted]);
    let event = world.reported().await.pop().unwrap();
    assert_eq!((&event.data["period"], &event.data["spentUsdMicros"]), (&"day".into(), &4_000_000.into()));
    assert_eq!(event.data["ceilingUsdMicros"], 3_000_000);
    let budget = world.budget().await;
    let cause = &budget.paused.as_ref().unwrap().cause;
    assert_eq!((cause, budget.rev), (&PauseCause::Limit { period: Period::Day }, giga_domain::Rev(1)));
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await));
    // What runs goes on, and is charged, and nobody is told twice.
    world.hold(late.id, &late_holder, [HolderAction::Renew { lease: LEASE }, report(USD)]).await.unwrap();
    assert_eq!(world.spent_today().await, 5 * USD);
    assert_eq!(world.reported().await.len(), 2);
    world.balanced().await;
}

pub async fn a_new_period_opens_it_again(world: &World) {
    let mac = world.factory("mac-1").await;
    let limits = PerPeriod { day: Some(2 * USD), total: Some(3 * USD), ..PerPeriod::default() };
    world.change_budget(BudgetChange::Set(BudgetSettings { limits, job_cap: None })).await;
    world.spend(&mac, 2 * USD).await;
    assert!(paused(&world.try_claim(&mac, USD).await));
    let end = Period::Day.end(world.now()).unwrap();
    world.clock.set(end.minus(Duration::from_millis(1)));
    assert!(paused(&world.try_claim(&mac, USD).await), "a day is over when it is over");
    world.clock.set(end);
    assert_eq!(short(&world.try_claim(&mac, 2 * USD).await), Some((Period::Total, USD)), "but not the whole");
    let resumed = [EventKind::BudgetChanged, EventKind::BudgetExhausted, EventKind::BudgetResumed];
    assert_eq!(world.event_kinds().await, resumed, "whoever finds it open again says so");
    assert_eq!(world.budget().await.paused, None);
    world.spend(&mac, USD).await;
    assert_eq!(world.spent_today().await, USD);
    let budget = world.budget().await;
    assert_eq!(budget.spent_in(Period::Total, world.now()).usd, 3 * USD);
    assert_eq!(budget.paused.unwrap().cause, PauseCause::Limit { period: Period::Total });
    // For ever: no period ends this.
    world.advance(Duration::from_hours(24 * 400));
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await));
}

pub async fn a_run_is_charged_to_the_day_on_which_it_ends(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(3 * USD))).await;
    world.spend(&mac, USD).await;
    let (job, holder) = world.building(&mac, cap(2 * USD)).await;
    world.clock.set(Period::Day.end(world.now()).unwrap());
    assert_eq!(world.spent_today().await, Usd::ZERO);
    assert_eq!(short(&world.try_claim(&mac, 2 * USD).await), Some((Period::Day, USD)), "it still runs");
    world.hold(job.id, &holder, [report(2 * USD)]).await.unwrap();
    assert_eq!(world.spent_today().await, 2 * USD);
    assert_eq!(world.budget().await.spent_in(Period::Total, world.now()).usd, 3 * USD);
    world.balanced().await;
}

pub async fn a_higher_limit_opens_it_again(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(2 * USD))).await;
    world.spend(&mac, 2 * USD).await;
    let raised = world.change_budget(BudgetChange::Set(day(4 * USD))).await;
    assert_eq!((raised.paused.as_ref(), raised.rev.0), (None, 2));
    assert_eq!(
        world.event_kinds().await[2..],
        [EventKind::BudgetChanged, EventKind::BudgetResumed],
        "and both are told"
    );
    assert!(granted(&world.try_claim(&mac, 2 * USD).await));
    // A lower one closes it at once.
    let lowered = world.change_budget(BudgetChange::Set(day(USD))).await;
    assert_eq!(lowered.paused.unwrap().cause, PauseCause::Limit { period: Period::Day });
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await));
    world.balanced().await;
}

pub async fn an_operators_pause_stays(world: &World) {
    let mac = world.factory("mac-1").await;
    let reason = Some("the forge is down".to_owned());
    let (held, holder) = world.building(&mac, cap(USD)).await;
    let closed = world.change_budget(BudgetChange::Pause { reason: reason.clone() }).await;
    assert_eq!(closed.paused.unwrap().cause, PauseCause::Operator { by: user(), reason });
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await));
    world.hold(held.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    world.advance(Duration::from_hours(24 * 40));
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await), "no period ends it");
    world.change_budget(BudgetChange::Pause { reason: None }).await;
    assert_eq!(world.event_kinds().await, [EventKind::BudgetPaused], "it was paused already");
    assert_eq!(world.change_budget(BudgetChange::Resume).await.paused, None);
    world.change_budget(BudgetChange::Resume).await;
    assert_eq!(world.event_kinds().await, [EventKind::BudgetPaused, EventKind::BudgetResumed]);
    assert_eq!(world.reported().await[0].actor, user());
    assert!(granted(&world.try_claim(&mac, Usd::LEAST).await));
    world.balanced().await;
}

pub async fn a_resumed_budget_without_money_stays_closed(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(USD))).await;
    world.spend(&mac, USD).await;
    let resumed = world.change_budget(BudgetChange::Resume).await;
    assert_eq!(resumed.paused.unwrap().cause, PauseCause::Limit { period: Period::Day });
    assert!(paused(&world.try_claim(&mac, Usd::LEAST).await));
    assert_eq!(world.event_kinds().await[2..], [EventKind::BudgetResumed, EventKind::BudgetExhausted]);
}

pub async fn a_correction_counts_like_a_charge(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(2 * USD))).await;
    world.spend(&mac, 2 * USD).await;
    let correct = |usd: Usd| BudgetChange::Correct { usd, reason: "billed twice".to_owned() };
    let corrected = world.change_budget(correct(-USD)).await;
    assert_eq!((corrected.spent_in(Period::Day, world.now()).usd, corrected.paused), (USD, None));
    let reported = world.reported().await;
    assert_eq!(reported[2].kind, EventKind::BudgetChanged);
    assert!(reported[2].cause.contains("billed twice"), "{}", reported[2].cause);
    assert_eq!((reported[3].kind, reported.len()), (EventKind::BudgetResumed, 4));
    let added = world.change_budget(correct(USD)).await;
    assert_eq!(added.paused.unwrap().cause, PauseCause::Limit { period: Period::Day });
    let (from, to) = (Period::Day.start(world.now()), Period::Day.end(world.now()).unwrap());
    let read = world.store.read();
    let ledger = read.burndown(&product("demo"), from, to, Duration::from_hours(24)).await.unwrap();
    assert_eq!((ledger.len(), ledger[0].usd, ledger[0].runs), (1, 2 * USD, 1));
}

pub async fn a_repeated_change_is_answered(world: &World) {
    let changes = [
        BudgetChange::Set(day(5 * USD)),
        BudgetChange::Correct { usd: Usd::from_micros(7), reason: "found it".to_owned() },
        BudgetChange::Pause { reason: None },
        BudgetChange::Resume,
    ];
    for change in changes {
        let before = world.budget().await;
        let write = ChangeBudget { if_rev: Some(before.rev), ..write(change) };
        let first = world.store.change_budget(write.clone()).await.unwrap();
        assert_eq!(first.rev, before.rev.next());
        let head = world.store.read().feed_head().await.unwrap();
        world.advance(Duration::from_secs(1));
        assert_eq!(world.store.change_budget(write.clone()).await.unwrap(), first, "{write:?}");
        assert_eq!(world.budget().await, first);
        assert_eq!(world.store.read().feed_head().await.unwrap(), head);
    }
    // What is so already is no change, and keeps the revision.
    let same = world.change_budget(BudgetChange::Set(day(5 * USD))).await;
    assert_eq!((same.rev.0, world.spent_today().await), (4, Usd::from_micros(7)));
}

/// A batch that is run again after a commit that nobody knows of, or a person who tries again later.
pub async fn a_correction_is_booked_once_whatever_comes_between(world: &World) {
    let correct = |micros: i64| {
        write(BudgetChange::Correct { usd: Usd::from_micros(micros), reason: "found it".to_owned() })
    };
    let corrections = [correct(3), correct(4)];
    let pause = write(BudgetChange::Pause { reason: None });
    let all = corrections.iter().chain([&pause]);
    let done = join_all(all.map(|write| world.store.change_budget(write.clone()))).await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    let (before, head) = (world.budget().await, world.store.read().feed_head().await.unwrap());
    assert_eq!((world.spent_today().await, before.rev.0), (Usd::from_micros(7), 3));
    world.advance(Duration::from_secs(1));
    for store in world.handles().await {
        for write in &corrections {
            assert_eq!(store.change_budget(write.clone()).await.unwrap(), before);
        }
        let twice = corrections.iter().map(|write| store.change_budget(write.clone()));
        assert!(join_all(twice).await.into_iter().all(|answer| answer.unwrap() == before));
    }
    assert_eq!((world.budget().await, world.store.read().feed_head().await.unwrap()), (before, head));
    // Elsewhere the same key is another's.
    let elsewhere = ChangeBudget { product: product("other"), ..corrections[0].clone() };
    let other = world.store.change_budget(elsewhere).await.unwrap();
    assert_eq!(other.spent_in(Period::Day, world.now()).usd, Usd::from_micros(3));
}

pub async fn another_revision_of_a_budget_is_refused(world: &World) {
    let set = world.change_budget(BudgetChange::Set(day(5 * USD))).await;
    for rev in [giga_domain::Rev(0), set.rev.next()] {
        let write = ChangeBudget { if_rev: Some(rev), ..write(BudgetChange::Pause { reason: None }) };
        let error = world.store.change_budget(write).await.unwrap_err();
        let refused = |given, current| given == rev && current == set.rev;
        assert!(
            matches!(error, StoreError::RevMismatch { given, current } if refused(given, current)),
            "{error:?}"
        );
    }
    assert_eq!(world.budget().await, set);
}

pub async fn products_have_budgets_of_their_own(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(USD))).await;
    let new = NewJob { product: product("other"), ..world.new_job(cap(3 * USD)) };
    let other = world.submit(new).await;
    assert!(granted(&world.claim(other.id, &mac).await));
    assert!(granted(&world.try_claim(&mac, USD).await));
    assert_eq!(world.budget_of(&product("other")).await.reserved, 3 * USD);
    let all = world.store.read().budgets().await.unwrap();
    let names: Vec<&str> = all.iter().map(|budget| budget.product.as_str()).collect();
    assert_eq!(names, ["demo", "other"]);
    world.balanced().await;
}

pub async fn a_budget_comes_back_whole(world: &World) {
    let mac = world.factory("mac-1").await;
    let limits = PerPeriod {
        day: Some(Usd::LEAST),
        week: Some(Usd::from_micros(i64::from(u32::MAX) * 9)),
        month: None,
        total: Some(9 * USD),
    };
    world.change_budget(BudgetChange::Set(BudgetSettings { limits, job_cap: Some(Usd::ZERO) })).await;
    world.assigned(&mac, cap(Usd::ZERO)).await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let report = RunReport { tokens: Some(77), cost: Some(Usd::from_micros(3)), ..RunReport::default() };
    world.hold(job.id, &holder, [HolderAction::Report(report)]).await.unwrap();
    let reason = Some("'quoted' \"twice\" \\ 🏭".to_owned());
    let reported = world.change_budget(BudgetChange::Pause { reason }).await;
    assert_eq!(reported.spent_in(Period::Total, world.now()).tokens, 77);
    for store in world.handles().await {
        assert_eq!(store.read().budget(&reported.product).await.unwrap().as_ref(), Some(&reported));
        assert_eq!(store.read().budgets().await.unwrap(), std::slice::from_ref(&reported));
    }
}

/// Fifty go for what fits ten.
pub async fn racing_claims_never_start_an_eleventh(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(10 * USD))).await;
    let handles = world.handles().await;
    for round in 0..3_u64 {
        let mut jobs: Vec<JobId> = Vec::new();
        for _ in 0..50 {
            jobs.push(world.submitted(cap(USD)).await.id);
        }
        let mut racing = JoinSet::new();
        for (number, id) in jobs.iter().enumerate() {
            let store = handles[number % handles.len()].clone();
            let request = request(1_000_000 + round * 100 + number as u64);
            let claim = giga_ports::store::Claim { request, ..world.claim_of(*id, &mac) };
            racing.spawn(async move { store.claim(claim).await.unwrap() });
        }
        let answers = racing.join_all().await;
        let won: Vec<_> = answers.iter().filter(|answer| granted(answer)).collect();
        assert_eq!(won.len(), 10);
        let lost = answers.iter().filter_map(short).collect::<Vec<_>>();
        assert_eq!(lost, vec![(Period::Day, USD); 40]);
        assert_eq!(world.count(Stage::Assigned).await, 10);
        world.balanced().await;
        // All let go at once; nothing was spent, so the next round has it all again.
        let mut ending = JoinSet::new();
        for (number, claimed) in answers.into_iter().enumerate() {
            let Claimed::Granted(job) = claimed else { continue };
            let store = handles[number % handles.len()].clone();
            let actions = vec![HolderAction::Release { checkpoint: None }];
            ending.spawn(async move {
                let write = Hold { job: job.id, holder: holder(&job), actions };
                store.hold(write).await.unwrap()
            });
        }
        ending.join_all().await;
        assert_eq!(world.budget().await.reserved, Usd::ZERO);
    }
}

/// Everybody claims, spends and ends at the same time: not a cent is lost, and nothing is spent twice.
pub async fn racing_runs_keep_the_books(world: &World) {
    let mac = world.factory("mac-1").await;
    let limit = 40 * USD;
    world.change_budget(BudgetChange::Set(day(limit))).await;
    let handles = world.handles().await;
    let mut racing = JoinSet::new();
    for number in 0..60_usize {
        let job = world.submitted(cap(USD)).await.id;
        let store = handles[number % handles.len()].clone();
        let claim = world.claim_of(job, &mac);
        racing.spawn(async move {
            let Claimed::Granted(job) = store.claim(claim).await.unwrap() else { return Usd::ZERO };
            let spent = giga_domain::Spend { usd: Usd::from_micros(number as i64), tokens: 1 };
            let steps = [
                vec![HolderAction::Start],
                vec![HolderAction::Spend(spent), HolderAction::Renew { lease: LEASE }],
                vec![report(USD - Usd::LEAST)],
            ];
            for actions in steps {
                store.hold(Hold { job: job.id, holder: holder(&job), actions }).await.unwrap();
            }
            USD - Usd::LEAST
        });
    }
    let spent: Usd = racing.join_all().await.into_iter().sum();
    let budget = world.budget().await;
    assert_eq!((budget.reserved, world.spent_today().await), (Usd::ZERO, spent));
    assert!(spent <= limit, "{spent}");
    world.balanced().await;
    let day = (Period::Day.start(world.now()), Period::Day.end(world.now()).unwrap());
    let read = world.store.read();
    let ledger = read.burndown(&product("demo"), day.0, day.1, Duration::from_hours(24)).await.unwrap();
    assert_eq!(ledger.iter().map(|bucket| bucket.usd).sum::<Usd>(), spent);
}
