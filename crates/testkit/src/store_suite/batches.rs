//! Callers that share a transaction must not be able to tell.
//!
//! These cases run on one thread, where everything that is asked for at once reaches the writer as one batch.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use giga_domain::factory::FactoryScope;
use giga_domain::job::Concurrency;
use giga_domain::{
    BudgetChange, DispatchSeq, EventKind, EventSeq, HolderAction, Job, JobId, OperatorAction, Rev, RunReport,
    Stage, State, Usd,
};
use giga_ports::StoreError;
use giga_ports::store::{
    Advertise, Claimed, EvictJobs, ExpireLeases, IssueToken, Lost, MakeOffers, NewEviction, NewJob, NewOffer,
    Prune, Reconsider, Retire, Sent, SetFlag, StepDown, Submit, Submitted,
};
use serde_json::json;

use super::World;
use super::budgets::{USD, cap, day};
use super::leading::lead;
use super::world::{LEASE, fail, granted, holder, user};

pub async fn neighbours_see_each_other(world: &World) {
    let mac = world.factory("mac-1").await;
    let before = world.store.stats();
    let (parent, child) = {
        let parent = world.new_job(|_| ());
        let child = world.new_job(|spec| spec.deps = vec![parent.id]);
        (parent, child)
    };
    let (one, two, claimed) = tokio::join!(
        world.store.submit(Submit { jobs: vec![parent.clone()], actor: user() }),
        world.store.submit(Submit { jobs: vec![child.clone()], actor: user() }),
        world.claim(parent.id, &mac),
    );
    assert_eq!((one.unwrap().len(), two.unwrap()[0].job().stage()), (1, Stage::Blocked));
    assert_eq!(granted(claimed), world.job(parent.id).await);
    let after = world.store.stats();
    assert_eq!(after.commands - before.commands, 3);
    assert!(after.commits - before.commits <= 3);
}

pub async fn refusals_spare_their_neighbours(world: &World) {
    let mac = world.factory("mac-1").await;
    let (held, good) = world.assigned(&mac, |_| ()).await;
    let zombie = giga_domain::Holder { epoch: giga_domain::Epoch::ZERO, ..good.clone() };
    let (first, refused, fenced, started, last) = tokio::join!(
        world.store.submit(Submit { jobs: vec![world.new_job(|_| ())], actor: user() }),
        world
            .store
            .submit(Submit { jobs: vec![world.new_job(|spec| spec.deps = vec![JobId::MAX])], actor: user() }),
        world.hold(held.id, &zombie, [fail(false)]),
        world.hold(held.id, &good, [HolderAction::Start]),
        world.store.submit(Submit { jobs: vec![world.new_job(|_| ())], actor: user() }),
    );
    assert!(matches!(refused, Err(StoreError::UnknownDep(_))));
    assert!(matches!(fenced, Err(StoreError::Refused(_))));
    assert_eq!(started.unwrap().stage(), Stage::Building);
    assert!(first.is_ok() && last.is_ok());
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Building).await), (2, 1));
    assert_eq!(world.events(held.id).await.len(), 3);
}

/// Text that a database may not be able to take, wherever a caller could put it. Whether the store keeps it or
/// refuses it, the commands beside it are not touched.
pub async fn a_poison_command_spares_its_neighbours(world: &World) {
    let nul = || "nul \0 here".to_owned();
    let poisons: Vec<NewJob> = vec![
        world.new_job(|spec| spec.name = nul()),
        world.new_job(|spec| spec.repo = Some(nul())),
        world.new_job(|spec| spec.idempotency_key = Some(nul())),
        world.new_job(|spec| spec.concurrency = Some(Concurrency { key: nul(), limit: 1 })),
        world.new_job(|spec| spec.review.reviewers = vec![nul()]),
        NewJob { manifest: json!({ "name": nul() }), ..world.new_job(|_| ()) },
        NewJob { fingerprint: nul(), ..world.new_job(|_| ()) },
        world.new_job(|spec| spec.budget.tokens = Some(u64::MAX)),
    ];
    for poison in poisons {
        let good: Vec<NewJob> = (0..4).map(|_| world.new_job(|_| ())).collect();
        let all = [&good[..2], std::slice::from_ref(&poison), &good[2..]].concat();
        let answers = join_all(
            all.iter().map(|new| world.store.submit(Submit { jobs: vec![new.clone()], actor: user() })),
        )
        .await;
        for (new, answer) in all.iter().zip(answers) {
            match answer {
                Ok(made) => assert_eq!(&world.job(new.id).await, made[0].job()),
                Err(error) => {
                    assert_eq!(new.id, poison.id, "a neighbour was hurt: {error}");
                    assert!(!error.is_transient(), "trying again will not help: {error}");
                    assert_eq!(world.store.read().job(new.id).await.unwrap(), None);
                }
            }
        }
    }
    let mut token = world.user_token();
    token.label = nul();
    let (poisoned, good) = tokio::join!(
        world.store.issue_token(IssueToken { token: token.clone(), actor: user() }),
        world.submitted(|_| ())
    );
    assert_eq!(world.job(good.id).await, good);
    let kept = world.store.read().token_by_hash(&token.hash).await.unwrap();
    assert_eq!(poisoned.is_ok(), kept.is_some());
}

pub async fn seats_hold(world: &World) {
    let mac = world.factory_with("mac-1", FactoryScope::default(), 2).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(world.submitted(|_| ()).await.id);
    }
    let answers = join_all(ids.iter().map(|id| world.claim(*id, &mac))).await;
    let full = Claimed::Lost(Lost::NoSeat);
    let won: Vec<bool> = answers.iter().map(|answer| *answer != full).collect();
    assert_eq!(won, [true, true, false, false, false]);
    // A seat that comes free in a batch can be taken in it.
    let holding = holder(&world.job(ids[0]).await);
    let release = HolderAction::Release { checkpoint: None };
    let (released, claimed) =
        tokio::join!(world.hold(ids[0], &holding, [release]), world.claim(ids[2], &mac));
    assert_eq!((released.unwrap().stage(), granted(claimed).id), (Stage::Queued, ids[2]));
}

pub async fn a_budget_holds(world: &World) {
    let mac = world.factory("mac-1").await;
    world.change_budget(BudgetChange::Set(day(2 * USD))).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.submitted(cap(USD)).await.id);
    }
    // One that is made by the same batch goes by the same budget.
    let made = world.new_job(cap(USD));
    let (submitted, answers, late) = tokio::join!(
        world.store.submit(Submit { jobs: vec![made.clone()], actor: user() }),
        join_all(ids.iter().map(|id| world.claim(*id, &mac))),
        world.claim(made.id, &mac),
    );
    assert_eq!(submitted.unwrap().len(), 1);
    let won: Vec<bool> = answers.iter().map(|answer| matches!(answer, Claimed::Granted(_))).collect();
    assert_eq!(won, [true, true, false, false]);
    assert!(matches!(late, Claimed::Lost(Lost::Budget(_))), "{late:?}");
    world.balanced().await;
    // What is given back in a batch can be reserved in it; what was spent cannot.
    let holding: Vec<_> = join_all(ids[..2].iter().map(|id| world.job(*id))).await;
    let (first, second) = (holder(&holding[0]), holder(&holding[1]));
    let spent = HolderAction::Spend(giga_domain::Spend { usd: Usd::LEAST, tokens: 1 });
    let release = || HolderAction::Release { checkpoint: None };
    let (_, _, won, lost) = tokio::join!(
        world.hold(ids[0], &first, [release()]),
        world.hold(ids[1], &second, [spent, release()]),
        world.claim(ids[2], &mac),
        world.claim(ids[3], &mac),
    );
    assert_eq!(granted(won).id, ids[2]);
    assert!(matches!(lost, Claimed::Lost(Lost::Budget(_))), "{lost:?}");
    world.balanced().await;
}

pub async fn a_concurrency_key_holds(world: &World) {
    let mac = world.factory("mac-1").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        let concurrency = Some(Concurrency { key: "repo:hello".to_owned(), limit: 2 });
        ids.push(world.submitted(|spec| spec.concurrency = concurrency).await.id);
    }
    let answers = join_all(ids.iter().map(|id| world.claim(*id, &mac))).await;
    let busy = Claimed::Lost(Lost::KeyBusy);
    let won: Vec<bool> = answers.iter().map(|answer| *answer != busy).collect();
    assert_eq!(won, [true, true, false, false, false]);
}

pub async fn a_key_makes_one_job(world: &World) {
    let first = world.new_job(|spec| spec.idempotency_key = Some("ticket-812".to_owned()));
    let attempts: Vec<NewJob> =
        (0..5).map(|_| NewJob { id: world.new_job(|_| ()).id, ..first.clone() }).collect();
    let answers = join_all(
        attempts.iter().map(|new| world.store.submit(Submit { jobs: vec![new.clone()], actor: user() })),
    )
    .await;
    let answers: Vec<Submitted> = answers.into_iter().map(|answer| answer.unwrap().remove(0)).collect();
    let ids: BTreeSet<JobId> = answers.iter().map(|answer| answer.job().id).collect();
    assert_eq!((ids.len(), world.count(Stage::Queued).await), (1, 1));
    let created = answers.iter().filter(|answer| matches!(answer, Submitted::Created(_))).count();
    assert_eq!(created, 1);
}

pub async fn one_claim_wins(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let job = world.submitted(|_| ()).await;
    let repeated = world.claim_of(job.id, &mac);
    let (first, again, other) = tokio::join!(
        world.store.claim(repeated.clone()),
        world.store.claim(repeated.clone()),
        world.claim(job.id, &linux)
    );
    let won = granted(first.unwrap());
    assert_eq!(granted(again.unwrap()), won, "a repetition beside the first is answered like it");
    assert!(matches!(other, Claimed::Lost(Lost::Gone(_))), "{other:?}");
    assert_eq!(world.store.read().runs(job.id).await.unwrap().len(), 1);
}

/// Claimed, started, checkpointed, failed and claimed again, all between one load and one write.
pub async fn a_job_lives_through_many_changes(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|spec| spec.retry.backoff_ms = 0).await;
    let first = giga_domain::Holder { factory: mac.clone(), epoch: giga_domain::Epoch(1) };
    let third = giga_domain::Holder { factory: mac.clone(), epoch: giga_domain::Epoch(3) };
    let (one, started, failed, two, done) = tokio::join!(
        world.claim(job.id, &mac),
        world.hold(job.id, &first, [HolderAction::Start]),
        world.hold(job.id, &first, [fail(true)]),
        world.claim(job.id, &mac),
        world.hold(job.id, &third, [HolderAction::Start, HolderAction::Report(RunReport::default())]),
    );
    assert_eq!((granted(one).epoch.0, started.unwrap().stage()), (1, Stage::Building));
    assert_eq!((failed.unwrap().stage(), granted(two).epoch.0), (Stage::Queued, 3));
    let job = done.unwrap();
    assert_eq!((job.stage(), job.last_event), (Stage::Testing, EventSeq(7)));
    assert_eq!(world.job(job.id).await, job);
    let epochs: Vec<_> =
        world.store.read().runs(job.id).await.unwrap().iter().map(|run| run.epoch.0).collect();
    assert_eq!(epochs, [1, 3]);
    let seqs: Vec<_> = world.events(job.id).await.iter().map(|event| event.job.unwrap().1.0).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((world.count(Stage::Testing).await, world.count(Stage::Queued).await), (1, 0));
    let queued = world.submitted(|_| ()).await;
    assert_eq!(queued.state, State::Queued { since: world.now(), ready_at: world.now(), target: None });
}

pub async fn a_retired_key_is_free_again(world: &World) {
    let first = world.new_job(|spec| spec.idempotency_key = Some("ticket-812".to_owned()));
    world.submit(first.clone()).await;
    world.operate(first.id, OperatorAction::Cancel).await.unwrap();
    world.advance(Duration::from_hours(1));
    let second = NewJob { id: world.new_job(|_| ()).id, ..first.clone() };
    let (retired, answers) = tokio::join!(
        world.store.retire(Retire { before: world.now(), jobs: vec![first.id] }),
        world.store.submit(Submit { jobs: vec![second], actor: user() })
    );
    assert_eq!(retired.unwrap(), [first.id]);
    let answered = answers.unwrap().remove(0);
    assert_eq!(&world.job(answered.job().id).await, answered.job(), "an answer names a job that exists");
}

pub async fn two_retirements_count_once(world: &World) {
    let mac = world.factory("mac-1").await;
    for _ in 0..3 {
        world.in_stage(Stage::Cancelled, &mac).await;
    }
    world.advance(Duration::from_hours(1));
    let now = world.now();
    let old = world.store.read().retirable(now, 10).await.unwrap();
    let (one, two) = tokio::join!(
        world.store.retire(Retire { before: now, jobs: old.clone() }),
        world.store.retire(Retire { before: now, jobs: old })
    );
    assert_eq!(one.unwrap().len() + two.unwrap().len(), 3);
    assert_eq!(world.count(Stage::Cancelled).await, 0);
}

pub async fn two_sweeps_do_everything_once(world: &World) {
    let mac = world.factory("mac-1").await;
    let (held, _) = world.assigned(&mac, |_| ()).await;
    let dep = world.in_stage(Stage::Testing, &mac).await;
    let child = world.submitted(|spec| spec.deps = vec![dep.id]).await;
    world.operate(dep.id, OperatorAction::Ship).await.unwrap();
    world.advance(LEASE);
    let store = &world.store;
    let (one, two) = tokio::join!(
        store.expire_leases(ExpireLeases { limit: 10 }),
        store.expire_leases(ExpireLeases { limit: 10 })
    );
    assert_eq!([one.unwrap().jobs, two.unwrap().jobs].concat(), [held.id]);
    let (one, two) =
        tokio::join!(store.reconsider(Reconsider { limit: 10 }), store.reconsider(Reconsider { limit: 10 }));
    assert_eq!([one.unwrap().moved, two.unwrap().moved].concat(), [child.id]);
    assert_eq!((world.events(held.id).await.len(), world.events(child.id).await.len()), (3, 2));
}

pub async fn prune_spares_who_claims(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let job = world.submitted(|_| ()).await;
    world.advance(Duration::from_hours(1));
    let (claimed, touched, pruned) = tokio::join!(
        world.claim(job.id, &mac),
        world.store.advertise(Advertise { factory: linux.clone(), advertised: super::world::advertised(3) }),
        world.store.prune(Prune { before: world.now(), actor: user() })
    );
    assert_eq!(granted(claimed).id, job.id);
    assert_eq!(touched.unwrap().last_seen_at, Some(world.now()));
    assert_eq!(pruned.unwrap(), [], "one holds a job by now, the other was just heard of");
    assert_eq!(world.store.read().factories().await.unwrap().len(), 2);
}

pub async fn two_prunes_forget_once(world: &World) {
    let mac = world.factory("mac-1").await;
    world.advance(Duration::from_hours(1));
    let now = world.now();
    let (one, two) = tokio::join!(
        world.store.prune(Prune { before: now, actor: user() }),
        world.store.prune(Prune { before: now, actor: user() })
    );
    let reported: Vec<_> = [one.unwrap(), two.unwrap()].concat();
    assert_eq!(reported, [mac]);
    let forgotten =
        world.feed().await.iter().filter(|event| event.kind == EventKind::FactoryDeregistered).count();
    assert_eq!(forgotten, 1);
}

/// The reaper sleeps until the time it is told, so a lease that is made beside its sweep has to count.
pub async fn the_reaper_hears_of_an_eviction(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = world.building(&mac, |_| ()).await;
    let asked = vec![NewEviction { job: job.id, rev: job.rev, for_job: None }];
    let grace = LEASE / 2;
    let (asked, reaped) = tokio::join!(
        world.store.evict(EvictJobs { term: None, asked, grace, actor: user() }),
        world.store.expire_leases(ExpireLeases { limit: 10 })
    );
    assert_eq!((asked.unwrap(), reaped.unwrap().next_expiry), (vec![true], Some(world.now().plus(grace))));
}

pub async fn the_reaper_hears_of_a_new_lease(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    let (claimed, reaped) =
        tokio::join!(world.claim(job.id, &mac), world.store.expire_leases(ExpireLeases { limit: 10 }));
    let ends = granted(claimed).lease().unwrap().expires_at;
    assert_eq!(reaped.unwrap().next_expiry, Some(ends));
    assert_eq!(ends, world.now().plus(LEASE));
}

pub async fn an_offer_that_is_sent_at_once_leaves_nothing(world: &World) {
    let term = lead(world, "node").await.term;
    let (job, other) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    let offer = |job: &Job, rev: Rev, name: &str| {
        let chosen = vec![NewOffer { job: job.id, rev, factory: name.parse().unwrap() }];
        world.store.offer(MakeOffers { term, chosen, pickup: LEASE })
    };
    let before = world.store.stats();
    let (early, first, second, sent, kept) = tokio::join!(
        // Nobody can have sent it yet: it says nothing of what is offered behind it.
        world.store.sent(Sent { offers: vec![(other.id, DispatchSeq(1))] }),
        offer(&job, job.rev, "mac-1"),
        offer(&job, job.rev.next(), "mac-2"),
        world.store.sent(Sent { offers: vec![(job.id, DispatchSeq(2))] }),
        offer(&other, other.rev, "mac-1"),
    );
    assert!(early.is_ok() && sent.is_ok());
    assert_eq!(first.unwrap()[0].as_ref().unwrap().dispatch_seq, DispatchSeq(1));
    assert_eq!(second.unwrap()[0].as_ref().unwrap().dispatch_seq, DispatchSeq(2));
    let kept = kept.unwrap().remove(0).unwrap();
    let waiting = world.store.read().unsent_offers(10).await.unwrap();
    assert_eq!(waiting.into_iter().map(|waiting| waiting.offer).collect::<Vec<_>>(), [kept]);
    assert_eq!(world.store.stats().commands - before.commands, 5);
}

pub async fn offers_end_with_the_term(world: &World) {
    let leader = lead(world, "one").await;
    let job = world.submitted(|_| ()).await;
    let chosen = vec![NewOffer { job: job.id, rev: job.rev, factory: "mac-1".parse().unwrap() }];
    let (stepped, refused) = tokio::join!(
        world.store.step_down(StepDown { node: leader.node.clone(), term: leader.term }),
        world.store.offer(MakeOffers { term: leader.term, chosen, pickup: LEASE }),
    );
    assert!(stepped.is_ok());
    assert!(matches!(refused, Err(StoreError::StaleTerm { .. })), "{refused:?}");
    assert_eq!(
        (world.job(job.id).await, world.store.read().unsent_offers(10).await.unwrap()),
        (job, Vec::new())
    );
}

pub async fn the_last_word_on_a_flag_counts(world: &World) {
    let set =
        |name: &str, value| world.store.set_flag(SetFlag { name: name.to_owned(), value, actor: user() });
    set("one", json!(1)).await.unwrap();
    let done = join_all([
        set("one", json!(null)),
        set("two", json!(2)),
        set("one", json!(3)),
        set("two", json!(null)),
        set("three", json!(null)),
    ])
    .await;
    assert!(done.iter().all(Result::is_ok));
    assert_eq!(world.store.read().flags().await.unwrap(), [("one".to_owned(), json!(3))]);
    assert_eq!(world.feed().await.len(), 5);
}

/// What a sweep counts was loaded before the child was made.
pub async fn a_new_child_is_counted_by_a_sweep_behind_it(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world
        .submitted(|spec| {
            spec.kind = giga_domain::JobKind::Composite;
            spec.ship = giga_domain::job::ShipMode::Auto;
        })
        .await
        .id;
    let child = |world: &World| {
        world.new_job(|spec| {
            spec.parent = Some(parent);
            spec.ship = giga_domain::job::ShipMode::Auto;
        })
    };
    let first = world.submit(child(world)).await.id;
    let held = world.granted(first, &mac).await;
    let done = [HolderAction::Start, HolderAction::Report(RunReport::default())];
    world.hold(first, &holder(&held), done).await.unwrap();
    let before = world.store.stats();
    let (made, swept) = tokio::join!(
        world.store.submit(Submit { jobs: vec![child(world)], actor: user() }),
        world.store.reconsider(Reconsider { limit: 10 })
    );
    assert_eq!((made.unwrap().len(), swept.unwrap().moved), (1, vec![]));
    assert!(world.store.stats().commits - before.commits <= 2);
    assert_eq!(world.job(parent).await.stage(), Stage::Blocked);
}
