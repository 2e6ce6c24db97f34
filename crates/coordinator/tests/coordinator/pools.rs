//! Factories that come with the work and leave after it, step by step on a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_coordinator::{Coordinator, Options, PoolState, Ports};
use giga_domain::{
    BudgetChange, BudgetSettings, Delivery, DriverKind, EventKind, FactoryId, FactoryState, Job, JobId,
    MemberState, PoolSettings, Stage, TokenId, Usd,
};
use giga_ports::{DriverError, PoolDriver, PoolDrivers, StartOrder, StopOrder};
use giga_scheduler::BlockerCode;
use parking_lot::Mutex;

use crate::common::{Fleet, advertised, factory_id, operator};

const IDLE: Duration = Duration::from_mins(1);
const TIMEOUT: Duration = Duration::from_mins(5);

/// What was asked of the driver, and what it says next.
#[derive(Default)]
struct Yard(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    started: Vec<FactoryId>,
    stopped: Vec<FactoryId>,
    credentials: BTreeMap<FactoryId, String>,
    /// Said instead of starting one.
    refuses: Option<DriverError>,
    dead: Vec<FactoryId>,
}

#[async_trait]
impl PoolDriver for Yard {
    fn kind(&self) -> DriverKind {
        DriverKind::Process
    }

    async fn start(&self, order: &StartOrder) -> Result<String, DriverError> {
        let mut asked = self.0.lock();
        if let Some(DriverError { reason, transient }) = &asked.refuses {
            return Err(DriverError { reason: reason.clone(), transient: *transient });
        }
        asked.started.push(order.factory.clone());
        asked.credentials.insert(order.factory.clone(), order.credential.clone());
        Ok(format!("handle of {}", order.factory))
    }

    async fn stop(&self, order: &StopOrder) -> Result<(), DriverError> {
        if order.handle.is_none() && self.0.lock().refuses.is_some() {
            return Err(DriverError::lasting("the program `x` is not there"));
        }
        self.0.lock().stopped.push(order.factory.clone());
        Ok(())
    }

    async fn is_alive(&self, order: &StopOrder) -> Result<Option<bool>, DriverError> {
        Ok(Some(!self.0.lock().dead.contains(&order.factory)))
    }
}

struct World {
    fleet: Fleet,
    coordinator: Arc<Coordinator>,
    yard: Arc<Yard>,
}

impl World {
    async fn start() -> Self {
        let fleet = Fleet::by_hand().await;
        let (coordinator, yard) = Self::leader(&fleet).await;
        Self { fleet, coordinator, yard }
    }

    async fn leader(fleet: &Fleet) -> (Arc<Coordinator>, Arc<Yard>) {
        let yard = Arc::new(Yard::default());
        let pool_drivers = PoolDrivers::new([yard.clone() as Arc<dyn PoolDriver>]);
        pool_drivers.listening_at("http://127.0.0.1:7717".to_owned());
        let ports = Ports { pool_drivers, ..fleet.ports.clone() };
        let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
        assert!(coordinator.dispatch().lead_once().await.unwrap().is_some());
        (coordinator, yard)
    }

    async fn set(&self, settings: PoolSettings) {
        self.coordinator.pools().set("p".parse().unwrap(), settings, None, operator()).await.unwrap();
    }

    /// Until nothing more is to be done at this moment.
    async fn settle(&self) {
        self.coordinator.dispatch().lead_once().await.unwrap();
        for _ in 0..4 {
            self.coordinator.pools().pools_once().await.unwrap();
        }
    }

    async fn pass(&self, time: Duration) {
        self.fleet.clock.advance(time);
        self.settle().await;
    }

    fn started(&self) -> usize {
        self.yard.0.lock().started.len()
    }

    fn stopped(&self) -> usize {
        self.yard.0.lock().stopped.len()
    }

    /// Each member that was started and is not there yet enrolls and says what it has.
    async fn all_arrive(&self) -> Vec<FactoryId> {
        let members = self.fleet.store.read().pool_members().await.unwrap();
        let starting = members.into_iter().filter(|member| member.state == MemberState::Starting);
        let mut arrived = Vec::new();
        for member in starting {
            let id = member.factory;
            let token: TokenId = "credential".parse().unwrap();
            self.coordinator.pools().enroll(&member.pool, Some(&id), None, token).await.unwrap();
            self.hear(&id).await;
            arrived.push(id);
        }
        self.settle().await;
        arrived
    }

    async fn hear(&self, id: &FactoryId) {
        let says = giga_domain::factory::Advertised {
            delivery: Some(Delivery::Poll),
            ..advertised(&["engine:shell"], 1)
        };
        self.coordinator.heartbeat(id.clone(), says).await.unwrap();
    }

    async fn claim(&self, factory: &FactoryId, name: &str) -> Job {
        let request = name.parse().unwrap();
        self.coordinator.claims().claim(factory.clone(), request).await.unwrap().expect("there is work")
    }

    async fn members(&self) -> Vec<MemberState> {
        let all = self.fleet.store.read().pool_members().await.unwrap();
        all.into_iter().map(|member| member.state).collect()
    }

    async fn summary(&self, job: JobId) -> String {
        self.coordinator.explain(job).await.unwrap().1.summary
    }

    async fn state(&self) -> PoolState {
        self.coordinator.pools().one(&"p".parse().unwrap()).await.unwrap().state
    }

    async fn drains(&self, factory: &FactoryId) -> bool {
        let known = self.fleet.store.read().factory(factory).await.unwrap();
        known.is_some_and(|factory| factory.state == FactoryState::Draining)
    }
}

fn settings(max: u32) -> PoolSettings {
    PoolSettings { max, idle: IDLE, start_timeout: TIMEOUT, ..PoolSettings::default() }
}

#[tokio::test]
async fn nothing_runs_until_there_is_work_and_nothing_stays_after_it() {
    let world = World::start().await;
    world.set(settings(3)).await;
    world.settle().await;
    assert_eq!((world.started(), world.state().await), (0, PoolState::Quiet));

    let job = world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    assert_eq!((world.started(), world.members().await), (1, vec![MemberState::Starting]));
    assert_eq!(world.summary(job.id).await, "a factory of pool p is starting, ordered 0 s ago");
    world.pass(Duration::from_secs(30)).await;
    assert_eq!(world.started(), 1, "it is on its way");

    let [first] = &world.all_arrive().await[..] else { panic!("one") };
    assert_eq!(world.members().await, [MemberState::Running]);
    let held = world.claim(first, "r1").await;
    world.pass(IDLE * 3).await;
    world.hear(first).await;
    world.settle().await;
    assert!(!world.drains(first).await, "it works");
    world.fleet.finish(&held).await;
    world.settle().await;
    world.pass(Duration::from_secs(59)).await;
    world.hear(first).await;
    assert!(!world.drains(first).await);
    world.pass(Duration::from_secs(2)).await;
    assert!(world.drains(first).await, "its time is over");

    assert_eq!(world.coordinator.leave(first.clone(), operator()).await.unwrap(), 0);
    world.settle().await;
    assert_eq!((world.stopped(), world.members().await), (1, vec![]));
    assert_eq!(world.fleet.store.read().factories().await.unwrap(), []);
    world.pass(IDLE * 10).await;
    assert_eq!((world.started(), world.state().await), (1, PoolState::Quiet));
}

#[tokio::test]
async fn a_burst_starts_one_to_see_what_they_are_like_and_then_no_more_than_there_may_be() {
    let world = World::start().await;
    world.set(settings(6)).await;
    for number in 0..20 {
        world.fleet.submit(&format!("name: job-{number}\nengine: shell\nscript: x")).await;
    }
    world.settle().await;
    assert_eq!(world.started(), 1);
    world.all_arrive().await;
    assert_eq!(world.started(), 5, "four more, now that one was seen");
    world.all_arrive().await;
    assert_eq!(world.started(), 6);
    world.all_arrive().await;
    world.settle().await;
    assert_eq!((world.members().await.len(), world.state().await), (6, PoolState::Full));
}

#[tokio::test]
async fn what_its_factories_cannot_run_starts_nothing() {
    let world = World::start().await;
    world.set(settings(6)).await;
    world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    let [first] = &world.all_arrive().await[..] else { panic!("one") };
    let held = world.claim(first, "r1").await;
    world.fleet.finish(&held).await;
    let odd = world.fleet.submit("name: odd\nengine: shell\nscript: x\ncapabilities: [gpu]").await;
    world.settle().await;
    assert_eq!(world.started(), 1);
    let (_, why) = world.coordinator.explain(odd.id).await.unwrap();
    assert!(why.blockers.iter().all(|blocker| blocker.code != BlockerCode::Pool), "{why:?}");
}

#[tokio::test]
async fn a_start_that_never_enrolls_is_given_up_waited_out_and_explained() {
    let world = World::start().await;
    world.set(settings(2)).await;
    let job = world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    world.pass(TIMEOUT).await;
    assert_eq!((world.started(), world.stopped(), world.members().await), (1, 1, vec![]));
    let PoolState::BackingOff { why, .. } = world.state().await else { panic!("{:?}", world.state().await) };
    assert!(why.contains("did not enroll within 300 s"), "{why}");
    let summary = world.summary(job.id).await;
    assert!(summary.contains("the last start failed (it did not enroll"), "{summary}");
    let alerts = world.coordinator.alerts().await.unwrap();
    assert!(
        alerts.iter().any(|alert| alert.message.contains("pool p: 1 failed starts in a row")),
        "{alerts:?}"
    );
    world.pass(Duration::from_secs(11)).await;
    assert_eq!(world.started(), 2, "and tried again");
    world.all_arrive().await;
    assert_eq!(world.state().await, PoolState::Working);
}

#[tokio::test]
async fn what_a_driver_says_decides_whether_it_is_asked_again() {
    let world = World::start().await;
    world.set(settings(2)).await;
    world.yard.0.lock().refuses = Some(DriverError::transient("the cluster does not answer"));
    let job = world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    assert_eq!(world.members().await, [MemberState::Starting], "asked again soon");
    world.yard.0.lock().refuses = Some(DriverError::lasting("the program `x` is not there"));
    world.pass(Duration::from_secs(11)).await;
    assert!(matches!(world.state().await, PoolState::BackingOff { .. }));
    assert_eq!(world.members().await, [], "what never started is not in the way");
    assert!(world.summary(job.id).await.contains("the program `x` is not there"));
    // Whoever changes the pool wants it tried at once.
    world.yard.0.lock().refuses = None;
    world.set(settings(3)).await;
    world.settle().await;
    assert_eq!(world.started(), 1);
}

#[tokio::test]
async fn one_whose_process_is_gone_is_not_waited_for() {
    let world = World::start().await;
    world.set(settings(2)).await;
    world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    let gone = world.yard.0.lock().started[0].clone();
    world.yard.0.lock().dead.push(gone);
    world.pass(Duration::from_secs(6)).await;
    assert_eq!(world.members().await, []);
    let PoolState::BackingOff { why, .. } = world.state().await else { panic!("{:?}", world.state().await) };
    assert!(why.contains("it ended before it enrolled"), "{why}");
}

#[tokio::test]
async fn another_leader_goes_on_where_the_first_one_died() {
    let world = World::start().await;
    world.set(settings(4)).await;
    let job = world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    // Ordered, and dead before the driver was asked.
    world.yard.0.lock().refuses = Some(DriverError::transient("it dies here"));
    world.settle().await;
    assert_eq!(world.members().await, [MemberState::Starting]);
    world.fleet.clock.advance(Options::default().lead_lease * 2);
    let (heir, yard) = World::leader(&world.fleet).await;
    for _ in 0..3 {
        heir.pools().pools_once().await.unwrap();
    }
    assert_eq!(yard.0.lock().started.len(), 1, "the very member that was ordered");
    world.coordinator.pools().pools_once().await.unwrap();
    assert_eq!(world.started(), 0, "who leads no more starts nothing");
    assert_eq!(world.members().await.len(), 1);
    assert_eq!(world.fleet.job(job.id).await.stage(), Stage::Queued);
}

#[tokio::test]
async fn a_paused_pool_and_a_closed_budget_start_nothing_and_say_so() {
    let world = World::start().await;
    let paid = PoolSettings {
        cost_per_hour: Some(Usd::from_dollars(1)),
        charge_to: Some("demo".parse().unwrap()),
        ..settings(2)
    };
    world.set(PoolSettings { paused: true, ..paid.clone() }).await;
    let job = world.fleet.try_submit_for("other", "name: one\nengine: shell\nscript: x").await.unwrap().job;
    world.settle().await;
    assert_eq!(world.started(), 0);
    let (_, why) = world.coordinator.explain(job.id).await.unwrap();
    assert!(why.summary.contains("the pool is paused"), "{}", why.summary);
    assert_eq!(why.remedies[0].command.as_deref(), Some("giga pool resume p"));
    let pause = BudgetChange::Pause { reason: None };
    world.coordinator.change_budget("demo".parse().unwrap(), pause, None, operator()).await.unwrap();
    world.set(paid).await;
    world.settle().await;
    assert_eq!(world.started(), 0);
    assert!(matches!(world.state().await, PoolState::OutOfBudget(_)), "{:?}", world.state().await);
    let demo = || "demo".parse().unwrap();
    world.coordinator.change_budget(demo(), BudgetChange::Resume, None, operator()).await.unwrap();
    let open = BudgetChange::Set(BudgetSettings::default());
    world.coordinator.change_budget(demo(), open, None, operator()).await.unwrap();
    world.settle().await;
    assert_eq!(world.started(), 1);
}

#[tokio::test]
async fn warm_ones_wait_for_whoever_comes_next() {
    let world = World::start().await;
    world.set(PoolSettings { warm: 1, ..settings(4) }).await;
    world.settle().await;
    assert_eq!(world.started(), 1, "without any work");
    let [first] = &world.all_arrive().await[..] else { panic!("one") };
    world.pass(IDLE * 2).await;
    world.hear(first).await;
    assert!(!world.drains(first).await);
    world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.claim(first, "r1").await;
    world.settle().await;
    assert_eq!(world.started(), 2, "the next one is warm");
}

#[tokio::test]
async fn somebody_else_is_told_how_many_are_wanted_and_their_idle_ones_leave() {
    let world = World::start().await;
    world.set(PoolSettings { driver: DriverKind::Keda, ..settings(5) }).await;
    let wanted = async || world.coordinator.pools().wanted(&"p".parse().unwrap()).await.unwrap();
    assert_eq!(wanted().await, Some(0));
    for number in 0..3 {
        world.fleet.submit(&format!("name: job-{number}\nengine: shell\nscript: x")).await;
    }
    world.settle().await;
    assert_eq!((wanted().await, world.started()), (Some(1), 0), "one shows what they are like");
    let token: TokenId = "credential".parse().unwrap();
    let given = Some(factory_id("pod-1"));
    let (pod, _) = world.coordinator.pools().enroll(&"p".parse().unwrap(), None, given, token).await.unwrap();
    world.hear(&pod.id).await;
    world.settle().await;
    let first = world.claim(&pod.id, "r1").await;
    assert_eq!(wanted().await, Some(3), "it works, and two more jobs wait");
    world.fleet.finish(&first).await;
    for name in ["r2", "r3"] {
        let job = world.claim(&pod.id, name).await;
        world.fleet.finish(&job).await;
    }
    world.settle().await;
    world.pass(IDLE).await;
    assert!(world.drains(&pod.id).await);
    assert_eq!(wanted().await, Some(0));
    world.coordinator.leave(pod.id, operator()).await.unwrap();
    world.settle().await;
    assert_eq!((world.members().await, world.stopped()), (vec![], 0), "they take it away themselves");
    assert_eq!(world.coordinator.pools().wanted(&"none".parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn a_credential_of_the_whole_pool_takes_nobodys_place() {
    let world = World::start().await;
    world.set(PoolSettings { driver: DriverKind::Keda, ..settings(5) }).await;
    let join = async || {
        let (token, given): (TokenId, _) = ("credential".parse().unwrap(), Some(factory_id("pod-1")));
        world.coordinator.pools().enroll(&"p".parse().unwrap(), None, given, token).await
    };
    join().await.unwrap();
    join().await.expect("it was not heard from, so this may be the same call again");
    world.hear(&factory_id("pod-1")).await;
    let refused = join().await.unwrap_err().to_string();
    assert!(refused.contains("a factory of that name is running"), "{refused}");
    world.pass(Duration::from_mins(2)).await;
    join().await.expect("its container was started again");
}

#[tokio::test]
async fn one_that_was_drained_and_does_not_leave_is_taken_away() {
    let world = World::start().await;
    world.set(settings(2)).await;
    world.fleet.submit("name: one\nengine: shell\nscript: x").await;
    world.settle().await;
    let [first] = &world.all_arrive().await[..] else { panic!("one") };
    let job = world.claim(first, "r1").await;
    world.coordinator.set_factory_state(first.clone(), FactoryState::Draining, operator()).await.unwrap();
    world.pass(Duration::from_mins(30)).await;
    assert_eq!(world.members().await, [MemberState::Running], "it holds a job");
    world.hear(first).await;
    world.fleet.finish(&job).await;
    world.settle().await;
    world.pass(Duration::from_mins(1)).await;
    world.hear(first).await;
    assert_eq!(world.members().await, [MemberState::Running]);
    world.pass(Duration::from_mins(2)).await;
    assert_eq!((world.stopped(), world.members().await), (1, vec![]));
    let events = world.fleet.store.read().feed(giga_domain::FeedPos::ZERO, 500).await.unwrap();
    let why = events.iter().find(|event| event.kind == EventKind::PoolStopping).unwrap();
    assert!(why.cause.contains("did not leave by itself"), "{}", why.cause);
}
