//! What jobs leave on a shared origin goes, whichever factory ran them, and unmerged work stays for its time.

use std::time::{Duration, SystemTime};

use giga_api::wire::{OperatorAction, Stage};
use giga_domain::Timestamp;
use giga_factory::workspace::GcOptions;
use serde_json::json;

use super::world::{World, mirror_branches};

fn in_days(days: u64) -> GcOptions {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    GcOptions::at(Timestamp::ZERO.plus(now + Duration::from_hours(24 * days)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merged_job_leaves_no_branch_on_the_origin() {
    let world = World::start().await;
    let origin = world.origin("hello");
    origin.git(&["branch", "giga/main", "main"]);
    let first = world.factory("a");
    let gate = world.gate("gate");
    let script = format!("echo 1 > one.txt; echo half; read _ < {}; echo 2 > two.txt", gate.display());
    let job = world.submit("work", "repo: hello\nship: auto", &script).await;
    world.until_logged(&job, "half\n").await;
    world.until(&job, |job| job.checkpoint.is_some()).await;
    assert!(origin.branches().contains(&format!("giga/wip/{job}")));
    std::fs::write(gate, "go\n").unwrap();
    world.until_merged(&job).await;
    first.drain().await;
    assert_eq!(origin.branches(), ["giga/main", "main"]);
    assert_eq!(mirror_branches(&world.base("a"), ""), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_sweeps_what_another_one_finished() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let first = world.factory("a");
    let merged = world.submit("merged", "repo: hello\nship: auto", "echo 1 > one.txt").await;
    let result = world.until_merged(&merged).await.result.unwrap();
    let dropped = world.submit("dropped", "repo: hello", "echo 2 > two.txt").await;
    world.until_stage(&dropped, Stage::Testing).await;
    world.client.act(&dropped, OperatorAction::Cancel, None, None).await.unwrap();
    let open = world.submit("open", "repo: hello", "echo 3 > three.txt").await;
    world.until_stage(&open, Stage::Testing).await;
    first.drain().await;
    // As if it had been killed after the merge, before it could clean up.
    origin.git(&["branch", &result.branch, &result.commit]);
    for foreign in ["giga/main", "feature/x", "aq/notes"] {
        origin.git(&["branch", foreign, "main"]);
    }
    let second = world.factory("b");
    let own = world.submit("own", "repo: hello\nship: auto", "echo 4 > four.txt").await;
    world.until_merged(&own).await;
    second.drain().await;

    let (host, states) = (world.workspace("b"), world.states_for("b"));
    let report = host.gc(&states, in_days(0)).await.unwrap();
    let removed: Vec<_> = report.removed.iter().map(|item| item.name.clone()).collect();
    assert_eq!(removed, [result.branch]);
    let results = [&dropped, &open].map(|job| format!("giga/job/{job}/1"));
    let kept: Vec<_> = report.kept.iter().map(|item| (item.name.clone(), item.why.as_str())).collect();
    let ready = "the job is ready to ship";
    let goes = "not merged; goes in 13 days (the job is cancelled)";
    assert_eq!(kept, [(results[0].clone(), goes), (results[1].clone(), ready)]);

    world.set_flag("branch_retention_hours", json!(24 * 10)).await;
    host.gc(&states, in_days(9)).await.unwrap();
    assert!(origin.branches().contains(&results[0]));
    host.gc(&states, in_days(11)).await.unwrap();
    assert_eq!(origin.branches(), ["aq/notes", "feature/x", results[1].as_str(), "giga/main", "main"]);
}
