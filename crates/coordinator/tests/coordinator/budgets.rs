//! Budgets through the coordinator: what is closed is not started, what opens is, and nobody has to ask.

use std::sync::Arc;
use std::time::Duration;

use crate::common::counted::Counted;
use crate::common::{Fleet, operator, request};
use giga_coordinator::{Coordinator, Directive, Error, FactoryStream, Grant, Options, Ports, StreamEvent};
use giga_domain::budget::PerPeriod;
use giga_domain::factory::{Advertised, FactoryRepo};
use giga_domain::{
    AlertKind, Budget, BudgetChange, BudgetSettings, Delivery, EventKind, Holder, HolderAction, Job,
    OperatorAction, ProductId, ProductSettings, RunReport, Spend, Stage, Usd,
};
use giga_ports::StoreError;
use giga_testkit::ManualClock;

const LONG: Duration = Duration::from_secs(20);
const USD: Usd = Usd::from_dollars(1);

fn demo() -> ProductId {
    "demo".parse().unwrap()
}

async fn change(fleet: &Fleet, change: BudgetChange) -> Budget {
    fleet.coordinator.change_budget(demo(), change, None, operator()).await.unwrap().budget
}

async fn limit_a_day(fleet: &Fleet, dollars: i64) {
    let limits = PerPeriod { day: Some(Usd::from_dollars(dollars)), ..PerPeriod::default() };
    change(fleet, BudgetChange::Set(BudgetSettings { limits, job_cap: None })).await;
}

async fn next_grant(stream: &mut FactoryStream) -> Grant {
    let next = async {
        loop {
            match stream.next().await {
                Some(StreamEvent::Grant(grant)) => return *grant,
                Some(StreamEvent::News) => {}
                None => panic!("the stream ended"),
            }
        }
    };
    tokio::time::timeout(LONG, next).await.expect("no grant came")
}

fn cost(dollars: i64) -> RunReport {
    RunReport { cost: Some(Usd::from_dollars(dollars)), ..RunReport::default() }
}

async fn finish_for(fleet: &Fleet, job: &Job, dollars: i64) -> Job {
    fleet.hold(job, vec![HolderAction::Start, HolderAction::Report(cost(dollars))]).await.unwrap()
}

#[tokio::test]
async fn a_pause_stops_polls_and_a_resume_lets_them_on() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let job = fleet.submit("name: one").await;
    change(&fleet, BudgetChange::Pause { reason: Some("the engine loops".to_owned()) }).await;
    assert_eq!(fleet.claim(&mac, "r1").await, None);
    assert_eq!(fleet.coordinator.claims().candidates(&mac, 9).await.unwrap(), []);
    let other = fleet.try_submit_for("other", "name: two").await.unwrap().job;
    assert_eq!(fleet.claim(&mac, "r2").await.unwrap().id, other.id, "others go on");
    let (_, explanation) = fleet.coordinator.explain(job.id).await.unwrap();
    assert_eq!(explanation.summary, "waiting: the product `demo` is paused: the engine loops");
    assert_eq!(explanation.remedies[0].command.as_deref(), Some("giga budget resume demo"));

    change(&fleet, BudgetChange::Resume).await;
    assert_eq!(fleet.coordinator.claims().candidates(&mac, 9).await.unwrap().len(), 1);
    assert_eq!(fleet.claim(&mac, "r3").await.unwrap().id, job.id);
}

#[tokio::test]
async fn what_a_cancelled_run_gives_back_starts_the_next_job() {
    let fleet = Fleet::by_hand().await;
    limit_a_day(&fleet, 10).await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    fleet.submit("name: one\nbudget: {usd: 9}").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.hold(&held, vec![HolderAction::Start]).await.unwrap();
    fleet.coordinator.operate(held.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    let next = fleet.submit("name: two\nbudget: {usd: 5}").await;
    assert_eq!(fleet.claim(&mac, "r2").await, None, "its holder may have spent all of it");
    let bill = HolderAction::Spend(Spend { usd: 2 * USD, tokens: 0 });
    fleet.hold(&held, vec![bill, HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(fleet.claim(&mac, "r3").await.unwrap().id, next.id);
}

#[tokio::test]
async fn a_pause_stops_offers_and_a_resume_brings_them_down_the_stream() {
    let fleet = Fleet::start().await;
    fleet.until_it_leads().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 4).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1).unwrap();
    change(&fleet, BudgetChange::Pause { reason: None }).await;
    let job = fleet.submit("name: one").await;
    // Something else goes through: the dispatcher has looked at both.
    let other = fleet.try_submit_for("other", "name: two").await.unwrap().job;
    let grant = next_grant(&mut stream).await;
    assert_eq!(grant.job().id, other.id);
    grant.delivered();
    assert_eq!(fleet.job(job.id).await.stage(), Stage::Queued);

    change(&fleet, BudgetChange::Resume).await;
    let grant = next_grant(&mut stream).await;
    assert_eq!(grant.job().id, job.id);
    grant.delivered();
    fleet.coordinator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_claims_through_two_coordinators_start_ten_where_ten_fit() {
    let fleet = Fleet::by_hand().await;
    limit_a_day(&fleet, 10).await;
    for n in 0..50 {
        fleet.submit(&format!("name: job-{n}\nbudget: {{usd: 1}}")).await;
    }
    let mac = fleet.factory("mac-1", &[], 50).await;
    let second = fleet.another_by_hand().await;
    let both = [fleet.coordinator.clone(), second];
    let asks = (0..50).map(|n| both[n % 2].claims().claim(mac.clone(), request(format!("r-{n}"))));
    let won = futures::future::join_all(asks).await;
    let won: Vec<Job> = won.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(won.len(), 10);
    let budget = fleet.store.read().budget(&demo()).await.unwrap().unwrap();
    assert_eq!(budget.reserved, 10 * USD);
    // One that ends for less makes room for no more than it left.
    finish_for(&fleet, &won[0], 0).await;
    assert!(fleet.claim(&mac, "again").await.is_some());
    assert_eq!(fleet.claim(&mac, "once-more").await, None);
}

/// An offer is a promise: the next plan must not promise the same dollar to another.
#[tokio::test]
async fn what_is_on_offer_counts_against_the_budget() {
    let fleet = Fleet::by_hand().await;
    assert!(fleet.coordinator.dispatch().lead_once().await.unwrap().is_some());
    limit_a_day(&fleet, 2).await;
    fleet.factory_by(Delivery::Stream, "f1", 9).await;
    for n in 0..5 {
        fleet.submit(&format!("name: job-{n}\nbudget: {{usd: 1}}")).await;
    }
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered.len(), 2);
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered, []);
}

/// What a run overruns is told with its renewals, which are no events: the view learns of it by losing a claim.
#[tokio::test]
async fn a_claim_that_a_budget_refuses_is_not_tried_again_and_again() {
    let fleet = Fleet::by_hand().await;
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    limit_a_day(&fleet, 10).await;
    let mac = fleet.factory("mac-1", &[], 9).await;
    for n in 0..4 {
        fleet.submit(&format!("name: job-{n}\nbudget: {{usd: 1}}")).await;
    }
    coordinator.refresh_once().await.unwrap();
    let held = coordinator.claims().claim(mac.clone(), request("r0")).await.unwrap().unwrap();
    coordinator.refresh_once().await.unwrap();
    let holder = Holder { factory: mac.clone(), epoch: held.epoch };
    let spent = Spend { usd: 10 * USD, tokens: 0 };
    fleet.coordinator.hold(held.id, holder, vec![HolderAction::Start]).await.unwrap();
    coordinator.refresh_once().await.unwrap();
    let holder = Holder { factory: mac.clone(), epoch: held.epoch };
    fleet.coordinator.hold(held.id, holder, vec![HolderAction::Spend(spent)]).await.unwrap();
    coordinator.refresh_once().await.unwrap();

    counted.taken();
    for n in 1..4 {
        assert_eq!(coordinator.claims().claim(mac.clone(), request(format!("r{n}"))).await.unwrap(), None);
    }
    let claims = counted.taken().remove("claim").unwrap_or_default();
    assert!(claims <= 1, "{claims} claims for three asks");
}

#[tokio::test(start_paused = true)]
async fn a_day_that_is_used_up_opens_at_midnight_without_a_call() {
    let clock = Arc::new(ManualClock::at("2026-11-15T23:59:00Z".parse().unwrap()));
    let fleet = Fleet::start_with(clock).await;
    fleet.until_it_leads().await;
    limit_a_day(&fleet, 2).await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 4).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    fleet.submit("name: dear\nbudget: {usd: 2}").await;
    let grant = next_grant(&mut stream).await;
    let dear = grant.job().clone();
    grant.delivered();
    finish_for(&fleet, &dear, 2).await;
    let kinds =
        |events: Vec<giga_domain::Event>| events.into_iter().map(|event| event.kind).collect::<Vec<_>>();
    let history = kinds(fleet.coordinator.feed(giga_domain::FeedPos(0), 99).await.unwrap());
    assert!(history.contains(&EventKind::BudgetExhausted), "{history:?}");

    let waiting = fleet.submit("name: next\nbudget: {usd: 1}").await;
    fleet.coordinator.refresh_once().await.unwrap();
    let (_, explanation) = fleet.coordinator.explain(waiting.id).await.unwrap();
    assert!(
        explanation.remedies.iter().any(|r| r.message.contains("2026-11-16T00:00:00.000Z")),
        "{explanation:?}"
    );
    assert_eq!(fleet.job(waiting.id).await.stage(), Stage::Queued);
    // From here on nobody calls; the factory is heard of, and timers run.
    fleet.clock.advance(Duration::from_secs(61));
    fleet.reached_by(&f1, Delivery::Stream, 4).await;
    let grant = next_grant(&mut stream).await;
    assert_eq!(grant.job().id, waiting.id);
    grant.delivered();
    fleet.coordinator.stop().await;
}

/// Nobody claims, so nobody finds out by losing: only the clock can tell.
#[tokio::test(start_paused = true)]
async fn whoever_waits_to_ask_for_work_is_told_when_the_day_ends() {
    let clock = Arc::new(ManualClock::at("2026-11-15T23:59:00Z".parse().unwrap()));
    let fleet = Fleet::start_with(clock).await;
    let mut changes = fleet.coordinator.budgets_changed();
    limit_a_day(&fleet, 2).await;
    let mut changed_within =
        async |seconds| tokio::time::timeout(Duration::from_secs(seconds), changes.changed()).await.is_ok();
    assert!(changed_within(20).await, "a limit was set");
    assert!(!changed_within(50).await, "nothing happens before");
    assert!(changed_within(20).await, "a minute is over");
    fleet.coordinator.stop().await;
}

#[tokio::test]
async fn alerts_tell_of_budgets_that_are_near_used_up_or_stopped() {
    let fleet = Fleet::by_hand().await;
    limit_a_day(&fleet, 10).await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let alerts = || async {
        let alerts = fleet.coordinator.alerts().await.unwrap();
        alerts.into_iter().map(|alert| (alert.kind, alert.message)).collect::<Vec<_>>()
    };
    fleet.submit("name: one\nbudget: {usd: 7.9}").await;
    fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!(alerts().await, []);
    fleet.submit("name: two\nbudget: {usd: 0.1}").await;
    let two = fleet.claim(&mac, "r2").await.unwrap();
    let near = "the budget of demo is nearly exhausted: $8.00 of $10.00 of the day spent or reserved";
    assert_eq!(alerts().await, [(AlertKind::BudgetNear, near.to_owned())]);
    finish_for(&fleet, &two, 10).await;
    let [(AlertKind::BudgetExhausted, message)] = &alerts().await[..] else { panic!("{:?}", alerts().await) };
    assert!(message.contains("$10.00 of $10.00 of the day; it reopens at"), "{message}");
    change(&fleet, BudgetChange::Pause { reason: Some("enough".to_owned()) }).await;
    let [(AlertKind::BudgetPaused, message)] = &alerts().await[..] else { panic!("{:?}", alerts().await) };
    assert!(message.contains("enough"), "{message}");
}

#[tokio::test]
async fn a_pause_that_stops_what_runs_asks_every_holder_and_costs_no_attempt() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac-1", &[], 9).await;
    let other = fleet.try_submit_for("other", "name: theirs").await.unwrap().job;
    for n in 0..3 {
        fleet.submit(&format!("name: job-{n}")).await;
    }
    let mut held = Vec::new();
    for n in 0..4 {
        held.push(fleet.claim(&mac, &format!("r{n}")).await.unwrap());
    }
    let (_, asked) = fleet.coordinator.pause_budget(demo(), None, true, operator()).await.unwrap();
    assert_eq!(asked, 3);
    for job in &held {
        let holder = Holder { factory: mac.clone(), epoch: job.epoch };
        let directives = fleet.coordinator.renew(job.id, holder, None).await.unwrap().directives;
        assert_eq!(directives, if job.id == other.id { vec![] } else { vec![Directive::Preempt] });
    }
    let mine = held.iter().find(|job| job.id != other.id).unwrap();
    let (_, explanation) = fleet.coordinator.explain(mine.id).await.unwrap();
    assert!(explanation.summary.contains("its product's budget is paused"), "{}", explanation.summary);
    let back = fleet.hold(mine, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!((back.stage(), back.attempts, back.evictions), (Stage::Queued, 0, 0));
    let (_, again) = fleet.coordinator.pause_budget(demo(), None, true, operator()).await.unwrap();
    assert_eq!(again, 0, "nobody is asked twice");
}

#[tokio::test]
async fn a_series_of_what_was_spent_ends_at_what_the_budget_says() {
    let fleet = Fleet::by_hand_with(
        Arc::new(ManualClock::at("2026-11-15T10:00:00Z".parse().unwrap())),
        Arc::new(ManualClock::at("2026-11-15T10:00:00Z".parse().unwrap())),
    )
    .await;
    limit_a_day(&fleet, 10).await;
    let mac = fleet.factory("mac-1", &[], 9).await;
    for n in 0..3_i64 {
        fleet.submit(&format!("name: job-{n}")).await;
        let job = fleet.claim(&mac, &format!("r{n}")).await.unwrap();
        finish_for(&fleet, &job, n).await;
        fleet.clock.advance(Duration::from_hours(1));
        fleet.store_clock.advance(Duration::from_hours(1));
        fleet.coordinator.heartbeat(mac.clone(), crate::common::advertised(&[], 9)).await.unwrap();
    }
    let at = |text: &str| Some(text.parse().unwrap());
    let (from, to) = (at("2026-11-15T09:00:00Z"), at("2026-11-15T14:00:00Z"));
    let hour = Some(Duration::from_hours(1));
    let burndown = fleet.coordinator.burndown(demo(), from, to, hour).await.unwrap();
    let first = &burndown.buckets[0];
    assert_eq!((first.usd, first.cumulative, first.runs), (Usd::ZERO, Usd::ZERO, 0));
    let sums: Vec<Usd> = burndown.buckets.iter().map(|bucket| bucket.cumulative).collect();
    assert_eq!(sums, [0, 0, 1, 3, 3].map(Usd::from_dollars));
    assert_eq!(burndown.limit, Some((giga_domain::Period::Day, 10 * USD)));
    assert_eq!(burndown.total(), 3 * USD);
    let many = fleet.coordinator.burndown(demo(), from, to, Some(Duration::from_secs(1))).await;
    assert!(matches!(many, Err(Error::Invalid(problem)) if problem.field == "bucket"));
    let backwards = fleet.coordinator.burndown(demo(), to, from, hour).await;
    assert!(matches!(backwards, Err(Error::Invalid(problem)) if problem.field == "from"));
}

#[tokio::test]
async fn a_budget_is_set_only_over_what_the_setter_saw() {
    let fleet = Fleet::by_hand().await;
    let empty = fleet.coordinator.budget(&demo()).await.unwrap().budget;
    assert_eq!(empty, Budget::new(demo()));
    let set = BudgetChange::Set(BudgetSettings { job_cap: Some(USD), ..BudgetSettings::default() });
    let first = fleet.coordinator.change_budget(demo(), set, Some(empty.rev), operator()).await.unwrap();
    assert_eq!(first.budget.settings.job_cap, Some(USD));
    let late =
        fleet.coordinator.change_budget(demo(), BudgetChange::Resume, Some(empty.rev), operator()).await;
    assert!(matches!(late, Err(Error::Store(StoreError::RevMismatch { .. }))), "{late:?}");
}

#[tokio::test]
async fn a_job_for_a_repository_of_another_product_is_refused_or_routed_with_a_warning() {
    let fleet = Fleet::by_hand().await;
    fleet.factory("mac-1", &[], 4).await;
    let owns = ProductSettings { repos: vec!["hello".to_owned()], ..ProductSettings::default() };
    fleet.coordinator.set_product("owner".parse().unwrap(), owns, None, operator()).await.unwrap();
    let own = fleet.try_submit_for("owner", "name: mine\nrepo: hello").await.unwrap();
    assert_eq!(own.foreign_repo, None);
    for repo in
        ["hello", "https://example.org/team/hello.git", "git@example.org:Team/HELLO.git", "team/hello"]
    {
        let refused = fleet.try_submit(&format!("name: theirs\nrepo: {repo}")).await;
        let Err(error @ Error::ForeignRepo(_)) = refused else { panic!("{refused:?}") };
        assert!(error.to_string().contains("`hello` belongs to product `owner`"), "{error}");
    }
    // Of two names the more exact one counts.
    let part = ProductSettings { repos: vec!["Team/hello".to_owned()], ..ProductSettings::default() };
    fleet.coordinator.set_product(demo(), part, None, operator()).await.unwrap();
    fleet.try_submit("name: ours\nrepo: https://example.org/team/hello").await.unwrap();
    fleet.try_submit("name: theirs\nrepo: https://example.org/other-team/hello").await.unwrap_err();
    // A short name is no way around the owner of the whole one.
    let mac = fleet.factory("mac-2", &[], 4).await;
    let has =
        Advertised { repos: vec![FactoryRepo::named("team/secret")], ..crate::common::advertised(&[], 4) };
    fleet.coordinator.heartbeat(mac, has).await.unwrap();
    let owns = ProductSettings { repos: vec!["team/secret".to_owned()], ..ProductSettings::default() };
    fleet.coordinator.set_product("keeper".parse().unwrap(), owns, None, operator()).await.unwrap();
    let refused = fleet.try_submit("name: theirs\nrepo: secret").await.unwrap_err();
    assert!(refused.to_string().contains("`team/secret` belongs to product `keeper`"), "{refused}");
    fleet.try_submit_for("keeper", "name: mine\nrepo: secret").await.unwrap();
    fleet.set_flag("foreign_repos", "route").await;
    let routed = fleet.try_submit("name: theirs\nrepo: hello").await.unwrap();
    assert!(routed.foreign_repo.unwrap().to_string().contains("owner"));
    assert_eq!(fleet.try_submit("name: free\nrepo: other").await.unwrap().foreign_repo, None);
}

#[tokio::test]
async fn a_job_that_waits_for_money_does_not_starve() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    fleet.submit("name: one\nbudget: {usd: 2}").await;
    change(&fleet, BudgetChange::Pause { reason: None }).await;
    fleet.clock.advance(Duration::from_mins(40));
    let kinds = || async {
        fleet.reached_by(&mac, Delivery::Poll, 4).await;
        let alerts = fleet.coordinator.alerts().await.unwrap();
        alerts.into_iter().map(|alert| alert.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds().await, [AlertKind::BudgetPaused]);
    change(&fleet, BudgetChange::Resume).await;
    limit_a_day(&fleet, 1).await;
    assert_eq!(kinds().await, [], "the limit is too low for it, which explain says");
    limit_a_day(&fleet, 3).await;
    assert_eq!(kinds().await, [AlertKind::Starvation]);
}

/// Refused at its pickup because the budget was closed: that says nothing about the factory.
#[tokio::test]
async fn a_factory_that_was_refused_for_want_of_money_is_asked_again_once_the_budget_is_open() {
    let fleet = Fleet::by_hand().await;
    fleet.coordinator.dispatch().lead_once().await.unwrap().unwrap();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let job = fleet.submit("name: one").await;
    let dispatch = || async {
        fleet.coordinator.dispatch().lead_once().await.unwrap().unwrap();
        fleet.reached_by(&f1, Delivery::Stream, 1).await;
        fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered
    };
    let offered = dispatch().await;
    change(&fleet, BudgetChange::Pause { reason: None }).await;
    assert_eq!(fleet.coordinator.claims().take_offer(&f1, &offered[0]).await.unwrap(), None);
    let pickup = fleet.job(job.id).await.target().unwrap().pickup_deadline;
    fleet.clock.set(pickup.plus(Duration::from_millis(1)));
    assert_eq!(dispatch().await, []);
    change(&fleet, BudgetChange::Resume).await;
    let again = dispatch().await;
    assert_eq!(again.len(), 1, "it did not miss the first");
    // One that misses it with the budget open is left out as ever.
    let pickup = fleet.job(job.id).await.target().unwrap().pickup_deadline;
    fleet.clock.set(pickup.plus(Duration::from_millis(1)));
    assert_eq!(dispatch().await, []);
}
