//! Taking a job: one compare-and-set, and losing is never an error.

use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::job::Concurrency;
use giga_domain::{
    CapabilitySet, DispatchSeq, EngineChoice, EnginePick, Epoch, EventKind, FactoryId, FactoryState,
    HolderAction, JobId, Lease, Rev, RunOutcome, Spend, Stage, State, Usd,
};
use giga_ports::store::{Advertise, Claim, Claimed, Deregister, Lost, NewJob, SetFactoryState};

use super::World;
use super::world::{LEASE, factory, granted, holder, product, user};

fn is_gone(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Lost(Lost::Gone(_)))
}

fn not_allowed(claimed: &Claimed) -> bool {
    matches!(claimed, Claimed::Lost(Lost::NotAllowed(_)))
}

pub async fn grants_lease_epoch_and_run(world: &World) {
    let mac = world.factory("mac-1").await;
    let queued = world.submitted(|spec| spec.engine = EngineChoice::one("shell")).await;
    world.advance(Duration::from_secs(5));
    let claim = world.claim_of(queued.id, &mac);
    let job = granted(world.store.claim(claim.clone()).await.unwrap());
    let lease = Lease {
        factory: mac.clone(),
        request: claim.request,
        granted_at: world.now(),
        expires_at: world.now().plus(LEASE),
        reserved: Usd::ZERO,
        spent: Spend::default(),
        evict: None,
    };
    assert_eq!(job.state, State::Assigned { lease });
    assert_eq!((job.epoch, job.rev, job.last_factory.as_ref()), (Epoch(1), queued.rev.next(), Some(&mac)));
    assert_eq!(world.job(job.id).await, job);
    let runs = world.store.read().runs(job.id).await.unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((runs[0].epoch, &runs[0].factory, &runs[0].outcome), (Epoch(1), &mac, &RunOutcome::Running));
    assert_eq!((runs[0].assigned_at, runs[0].engine.as_deref()), (world.now(), Some("shell")));
    assert_eq!((runs[0].started_at, runs[0].ended_at), (None, None));
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Assigned).await), (0, 1));
    let last = world.events(job.id).await.pop().unwrap();
    assert_eq!((last.kind, last.to), (EventKind::Assigned, Some(Stage::Assigned)));
}

pub async fn one_of_several_engines_is_enough(world: &World) {
    let several = |spec: &mut giga_domain::JobSpec| {
        spec.engine = EngineChoice::new(vec![EnginePick::named("claude"), EnginePick::named("codex")]);
    };
    let [none, one] = ["linux-1", "mac-1"].map(|name| world.factory(name));
    let (none, one) = (none.await, one.await);
    for (factory, token) in [(&none, "engine:gemini"), (&one, "engine:codex")] {
        let capabilities = CapabilitySet::parse([token]).unwrap();
        let advertised = Advertised { capabilities, seat_limit: 4, ..Advertised::default() };
        world.store.advertise(Advertise { factory: factory.clone(), advertised }).await.unwrap();
    }
    let job = world.submitted(several).await;
    assert_eq!(world.job(job.id).await.spec, job.spec, "as it was written");
    assert!(not_allowed(&world.claim(job.id, &none).await));
    let held = world.granted(job.id, &one).await;
    let run = world.store.read().runs(held.id).await.unwrap().pop().unwrap();
    assert_eq!(run.engine, None, "nobody has said yet which it is");
}

pub async fn a_repeated_request_gets_the_same_grant(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    let claim = world.claim_of(job.id, &mac);
    let first = granted(world.store.claim(claim.clone()).await.unwrap());
    let before = world.snapshot(job.id).await;
    world.advance(Duration::from_secs(10));
    let second = granted(world.store.claim(claim.clone()).await.unwrap());
    assert_eq!(first, second, "same epoch, same lease, not prolonged");
    assert_eq!(world.snapshot(job.id).await, before);
    // Also when it names the revision that it saw before it won, and after the work was started.
    let seen = Claim { rev: Some(job.rev), ..claim };
    let started = world.hold(job.id, &holder(&first), [HolderAction::Start]).await.unwrap();
    assert_eq!(granted(world.store.claim(seen).await.unwrap()), started);
}

pub async fn a_request_names_one_job_at_a_time(world: &World) {
    let mac = world.factory("mac-1").await;
    let (one, two) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    let claim = world.claim_of(one.id, &mac);
    let first = granted(world.store.claim(claim.clone()).await.unwrap());
    // The reply was lost, the claimer looks again and sees the other job as the best one.
    let second = world.store.claim(Claim { job: two.id, ..claim.clone() }).await.unwrap();
    assert_eq!(granted(second), first);
    assert_eq!(world.job(two.id).await, two);
    // The same request by another factory is another request.
    let linux = world.factory("linux-1").await;
    let other = world.store.claim(Claim { job: two.id, factory: linux, ..claim }).await.unwrap();
    assert_eq!(granted(other).id, two.id);
}

pub async fn a_stale_revision_loses(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let seen = world.submitted(|_| ()).await;
    let held = world.granted(seen.id, &linux).await;
    let released =
        world.hold(seen.id, &holder(&held), [HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(released.stage(), Stage::Queued);
    for rev in [seen.rev, Rev(0), released.rev.next()] {
        let claim = Claim { rev: Some(rev), ..world.claim_of(seen.id, &mac) };
        let claimed = world.store.claim(claim).await.unwrap();
        assert!(is_gone(&claimed), "{claimed:?}");
    }
    assert_eq!(world.job(seen.id).await, released);
}

pub async fn a_current_revision_wins(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    let claim = Claim { rev: Some(job.rev), ..world.claim_of(job.id, &mac) };
    assert_eq!(granted(world.store.claim(claim).await.unwrap()).epoch, Epoch(1));
}

pub async fn a_held_job_is_gone(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (held, _) = world.assigned(&mac, |_| ()).await;
    for claimer in [&mac, &linux] {
        let claimed = world.claim(held.id, claimer).await;
        assert!(is_gone(&claimed), "{claimed:?}");
    }
    assert_eq!(world.job(held.id).await, held);
}

pub async fn an_unknown_job_is_gone(world: &World) {
    let mac = world.factory("mac-1").await;
    let claimed = world.claim(JobId::MAX, &mac).await;
    assert!(is_gone(&claimed), "{claimed:?}");
}

pub async fn a_terminal_or_blocked_job_is_gone(world: &World) {
    let mac = world.factory("mac-1").await;
    for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Queued) {
        let job = world.in_stage(stage, &mac).await;
        let before = world.snapshot(job.id).await;
        let claimed = world.claim(job.id, &mac).await;
        assert!(is_gone(&claimed), "{stage}: {claimed:?}");
        assert_eq!(world.snapshot(job.id).await, before, "{stage}");
    }
}

pub async fn a_job_whose_time_has_not_come_is_gone(world: &World) {
    let mac = world.factory("mac-1").await;
    let later = world.now().plus(Duration::from_secs(10));
    let job = world.submitted(|spec| spec.run_at = Some(later)).await;
    assert!(is_gone(&world.claim(job.id, &mac).await));
    world.advance(Duration::from_millis(9_999));
    assert!(is_gone(&world.claim(job.id, &mac).await));
    world.advance(Duration::from_millis(1));
    assert_eq!(world.granted(job.id, &mac).await.epoch, Epoch(1));
}

pub async fn an_offer_that_is_not_current_is_gone(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    let stale = Claim { dispatch_seq: Some(DispatchSeq(7)), ..world.claim_of(job.id, &mac) };
    let claimed = world.store.claim(stale).await.unwrap();
    assert!(is_gone(&claimed), "{claimed:?}");
    let current = Claim { dispatch_seq: Some(job.dispatch_seq), ..world.claim_of(job.id, &mac) };
    assert_eq!(granted(world.store.claim(current).await.unwrap()).id, job.id);
}

pub async fn seats_limit(world: &World) {
    let mac = world.factory_with("mac-1", FactoryScope::default(), 2).await;
    let (first, holder) = world.assigned(&mac, |_| ()).await;
    world.assigned(&mac, |_| ()).await;
    let third = world.submitted(|_| ()).await;
    assert_eq!(world.claim(third.id, &mac).await, Claimed::Lost(Lost::NoSeat));
    // Another's seats are another's.
    let linux = world.factory_with("linux-1", FactoryScope::default(), 0).await;
    assert_eq!(world.claim(third.id, &linux).await, Claimed::Lost(Lost::NoSeat));
    world.hold(first.id, &holder, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(world.granted(third.id, &mac).await.epoch, Epoch(1), "a seat came free");
}

pub async fn units_limit(world: &World) {
    let mac = world.factory_with("mac-1", FactoryScope::default(), 9).await;
    let has = |tokens: &[&str]| {
        let capabilities = CapabilitySet::parse(tokens).unwrap();
        let advertised = Advertised { capabilities, seat_limit: 9, ..Advertised::default() };
        world.store.advertise(Advertise { factory: mac.clone(), advertised })
    };
    let needs = |token: &str| {
        let capabilities = CapabilitySet::parse([token]).unwrap();
        world.submitted(|spec| spec.capabilities = capabilities)
    };
    has(&["gpu=2", "xcode"]).await.unwrap();
    let first = world.granted(needs("gpu").await.id, &mac).await;
    let pair = needs("gpu=2").await;
    let in_use = Claimed::Lost(Lost::InUse);
    assert_eq!(world.claim(pair.id, &mac).await, in_use, "one is left");
    world.granted(needs("xcode=7").await.id, &mac).await;
    let second = world.granted(needs("gpu").await.id, &mac).await;
    let third = needs("gpu").await;
    assert_eq!(world.claim(third.id, &mac).await, in_use, "both are in use");
    world.hold(first.id, &holder(&first), [HolderAction::Start]).await.unwrap();
    assert_eq!(world.claim(third.id, &mac).await, in_use, "building holds it too");
    let release = || [HolderAction::Release { checkpoint: None }];
    world.hold(first.id, &holder(&first), release()).await.unwrap();
    world.granted(third.id, &mac).await;
    world.hold(second.id, &holder(&second), release()).await.unwrap();
    assert_eq!(world.claim(pair.id, &mac).await, in_use);
    // Its operator put more in.
    has(&["gpu=3", "xcode"]).await.unwrap();
    assert_eq!(world.granted(pair.id, &mac).await.epoch, Epoch(1));
}

/// Of what there is a number of, racing claims get that many.
pub async fn racing_claims_share_units(world: &World) {
    let mac = world.factory_with("mac-1", FactoryScope::default(), 50).await;
    let capabilities = CapabilitySet::parse(["gpu=3"]).unwrap();
    let advertised = Advertised { capabilities, seat_limit: 50, ..Advertised::default() };
    world.store.advertise(Advertise { factory: mac.clone(), advertised }).await.unwrap();
    let mut jobs = Vec::new();
    for _ in 0..20 {
        jobs.push(
            world.submitted(|spec| spec.capabilities = CapabilitySet::parse(["gpu"]).unwrap()).await.id,
        );
    }
    let claims = futures::future::join_all(jobs.iter().map(|job| world.claim(*job, &mac))).await;
    assert_eq!(claims.iter().filter(|claimed| matches!(claimed, Claimed::Granted(_))).count(), 3);
}

fn with_key(world: &World, in_product: &str, limit: u32) -> NewJob {
    let concurrency = Some(Concurrency { key: "repo:hello".to_owned(), limit });
    NewJob { product: product(in_product), ..world.new_job(|spec| spec.concurrency = concurrency) }
}

pub async fn a_concurrency_key_limits_across_factories(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let jobs = [with_key(world, "demo", 2), with_key(world, "demo", 2), with_key(world, "demo", 2)];
    for new in &jobs {
        world.submit(new.clone()).await;
    }
    let first = world.granted(jobs[0].id, &mac).await;
    world.granted(jobs[1].id, &linux).await;
    assert_eq!(world.claim(jobs[2].id, &linux).await, Claimed::Lost(Lost::KeyBusy));
    world.hold(first.id, &holder(&first), [HolderAction::Start]).await.unwrap();
    assert_eq!(world.claim(jobs[2].id, &mac).await, Claimed::Lost(Lost::KeyBusy), "building holds it too");
    let release = HolderAction::Release { checkpoint: None };
    world.hold(first.id, &holder(&first), [release]).await.unwrap();
    assert_eq!(world.granted(jobs[2].id, &mac).await.id, jobs[2].id);
}

pub async fn a_concurrency_key_is_of_its_product(world: &World) {
    let mac = world.factory("mac-1").await;
    for in_product in ["demo", "other"] {
        let job = world.submit(with_key(world, in_product, 1)).await;
        assert_eq!(world.granted(job.id, &mac).await.product, product(in_product));
    }
    let job = world.submit(with_key(world, "demo", 1)).await;
    assert_eq!(world.claim(job.id, &mac).await, Claimed::Lost(Lost::KeyBusy));
}

pub async fn a_draining_factory_gets_nothing_new(world: &World) {
    let mac = world.factory("mac-1").await;
    let (held, holder) = world.assigned(&mac, |_| ()).await;
    let job = world.submitted(|_| ()).await;
    world
        .store
        .set_factory_state(SetFactoryState {
            factory: mac.clone(),
            state: FactoryState::Draining,
            actor: user(),
        })
        .await
        .unwrap();
    let claimed = world.claim(job.id, &mac).await;
    assert!(not_allowed(&claimed), "{claimed:?}");
    world.hold(held.id, &holder, [HolderAction::Start]).await.expect("it finishes what it holds");
    world
        .store
        .set_factory_state(SetFactoryState {
            factory: mac.clone(),
            state: FactoryState::Active,
            actor: user(),
        })
        .await
        .unwrap();
    assert_eq!(world.granted(job.id, &mac).await.id, job.id);
}

pub async fn a_product_out_of_scope_is_not_granted(world: &World) {
    let scope = FactoryScope { products: vec![product("other")], capabilities: None };
    let mac = world.factory_with("mac-1", scope, 5).await;
    let job = world.submitted(|_| ()).await;
    let claimed = world.claim(job.id, &mac).await;
    assert!(not_allowed(&claimed), "{claimed:?}");
    let theirs = world.submit(NewJob { product: product("other"), ..world.new_job(|_| ()) }).await;
    assert_eq!(world.granted(theirs.id, &mac).await.id, theirs.id);
}

pub async fn a_capability_that_lacks_is_not_granted(world: &World) {
    let needs = |token: &str| {
        let capabilities = CapabilitySet::parse([token]).unwrap();
        world.submitted(|spec| spec.capabilities = capabilities)
    };
    let open = world.factory("mac-1").await;
    let scope = FactoryScope { products: Vec::new(), capabilities: CapabilitySet::parse(["has:git"]).ok() };
    let cut = world.factory_with("mac-2", scope, 5).await;
    let allowed = async |job: JobId, factory: &FactoryId| !not_allowed(&world.claim(job, factory).await);
    assert!(!allowed(needs("gpu").await.id, &open).await, "not advertised");
    assert!(!allowed(needs("os:linux").await.id, &cut).await, "advertised, but its token does not cover it");
    assert!(allowed(needs("has:git").await.id, &cut).await);
    assert!(allowed(needs("os:linux").await.id, &open).await);
}

pub async fn an_unknown_factory_is_not_granted(world: &World) {
    let job = world.submitted(|_| ()).await;
    let claimed = world.claim(job.id, &factory("nobody")).await;
    assert!(not_allowed(&claimed), "{claimed:?}");
    let mac = world.factory("mac-1").await;
    world.store.deregister(Deregister { factory: mac.clone(), actor: user() }).await.unwrap();
    let claimed = world.claim(job.id, &mac).await;
    assert!(not_allowed(&claimed), "{claimed:?}");
}

pub async fn losing_changes_nothing(world: &World) {
    let mac = world.factory_with("mac-1", FactoryScope::default(), 0).await;
    let job = world.submitted(|_| ()).await;
    let before = world.snapshot(job.id).await;
    for claimer in [mac, factory("nobody")] {
        assert!(matches!(world.claim(job.id, &claimer).await, Claimed::Lost(_)));
        assert_eq!(world.snapshot(job.id).await, before);
    }
}
