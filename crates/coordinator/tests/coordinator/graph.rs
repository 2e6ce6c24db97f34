//! Graphs of jobs through the use cases: they move by themselves, and say what they wait for.

use std::sync::Arc;
use std::time::Duration;

use crate::common::counted::Counted;
use crate::common::{Fleet, operator};
use giga_coordinator::{Coordinator, KnownProfiles, NewItem, Options, Ports, SubmitAnswer};
use giga_domain::manifest::{Draft, parse_markdown};
use giga_domain::{
    FailReason, Failure, HolderAction, Job, JobId, OperatorAction, ProductId, ProfileContent, Stage,
};

fn item(front_matter: &str) -> NewItem {
    let text = format!("---\n{front_matter}\n---\nDo it.\n");
    let (manifest, body) = parse_markdown(text.as_bytes()).unwrap();
    NewItem { product: "demo".parse().unwrap(), manifest, body }
}

async fn children(fleet: &Fleet, parent: JobId, fronts: &[&str]) -> Vec<Job> {
    let items = fronts.iter().map(|front| item(front)).collect();
    let answers = fleet.coordinator.submit_children(parent, items, operator()).await.unwrap();
    answers.into_iter().map(|SubmitAnswer { job, .. }| job).collect()
}

/// Nobody asks for it: the reconciler hears of it through the feed.
async fn until(fleet: &Fleet, id: JobId, stage: Stage) {
    let reached = async {
        while fleet.job(id).await.stage() != stage {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.unwrap_or_else(|_| panic!("never {stage}"));
}

fn failed() -> HolderAction {
    HolderAction::Fail { failure: Failure { reason: FailReason::Crash, detail: None }, retryable: false }
}

#[tokio::test]
async fn a_graph_moves_by_itself() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let parent = fleet.submit("name: release\nkind: composite").await;
    let after = fleet.submit(&format!("name: after\ndeps: [{}]\nship: auto", parent.id)).await;
    let made =
        children(&fleet, parent.id, &["name: build\nship: auto", "name: test\ndeps: [build]\nship: auto"])
            .await;
    let build = fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!(build.id, made[0].id);
    fleet.finish(&build).await;
    until(&fleet, made[1].id, Stage::Queued).await;
    let test = fleet.claim(&mac, "r2").await.unwrap();
    fleet.finish(&test).await;
    until(&fleet, parent.id, Stage::Shipped).await;
    until(&fleet, after.id, Stage::Queued).await;
}

#[tokio::test]
async fn failing_fast_and_cancelling_reach_the_whole_tree() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let parent = fleet.submit("name: release\nkind: composite").await;
    let made =
        children(&fleet, parent.id, &["name: a", "name: b\npriority: low", "name: part\nkind: composite"])
            .await;
    let deep = children(&fleet, made[2].id, &["name: deep\npriority: low"]).await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!(held.id, made[0].id);
    fleet.hold(&held, vec![failed()]).await.unwrap();
    until(&fleet, parent.id, Stage::Failed).await;
    until(&fleet, made[1].id, Stage::Cancelled).await;
    until(&fleet, deep[0].id, Stage::Cancelled).await;
    assert_eq!(fleet.job(made[0].id).await.stage(), Stage::Failed);
    let (_, why) = fleet.coordinator.explain(parent.id).await.unwrap();
    assert_eq!(why.summary, "failed: 1 of 3 children failed");
    // The others are over: no command brings it to its end any more.
    let [only] = &why.remedies[..] else { panic!("{why:?}") };
    assert!(only.command.is_none() && only.message.contains("submit it again"), "{only:?}");

    let parent = fleet.submit("name: again\nkind: composite").await;
    let made = children(&fleet, parent.id, &["name: c"]).await;
    fleet.coordinator.operate(parent.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    until(&fleet, made[0].id, Stage::Cancelled).await;
}

/// Nobody will ever end and say so: the submit itself is the reason to look.
#[tokio::test]
async fn a_job_for_a_lost_dep_fails_by_itself() {
    let fleet = Fleet::start().await;
    let dep = fleet.submit("name: dep").await.id;
    fleet.coordinator.operate(dep, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    let job = fleet.submit(&format!("name: late\ndeps: [{dep}]")).await;
    until(&fleet, job.id, Stage::Failed).await;
}

#[tokio::test]
async fn a_composite_says_what_it_waits_for() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let parent = fleet.submit("name: release\nkind: composite\nonFailure: continue").await.id;
    let (_, empty) = fleet.coordinator.explain(parent).await.unwrap();
    assert_eq!(empty.summary, "waiting for its children, and has none yet");
    assert_eq!(
        empty.remedies[0].command.as_deref(),
        Some(&*format!("giga job submit FILE... --parent {parent}"))
    );
    let made =
        children(&fleet, parent, &["name: a\nship: auto", "name: b\npriority: low", "name: c\ndeps: [b]"])
            .await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.finish(&held).await;
    let held = fleet.claim(&mac, "r2").await.unwrap();
    fleet.hold(&held, vec![failed()]).await.unwrap();
    let (_, why) = fleet.coordinator.explain(parent).await.unwrap();
    assert_eq!(why.summary, "waiting for its children: 1 of 3 shipped, 1 failed, 1 to go");
    let messages: Vec<_> = why.blockers.iter().map(|blocker| blocker.message.clone()).collect();
    assert_eq!(messages, [format!("{} (b): failed", made[1].id), format!("{} (c): blocked", made[2].id)]);
    assert_eq!(why.remedies[0].command.as_deref(), Some(&*format!("giga job requeue {}", made[1].id)));
    let (_, child) = fleet.coordinator.explain(made[2].id).await.unwrap();
    assert!(child.blockers[0].message.contains("(b): failed"), "{child:?}");
}

async fn commands(fleet: &Fleet, id: JobId) -> Vec<String> {
    let (_, why) = fleet.coordinator.explain(id).await.unwrap();
    why.remedies.into_iter().filter_map(|remedy| remedy.command).collect()
}

/// Rows that another coordinator holds are passed over. It may die with them, so nobody stops after rows that it could
/// take: only at nothing.
#[tokio::test]
async fn a_sweep_ends_only_where_nothing_is_left() {
    let fleet = Fleet::by_hand().await;
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    let dep = fleet.submit("name: dep").await.id;
    let waiting = fleet.submit(&format!("name: late\ndeps: [{dep}]")).await.id;
    fleet.coordinator.operate(dep, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    counted.taken();
    assert!(coordinator.reconsider_once().await.unwrap().is_continue());
    assert_eq!(counted.taken().get("reconsider"), Some(&2), "once more after the last that it could take");
    assert_eq!(fleet.job(waiting).await.stage(), Stage::Failed);
}

/// A version never changes: many jobs of one profile are one look at it.
#[tokio::test]
async fn a_profile_is_read_once_for_many_jobs() {
    let fleet = Fleet::by_hand().await;
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    let product: ProductId = "demo".parse().unwrap();
    let content = ProfileContent { persona: "You are careful.".to_owned(), defaults: serde_json::Map::new() };
    coordinator.add_profile(product.clone(), "coder".to_owned(), content, operator()).await.unwrap();
    counted.taken();
    let mut known = KnownProfiles::default();
    let mut items = Vec::new();
    for n in 0..50 {
        let text = format!("---\nname: j{n}\npersona: coder\n---\n");
        let draft = Draft::from_markdown(text.as_bytes()).unwrap();
        let (manifest, body) = coordinator.resolve_among(&mut known, &product, draft, None).await.unwrap();
        items.push(NewItem { product: product.clone(), manifest, body });
    }
    let made = coordinator.submit_many(items, operator()).await.unwrap();
    assert_eq!(counted.taken().get("profile"), Some(&1));
    for answer in made {
        let text = fleet.store.read().job_text(answer.job.id).await.unwrap().unwrap();
        assert_eq!(text.persona.as_deref(), Some("You are careful."));
    }
}

/// What it is told to do brings it on: never back to where it stands.
#[tokio::test]
async fn the_remedies_of_a_composite_lead_somewhere() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let requeue = async |id: JobId| {
        fleet.coordinator.operate(id, OperatorAction::Requeue, None, None, operator()).await.unwrap();
    };
    let dep = fleet.submit("name: dep\npriority: low").await.id;
    let parent = fleet.submit(&format!("name: release\nkind: composite\ndeps: [{dep}]")).await.id;
    let lonely = fleet.submit(&format!("name: lonely\nkind: composite\ndeps: [{dep}]")).await.id;
    let child = children(&fleet, parent, &["name: a\nship: auto"]).await[0].id;
    fleet.coordinator.operate(dep, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    for id in [parent, lonely] {
        until(&fleet, id, Stage::Failed).await;
    }
    assert_eq!(commands(&fleet, lonely).await, [""; 0], "requeued it would only fail once more");
    let steps = [format!("giga job requeue {child}")];
    assert_eq!(commands(&fleet, parent).await, steps, "it follows its child by itself");
    requeue(child).await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.finish(&held).await;
    until(&fleet, parent, Stage::Shipped).await;
}

/// A tree that is larger than what is shown of it: the sum is right, and nobody gets a part of one.
#[tokio::test]
async fn the_progress_of_a_large_tree_counts_all_of_it() {
    let fleet = Fleet::start().await;
    let parent = fleet.submit("name: release\nkind: composite").await.id;
    let part = children(&fleet, parent, &["name: part\nkind: composite"]).await[0].id;
    let small = children(&fleet, parent, &["name: small"]).await[0].id;
    let per_call = giga_domain::limits::SUBMIT_JOBS;
    let calls = giga_domain::limits::DAG_JOBS.div_ceil(per_call);
    let many: Vec<NewItem> = (0..per_call).map(|n| item(&format!("name: j{n}"))).collect();
    for _ in 0..calls {
        fleet.coordinator.submit_children(part, many.clone(), operator()).await.unwrap();
    }
    let all = (calls * per_call) as u64;
    let dag = fleet.coordinator.dag(parent).await.unwrap();
    assert!(dag.truncated);
    assert_eq!(dag.jobs[0].progress.unwrap().total(), all + 1);
    let of = |id| dag.jobs.iter().find(|node| node.job.id == id).unwrap().progress;
    assert_eq!(of(part), None, "not all below it are shown");
    assert_eq!(of(small), None, "there may be somebody below it who is not shown");
    let dag = fleet.coordinator.dag(small).await.unwrap();
    assert_eq!((dag.truncated, dag.jobs[0].progress.unwrap().total()), (false, 1));
}

/// It is placed nowhere, so nobody is warned that no factory could run it.
#[tokio::test]
async fn a_composite_needs_no_factory() {
    let fleet = Fleet::start().await;
    fleet.set_flag("strict", true).await;
    let answer = fleet.try_submit("name: release\nkind: composite").await.unwrap();
    assert!(answer.routable.is_ok());
    let items = vec![item("name: a"), item("name: part\nkind: composite")];
    let refused = fleet.coordinator.submit_children(answer.job.id, items, operator()).await.unwrap_err();
    assert!(refused.to_string().starts_with("children[0].capabilities: "), "{refused}");
    let (manifest, _) = parse_markdown(b"---\nname: x\nkind: composite\n---\n").unwrap();
    let plan = fleet.coordinator.dry_run("demo".parse().unwrap(), &manifest).await.unwrap();
    assert!(plan.routable.is_ok() && plan.explanation.summary.contains("children"), "{plan:?}");
}
