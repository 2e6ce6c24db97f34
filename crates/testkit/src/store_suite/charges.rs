//! What a run costs: reserved when it is claimed, reported while it goes on, charged once when its lease ends.

use std::time::Duration;

use giga_domain::{
    Budget, BudgetChange, Charge, ChargeHow, EventKind, EventSeq, FactoryId, Holder, HolderAction, Job,
    JobId, OperatorAction, Period, Refusal, Spend, Stage, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{EvictJobs, ExpireLeases, Hold, NewEviction, NewJob, SpendBucket};

use super::World;
use super::budgets::{USD, cap, day, report};
use super::world::{LEASE, fail, product, user};

const CENT: Usd = Usd::from_micros(10_000);

fn reported(usd: Usd) -> HolderAction {
    HolderAction::Spend(Spend { usd, tokens: usd.micros().unsigned_abs() / 100 })
}

async fn running(world: &World, factory: &FactoryId) -> (Job, Holder) {
    let (job, holder) = world.building(factory, cap(USD)).await;
    let job = world.hold(job.id, &holder, [reported(30 * CENT)]).await.unwrap();
    world.balanced().await;
    (job, holder)
}

async fn charges(world: &World, job: JobId) -> Vec<(i64, u64, ChargeHow)> {
    let charges = world.store.read().charges(job).await.unwrap();
    charges.into_iter().map(|charge| (charge.usd.micros(), charge.tokens, charge.how)).collect()
}

async fn spent(world: &World) -> Usd {
    world.budget().await.spent_in(Period::Total, world.now()).usd
}

pub async fn every_end_settles_what_was_reserved(world: &World) {
    let mac = world.factory("mac-1").await;
    let release = || HolderAction::Release { checkpoint: None };
    let ends: [(&str, Vec<HolderAction>, i64); 6] = [
        ("report", vec![report(40 * CENT)], 40),
        ("report of less", vec![report(20 * CENT)], 30),
        ("fail", vec![fail(false)], 30),
        ("fail, to be tried again", vec![fail(true)], 30),
        ("release", vec![release()], 30),
        ("release with the last figure", vec![reported(35 * CENT), release()], 35),
    ];
    let mut sum = Usd::ZERO;
    for (case, actions, cents) in ends {
        let (job, holder) = running(world, &mac).await;
        assert_eq!(world.budget().await.reserved, USD, "{case}");
        world.hold(job.id, &holder, actions.clone()).await.unwrap();
        sum += cents * CENT;
        let budget = world.budget().await;
        assert_eq!((budget.reserved, spent(world).await), (Usd::ZERO, sum), "{case}");
        let [(usd, _, how)] = charges(world, job.id).await[..] else { panic!("{case}: not once") };
        assert_eq!((Usd::from_micros(usd), how), (cents * CENT, ChargeHow::Measured), "{case}");
        // The same words again, after a lost reply.
        world.hold(job.id, &holder, actions).await.unwrap();
        assert_eq!(world.budget().await, budget, "{case}, repeated");
        assert_eq!(charges(world, job.id).await.len(), 1, "{case}, repeated");
    }
}

pub async fn a_cancelled_run_costs_all_that_was_allowed_until_its_holder_tells(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(USD))).await;
    let (job, holder) = running(world, &mac).await;
    world.operate(job.id, OperatorAction::Cancel).await.unwrap();
    assert_eq!(charges(world, job.id).await, [(1_000_000, 3_000, ChargeHow::Assumed)]);
    assert_eq!((world.budget().await.reserved, spent(world).await), (Usd::ZERO, USD));
    assert!(world.budget().await.paused.is_some(), "the day is used up, for all that is known");
    // It learns of it by renewing, which writes nothing.
    world.advance(Duration::from_secs(1));
    world.hold(job.id, &holder, [reported(40 * CENT), HolderAction::Renew { lease: LEASE }]).await.unwrap();
    assert_eq!(spent(world).await, USD);
    let over = world.job(job.id).await;
    let bill = || [reported(45 * CENT), HolderAction::Release { checkpoint: None }];
    let answer = world.hold(job.id, &holder, bill()).await.unwrap();
    assert_eq!((answer.stage(), answer.updated_at), (Stage::Cancelled, over.updated_at));
    assert_eq!(world.job(job.id).await, answer);
    let given_back = (-550_000, 1_500, ChargeHow::Correction);
    assert_eq!(charges(world, job.id).await, [(1_000_000, 3_000, ChargeHow::Assumed), given_back]);
    assert_eq!(spent(world).await, 45 * CENT);
    let budget = world.budget().await;
    assert_eq!((budget.reserved, &budget.paused), (Usd::ZERO, &None));
    let of_job = world.store.read().job_events(job.id, EventSeq(0), 100).await.unwrap();
    let last = of_job.last().unwrap();
    assert_eq!((last.kind, &last.data["usdMicros"]), (EventKind::CostReported, &450_000.into()));
    // Once; and whoever else comes is fenced.
    for store in world.handles().await {
        let write = Hold { job: job.id, holder: holder.clone(), actions: bill().into() };
        assert_eq!(store.hold(write).await.unwrap(), answer);
    }
    let zombie = world.hold(job.id, &holder, [reported(45 * CENT), fail(true)]).await;
    assert!(matches!(zombie, Err(StoreError::Refused(Refusal::Fenced { .. }))), "{zombie:?}");
    assert_eq!((world.budget().await, charges(world, job.id).await.len()), (budget, 2));
    world.balanced().await;
}

/// The day on which it was cancelled gets it back, not the one on which that is told.
pub async fn what_is_given_back_counts_where_it_was_charged(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = running(world, &mac).await;
    world.operate(job.id, OperatorAction::Cancel).await.unwrap();
    let yesterday = world.now();
    world.clock.set(Period::Day.end(yesterday).unwrap().plus(Duration::from_mins(1)));
    let (other, of_other) = world.building(&mac, cap(USD)).await;
    world.hold(other.id, &of_other, [reported(20 * CENT), fail(false)]).await.unwrap();
    let bill = [reported(30 * CENT), HolderAction::Release { checkpoint: None }];
    world.hold(job.id, &holder, bill).await.unwrap();
    let today = world.budget().await.spent_in(Period::Day, world.now()).usd;
    assert_eq!((today, spent(world).await), (20 * CENT, 50 * CENT));
    let (from, to) = (Period::Day.start(yesterday), Period::Day.end(world.now()).unwrap());
    let day = Duration::from_hours(24);
    let days = world.store.read().burndown(&product("demo"), from, to, day).await.unwrap();
    let drawn: Vec<i64> = days.iter().map(|bucket| bucket.usd.micros()).collect();
    assert_eq!(drawn, [300_000, 200_000]);
}

pub async fn silence_at_work_costs_all_that_was_allowed(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = running(world, &mac).await;
    let (idle, _) = world.assigned(&mac, cap(USD)).await;
    assert_eq!(world.budget().await.reserved, 2 * USD);
    world.advance(LEASE);
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs.len(), 2);
    assert_eq!(charges(world, job.id).await, [(1_000_000, 3_000, ChargeHow::Assumed)]);
    assert_eq!(charges(world, idle.id).await, [], "one that had not begun has spent nothing");
    assert_eq!((world.budget().await.reserved, spent(world).await), (Usd::ZERO, USD));
    let run = world.store.read().runs(job.id).await.unwrap().pop().unwrap();
    assert_eq!(run.report.cost, Some(30 * CENT), "the run shows what is known");
    world.balanced().await;
}

pub async fn an_eviction_is_charged_like_any_end(world: &World) {
    let mac = world.factory("mac-1").await;
    let (willing, holder) = running(world, &mac).await;
    let (silent, _) = running(world, &mac).await;
    let (busy, of_busy) = running(world, &mac).await;
    let ask = |job: &Job| NewEviction { job: job.id, rev: job.rev, for_job: Some(JobId::MAX) };
    let asked = vec![ask(&willing), ask(&silent), ask(&busy)];
    let grace = LEASE / 2;
    assert_eq!(
        world.store.evict(EvictJobs { term: None, asked, grace, actor: user() }).await.unwrap(),
        [true; 3]
    );
    assert_eq!(world.budget().await.reserved, 3 * USD, "they still run");
    world.hold(busy.id, &of_busy, [reported(40 * CENT), HolderAction::Renew { lease: LEASE }]).await.unwrap();
    let release = HolderAction::Release { checkpoint: None };
    world.hold(willing.id, &holder, [reported(50 * CENT), release]).await.unwrap();
    world.balanced().await;
    world.advance(grace);
    let taken = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs;
    assert_eq!((taken.len(), taken.contains(&silent.id), taken.contains(&busy.id)), (2, true, true));
    assert_eq!(charges(world, busy.id).await, [(1_000_000, 4_000, ChargeHow::Assumed)]);
    assert_eq!(charges(world, willing.id).await, [(500_000, 5_000, ChargeHow::Measured)]);
    assert_eq!(charges(world, silent.id).await, [(1_000_000, 3_000, ChargeHow::Assumed)]);
    assert_eq!((world.budget().await.reserved, spent(world).await), (Usd::ZERO, 250 * CENT));
}

pub async fn what_is_told_twice_or_smaller_counts_once(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, cap(USD)).await;
    let before = world.snapshot(job.id).await;
    for (cents, known) in [(30, 30), (30, 30), (20, 30), (31, 31)] {
        let job = world.hold(job.id, &holder, [reported(cents * CENT)]).await.unwrap();
        let lease = job.lease().unwrap();
        assert_eq!((lease.spent.usd, lease.reserved), (known * CENT, USD));
        assert_eq!(world.job(job.id).await, job);
    }
    let after = world.snapshot(job.id).await;
    assert_eq!((after.events, after.feed_head, after.queue), (before.events, before.feed_head, before.queue));
    assert_eq!(after.job.unwrap().rev, job.rev, "claims elsewhere must not notice it");
    assert_eq!(spent(world).await, Usd::ZERO, "it is charged at the end");
    world.hold(job.id, &holder, [fail(false)]).await.unwrap();
    assert_eq!(spent(world).await, 31 * CENT);
}

pub async fn an_overrun_is_reserved_at_once(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(2 * USD))).await;
    let (job, holder) = world.building(&mac, cap(USD)).await;
    let waiting = world.submitted(cap(USD)).await;
    world.hold(job.id, &holder, [reported(130 * CENT), HolderAction::Renew { lease: LEASE }]).await.unwrap();
    assert_eq!(world.budget().await.reserved, 130 * CENT);
    let lost = world.claim(waiting.id, &mac).await;
    assert!(matches!(lost, giga_ports::store::Claimed::Lost(giga_ports::store::Lost::Budget(_))), "{lost:?}");
    world.balanced().await;
    world.hold(job.id, &holder, [report(130 * CENT)]).await.unwrap();
    assert_eq!((world.budget().await.reserved, spent(world).await), (Usd::ZERO, 130 * CENT));
}

/// The very same grant, asked for again after a lost reply.
pub async fn a_repeated_claim_sets_aside_once(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(USD))).await;
    let job = world.submitted(cap(USD)).await;
    let claim = world.claim_of(job.id, &mac);
    for _ in 0..3 {
        let claimed = world.store.claim(claim.clone()).await.unwrap();
        assert!(matches!(claimed, giga_ports::store::Claimed::Granted(_)), "{claimed:?}");
        assert_eq!(world.budget().await.reserved, USD);
    }
    world.balanced().await;
}

pub async fn each_run_has_a_line_of_its_own(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(cap(USD)).await;
    let mut expected = Vec::new();
    for cents in [10, 20, 30_i64] {
        let held = world.granted(job.id, &mac).await;
        let holder = super::world::holder(&held);
        world.advance(Duration::from_secs(1));
        let actions = [reported(cents * CENT), HolderAction::Release { checkpoint: None }];
        world.hold(job.id, &holder, actions).await.unwrap();
        expected.push(Charge {
            product: job.product.clone(),
            run: Some((job.id, held.epoch)),
            at: world.now(),
            usd: cents * CENT,
            tokens: cents.unsigned_abs() * 100,
            how: ChargeHow::Measured,
        });
    }
    assert_eq!(world.store.read().charges(job.id).await.unwrap(), expected);
    assert_eq!(world.store.read().charges(JobId::MIN).await.unwrap(), []);
}

pub async fn the_ledger_outlives_the_jobs(world: &World) {
    let mac = world.factory("mac-1").await;
    let new = world.new_job(cap(USD));
    let mut left = Vec::new();
    for round in 1..=2 {
        // Submitted once more after its retirement it is another job, whose epochs begin at the start.
        let job = world.submit(NewJob { spec: new.spec.clone(), ..new.clone() }).await;
        let held = world.granted(job.id, &mac).await;
        let actions = [HolderAction::Start, report(USD)];
        world.hold(job.id, &super::world::holder(&held), actions).await.unwrap();
        world.operate(job.id, OperatorAction::Ship).await.unwrap();
        world.advance(Duration::from_secs(1));
        assert_eq!(world.retire(world.now(), 10).await, 1);
        left = world.store.read().charges(new.id).await.unwrap();
        assert_eq!((left.len(), spent(world).await), (round, round as i64 * USD));
    }
    assert!(left.is_sorted_by_key(|charge| charge.at));
    world.balanced().await;
}

pub async fn a_burndown_sums_stretches(world: &World) {
    let mac = world.factory("mac-1").await;
    let from = world.now();
    let hour = Duration::from_hours(1);
    let spend = async |cents: i64| {
        let (job, holder) = world.building(&mac, cap(USD)).await;
        world.hold(job.id, &holder, [reported(cents * CENT), fail(false)]).await.unwrap();
    };
    spend(10).await;
    world.clock.set(from.plus(hour).minus(Duration::from_millis(1)));
    spend(20).await;
    world.clock.set(from.plus(hour * 2));
    spend(40).await;
    let reason = "a bill that came by mail".to_owned();
    world.change_budget(BudgetChange::Correct { usd: Usd::from_micros(-7), reason }).await;
    world.advance(hour);
    spend(80).await;
    let bucket = |hours: u32, micros: i64, tokens: u64, runs: u64| SpendBucket {
        from: from.plus(hour * hours),
        usd: Usd::from_micros(micros),
        tokens,
        runs,
    };
    let read = world.store.read();
    let demo = product("demo");
    let burned = read.burndown(&demo, from, from.plus(hour * 3), hour).await.unwrap();
    let expected = [bucket(0, 300_000, 3_000, 2), bucket(2, 399_993, 4_000, 1)];
    assert_eq!(burned, expected, "empty stretches are left out, and the end is not part of it");
    let later = read.burndown(&demo, from.plus(hour), from.plus(hour * 9), hour * 8).await.unwrap();
    assert_eq!(later, [bucket(1, 1_199_993, 12_000, 2)], "stretches begin where they are asked from");
    assert_eq!(read.burndown(&product("other"), from, from.plus(hour * 9), hour).await.unwrap(), []);
}

pub async fn a_lease_comes_back_whole(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, cap(USD)).await;
    let spend = Spend { usd: 5 * USD, tokens: u64::from(u32::MAX) * 5 };
    world.hold(job.id, &holder, [HolderAction::Spend(spend)]).await.unwrap();
    let asked = NewEviction { job: job.id, rev: job.rev, for_job: Some(JobId::MIN) };
    assert_eq!(
        world
            .store
            .evict(EvictJobs { term: None, asked: vec![asked], grace: LEASE, actor: user() })
            .await
            .unwrap(),
        [true]
    );
    let lease = world.job(job.id).await.lease().cloned().unwrap();
    assert_eq!((lease.spent, lease.reserved), (spend, 5 * USD));
    assert_eq!(lease.evict.unwrap().for_job, Some(JobId::MIN));
    for store in world.handles().await {
        let live = store.read().live_jobs(None, 10).await.unwrap();
        assert_eq!(live[0].lease(), Some(&lease));
        let granted = store.read().grant(&lease.factory, &lease.request).await.unwrap().unwrap();
        assert_eq!((granted.lease(), granted.stage()), (Some(&lease), Stage::Building));
    }
    let blank = Budget::new(product("other"));
    assert_eq!(world.budget_of(&blank.product).await, blank);
}
