//! Pools and their members: never more than there may be, each once, and gone without a trace.

use std::time::Duration;

use giga_domain::factory::FactoryScope;
use giga_domain::token::{Permission, TokenRecord};
use giga_domain::{
    BudgetChange, BudgetSettings, DriverKind, EventKind, MemberState, Pool, PoolName, PoolSettings,
    PoolTemplate, Rev, Term, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{
    ChangeBudget, ChargePool, EnrollMember, ForgetMember, IssueToken, LearnPool, NoteMember, OrderMembers,
    RemovePool, SetPool, StopMember,
};
use tokio::task::JoinSet;

use super::World;
use super::leading::lead;
use super::world::{factory, product, request, user};

fn name(pool: &str) -> PoolName {
    pool.parse().unwrap()
}

fn settings(max: u32) -> PoolSettings {
    PoolSettings { max, ..PoolSettings::default() }
}

async fn set(world: &World, pool: &str, settings: PoolSettings) -> Pool {
    let command = SetPool { name: name(pool), settings, if_rev: None, actor: user() };
    world.store.set_pool(command).await.unwrap()
}

fn order(pool: &Pool, term: Term, factories: &[&str]) -> OrderMembers {
    OrderMembers {
        term,
        pool: pool.name.clone(),
        rev: pool.rev,
        charge_to: pool.settings.charge_to.clone(),
        factories: factories.iter().map(|id| factory(id)).collect(),
    }
}

fn stop(pool: &str, term: Term, id: &str, reason: &str) -> StopMember {
    StopMember { term, pool: name(pool), factory: factory(id), reason: reason.to_owned() }
}

fn forget(pool: &Pool, term: Term, id: &str) -> ForgetMember {
    let charge_to = pool.settings.charge_to.clone();
    ForgetMember { term, pool: pool.name.clone(), rev: pool.rev, charge_to, factory: factory(id) }
}

fn enroll(world: &World, pool: &str, id: &str) -> EnrollMember {
    let (token, scope) = (world.factory_token(id), FactoryScope::default());
    EnrollMember { pool: name(pool), factory: factory(id), scope, token, actor: user() }
}

async fn members(world: &World) -> Vec<(String, MemberState)> {
    let all = world.store.read().pool_members().await.unwrap();
    all.into_iter().map(|member| (member.factory.to_string(), member.state)).collect()
}

async fn pool(world: &World, of: &str) -> Pool {
    let all = world.store.read().pools().await.unwrap();
    all.into_iter().find(|pool| pool.name == name(of)).expect("the pool is there")
}

async fn kinds(world: &World) -> Vec<EventKind> {
    world.feed().await.iter().map(|event| event.kind).collect()
}

async fn known(world: &World, token: &TokenRecord) -> Option<TokenRecord> {
    world.store.read().token_by_hash(&token.hash).await.unwrap()
}

fn started(ids: &[&str]) -> Vec<(String, MemberState)> {
    ids.iter().map(|id| ((*id).to_owned(), MemberState::Starting)).collect()
}

pub async fn settings_are_kept_with_a_revision(world: &World) {
    let full = PoolSettings {
        driver: DriverKind::Command,
        command: vec!["cloud".to_owned(), "gpu".to_owned()],
        cost_per_hour: Some(Usd::from_dollars(2)),
        charge_to: Some(product("demo")),
        ..settings(8)
    };
    let made = set(world, "gpu", full.clone()).await;
    assert_eq!((made.rev, &made.settings), (Rev(1), &full));
    for store in world.handles().await {
        assert_eq!(store.read().pools().await.unwrap(), std::slice::from_ref(&made));
    }
    let before = world.feed().await;
    assert_eq!(set(world, "gpu", full.clone()).await, made, "the same again is answered");
    let stale = SetPool { name: name("gpu"), settings: settings(1), if_rev: Some(Rev(7)), actor: user() };
    let refused = world.store.set_pool(stale).await;
    assert!(matches!(refused, Err(StoreError::RevMismatch { .. })), "{refused:?}");
    assert_eq!(world.feed().await, before);
    let changed = set(world, "gpu", PoolSettings { max: 9, ..full }).await;
    assert_eq!(changed.rev, Rev(2));
    set(world, "a", settings(1)).await;
    let names: Vec<_> = world.store.read().pools().await.unwrap().into_iter().map(|p| p.name).collect();
    assert_eq!(names, [name("a"), name("gpu")]);
}

pub async fn no_more_are_ordered_than_there_may_be(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    let ordered = world.store.order_members(order(&gpu, term, &["gpu-1", "gpu-2"])).await.unwrap();
    assert_eq!(ordered.len(), 2);
    assert!(ordered.iter().all(|m| m.state == MemberState::Starting && m.ordered_at == world.now()));
    // The same call after a lost reply, and one more that does not fit.
    let again = order(&gpu, term, &["gpu-1", "gpu-2", "gpu-3", "gpu-4"]);
    assert_eq!(world.store.order_members(again).await.unwrap().len(), 3);
    assert_eq!(members(world).await, started(&["gpu-1", "gpu-2", "gpu-3"]));
    assert_eq!(pool(world, "gpu").await.record.starts, 3);
    let starting = kinds(world).await.into_iter().filter(|kind| *kind == EventKind::PoolStarting);
    assert_eq!(starting.count(), 3);
}

pub async fn racing_leaders_order_no_more_than_there_may_be(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(5)).await;
    let handles = world.handles().await;
    let mut racing = JoinSet::new();
    for number in 0..16 {
        let store = handles[number % handles.len()].clone();
        let ids = [format!("gpu-{number}-a"), format!("gpu-{number}-b")];
        let command = order(&gpu, term, &[&ids[0], &ids[1]]);
        racing.spawn(async move { store.order_members(command).await.unwrap().len() });
    }
    assert_eq!(racing.join_all().await.into_iter().sum::<usize>(), 5);
    assert_eq!(members(world).await.len(), 5);
}

pub async fn an_order_by_old_knowledge_is_refused(world: &World) {
    let term = lead(world, "one").await.term;
    let old = set(world, "gpu", settings(3)).await;
    let paused = set(world, "gpu", PoolSettings { paused: true, ..settings(3) }).await;
    let refused = world.store.order_members(order(&old, term, &["gpu-1"])).await;
    assert!(matches!(refused, Err(StoreError::RevMismatch { .. })), "{refused:?}");
    assert_eq!(world.store.order_members(order(&paused, term, &["gpu-1"])).await.unwrap(), []);
    let zombie = order(&paused, Term(0), &["gpu-1"]);
    assert!(matches!(world.store.order_members(zombie).await, Err(StoreError::StaleTerm { .. })));
    let nowhere = Pool { name: name("none"), ..paused };
    let refused = world.store.order_members(order(&nowhere, term, &["none-1"])).await;
    assert!(matches!(refused, Err(StoreError::NoSuchPool(_))), "{refused:?}");
    assert_eq!(members(world).await, []);
}

pub async fn a_member_enrolls_once_and_again_after_a_restart(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
    world.advance(Duration::from_secs(40));
    let first = enroll(world, "gpu", "gpu-1");
    let enrolled = world.store.enroll_member(first.clone()).await.unwrap();
    assert_eq!(enrolled.id, factory("gpu-1"));
    assert_eq!(members(world).await, [("gpu-1".to_owned(), MemberState::Running)]);
    assert_eq!(pool(world, "gpu").await.record.start_time, Some(Duration::from_secs(40)));
    let before = world.feed().await;
    assert_eq!(world.store.enroll_member(first.clone()).await.unwrap(), enrolled, "a repetition");
    assert_eq!(world.feed().await, before);
    // Its process was started again: it is the same factory, and what it had before ends.
    let second = enroll(world, "gpu", "gpu-1");
    world.store.enroll_member(second.clone()).await.unwrap();
    assert!(known(world, &first.token).await.unwrap().revoked_at.is_some());
    assert_eq!(known(world, &second.token).await.unwrap().revoked_at, None);
    assert_eq!(world.store.read().factories().await.unwrap().len(), 1);
}

pub async fn who_is_not_expected_does_not_join(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    set(world, "other", settings(3)).await;
    world.factory("mac-1").await;
    world.store.order_members(order(&gpu, term, &["gpu-1", "gpu-2"])).await.unwrap();
    world.store.stop_member(stop("gpu", term, "gpu-2", "too late")).await.unwrap();
    let before = (world.store.read().factories().await.unwrap(), world.feed().await);
    for (pool, id) in [("gpu", "gpu-9"), ("other", "gpu-1"), ("gpu", "gpu-2")] {
        let refused = world.store.enroll_member(enroll(world, pool, id)).await;
        assert!(matches!(refused, Err(StoreError::NotExpected { .. })), "{pool} {id}: {refused:?}");
    }
    let taken = world.store.enroll_member(enroll(world, "gpu", "mac-1")).await;
    assert!(matches!(taken, Err(StoreError::FactoryExists(_))), "{taken:?}");
    let nowhere = world.store.enroll_member(enroll(world, "none", "none-1")).await;
    assert!(matches!(nowhere, Err(StoreError::NoSuchPool(_))), "{nowhere:?}");
    assert_eq!((world.store.read().factories().await.unwrap(), world.feed().await), before);
}

pub async fn somebody_elses_factories_join_by_themselves(world: &World) {
    let keda = PoolSettings { driver: DriverKind::Keda, ..settings(2) };
    set(world, "burst", keda).await;
    for id in ["burst-1", "burst-2"] {
        world.store.enroll_member(enroll(world, "burst", id)).await.unwrap();
    }
    let refused = world.store.enroll_member(enroll(world, "burst", "burst-3")).await;
    assert!(matches!(refused, Err(StoreError::NotExpected { .. })), "{refused:?}");
    assert_eq!(members(world).await.len(), 2);
    assert_eq!(pool(world, "burst").await.record.start_time, None, "nobody saw how long it took");
}

pub async fn a_start_that_failed_is_waited_out_and_a_change_forgets_it(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
    world.store.stop_member(stop("gpu", term, "gpu-1", "no such image")).await.unwrap();
    world.store.stop_member(stop("gpu", term, "gpu-1", "twice")).await.unwrap();
    let record = pool(world, "gpu").await.record;
    assert_eq!((record.failed_in_a_row, record.failure.as_deref()), (1, Some("no such image")));
    assert!(record.retry_at > Some(world.now()));
    world.store.forget_member(forget(&gpu, term, "gpu-1")).await.unwrap();
    assert_eq!(world.store.order_members(order(&gpu, term, &["gpu-2"])).await.unwrap(), []);
    let changed = set(world, "gpu", settings(4)).await;
    assert_eq!(changed.record.waits_until(world.now()), None);
    assert_eq!(world.store.order_members(order(&changed, term, &["gpu-2"])).await.unwrap().len(), 1);
    let failures = kinds(world).await.into_iter().filter(|kind| *kind == EventKind::PoolStartFailed);
    assert_eq!(failures.count(), 1);
}

pub async fn who_leaves_leaves_nothing(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
    let credential = TokenRecord {
        permission: Permission::Pool { pool: name("gpu"), factory: Some(factory("gpu-1")) },
        ..world.user_token()
    };
    world.store.issue_token(IssueToken { token: credential.clone(), actor: user() }).await.unwrap();
    let joined = enroll(world, "gpu", "gpu-1");
    world.store.enroll_member(joined.clone()).await.unwrap();
    let handle = "host:1:2".to_owned();
    let note = NoteMember { pool: name("gpu"), factory: factory("gpu-1"), handle: handle.clone() };
    world.store.note_member(note).await.unwrap();
    assert_eq!(world.store.read().pool_members().await.unwrap()[0].handle, Some(handle));
    let in_use = world.store.remove_pool(RemovePool { name: name("gpu"), actor: user() }).await;
    assert!(matches!(in_use, Err(StoreError::PoolInUse { members: 1, .. })), "{in_use:?}");
    world.store.stop_member(stop("gpu", term, "gpu-1", "it has left")).await.unwrap();
    assert_eq!(members(world).await, [("gpu-1".to_owned(), MemberState::Stopping)]);
    assert_eq!(world.store.read().factories().await.unwrap(), []);
    for token in [&credential, &joined.token] {
        assert!(known(world, token).await.unwrap().revoked_at.is_some());
    }
    for _ in 0..2 {
        world.store.forget_member(forget(&gpu, term, "gpu-1")).await.unwrap();
    }
    assert_eq!(members(world).await, []);
    for token in [&credential, &joined.token] {
        assert_eq!(known(world, token).await, None);
    }
    assert_eq!(pool(world, "gpu").await.record.failed_in_a_row, 0, "it had started");
    for was_there in [true, false] {
        let removed = world.store.remove_pool(RemovePool { name: name("gpu"), actor: user() }).await;
        assert_eq!(removed.unwrap(), was_there);
    }
    let left = kinds(world).await.into_iter().filter(|kind| *kind == EventKind::PoolLeft);
    assert_eq!(left.count(), 1);
}

pub async fn a_leader_of_before_takes_nobody_away(world: &World) {
    let term = lead(world, "one").await.term;
    let gpu = set(world, "gpu", settings(3)).await;
    world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
    let zombie = Term(term.0 + 1);
    let before = world.feed().await;
    let stopped = world.store.stop_member(stop("gpu", zombie, "gpu-1", "?")).await;
    let forgotten = world.store.forget_member(forget(&gpu, zombie, "gpu-1")).await;
    for refused in [stopped, forgotten] {
        assert!(matches!(refused, Err(StoreError::StaleTerm { .. })), "{refused:?}");
    }
    assert_eq!((members(world).await, world.feed().await), (started(&["gpu-1"]), before));
}

pub async fn hours_are_charged_once(world: &World) {
    let term = lead(world, "one").await.term;
    let paid = PoolSettings {
        cost_per_hour: Some(Usd::from_dollars(6)),
        charge_to: Some(product("demo")),
        ..settings(3)
    };
    let gpu = set(world, "gpu", paid).await;
    world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
    let spent = async || {
        let budget = world.store.read().budget(&product("demo")).await.unwrap();
        budget.map_or(Usd::ZERO, |budget| budget.spent_in(giga_domain::Period::Total, world.now()).usd)
    };
    let charge = ChargePool { term, pool: name("gpu"), rev: gpu.rev, charge_to: product("demo") };
    world.advance(Duration::from_mins(10));
    let term = lead(world, "one").await.term;
    let charge = ChargePool { term, ..charge };
    for _ in 0..2 {
        world.store.charge_pool(charge.clone()).await.unwrap();
    }
    assert_eq!(spent().await, Usd::from_dollars(1));
    world.advance(Duration::from_mins(5));
    let term = lead(world, "one").await.term;
    world.store.stop_member(stop("gpu", term, "gpu-1", "it has left")).await.unwrap();
    world.store.forget_member(forget(&gpu, term, "gpu-1")).await.unwrap();
    assert_eq!(spent().await, Usd::from_micros(1_500_000));
}

pub async fn who_cannot_pay_starts_nothing(world: &World) {
    let term = lead(world, "one").await.term;
    let paid = PoolSettings {
        cost_per_hour: Some(Usd::from_dollars(6)),
        charge_to: Some(product("demo")),
        ..settings(3)
    };
    let gpu = set(world, "gpu", paid).await;
    let pause = BudgetChange::Pause { reason: None };
    for (number, (change, may)) in
        [(pause, 0), (BudgetChange::Resume, 1), (BudgetChange::Set(BudgetSettings::default()), 1)]
            .into_iter()
            .enumerate()
    {
        let request = request(1_000 + number as u64);
        let change = ChangeBudget { product: product("demo"), change, if_rev: None, request, actor: user() };
        world.store.change_budget(change).await.unwrap();
        let ordered = world.store.order_members(order(&gpu, term, &["gpu-1"])).await.unwrap();
        assert_eq!(ordered.len(), may);
    }
}

pub async fn what_was_learned_goes_with_the_settings(world: &World) {
    let gpu = set(world, "gpu", settings(3)).await;
    let template = PoolTemplate { can_clone: true, ..PoolTemplate::default() };
    let learn = LearnPool { pool: name("gpu"), rev: gpu.rev, template: template.clone() };
    for _ in 0..2 {
        let learned = world.store.learn_pool(learn.clone()).await.unwrap().unwrap();
        assert_eq!(learned.record.template.as_ref(), Some(&template));
    }
    let larger = set(world, "gpu", settings(9)).await;
    assert_eq!(larger.record.template, Some(template), "they are the same factories");
    assert_eq!(world.store.learn_pool(learn).await.unwrap(), None, "by settings of before");
    let others = PoolSettings { args: vec!["--repos".to_owned()], ..settings(9) };
    assert_eq!(set(world, "gpu", others).await.record.template, None);
}
