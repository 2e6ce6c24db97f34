//! Many jobs on one repository and one machine at once: nobody gets into anybody's way, and nothing stays behind.

use giga_api::wire::{FailReason, MergeState, Stage};
use giga_domain::Timestamp;
use giga_factory::agent::CoordinatorStages;
use giga_factory::workspace::GcOptions;

use super::world::{Factory, World, mirror_branches, processes_of, work_folders};

#[tokio::test(flavor = "multi_thread")]
async fn twenty_jobs_on_one_repository() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let mut config = world.config("a");
    config.seats = 4;
    let factory = Factory::start(config);
    let mut jobs = Vec::new();
    for number in 0..20 {
        // Each sees a clean tree and only its own file; every other one fights for the same line.
        let fight =
            if number % 2 == 0 { format!("echo job-{number} > greeting.txt;") } else { String::new() };
        let script = format!(
            "test -z \"$(git status --porcelain)\"; {fight} echo {number} > file-{number}.txt\n\
             test \"$(git status --porcelain --untracked-files=all | grep -c file-)\" = 1"
        );
        jobs.push(
            world
                .submit(&format!("job-{number}"), "repo: hello\nship: auto\nonConflict: fail", &script)
                .await,
        );
    }
    let (mut merged, mut conflicts) = (Vec::new(), Vec::new());
    for (number, job) in jobs.iter().enumerate() {
        let settled = world.until(job, |job| matches!(job.stage, Stage::Shipped | Stage::Failed)).await;
        let merge = settled.merge.unwrap();
        if settled.stage == Stage::Shipped {
            assert_eq!(merge.state, MergeState::Merged);
            merged.push(number);
        } else {
            assert_eq!(settled.failure.unwrap().reason, FailReason::MergeConflict);
            assert!(merge.detail.unwrap().contains("greeting.txt"));
            conflicts.push(number);
        }
    }
    assert!(conflicts.iter().all(|number| number % 2 == 0), "{conflicts:?}");
    assert!(merged.len() >= 11, "all that did not fight, and at least the first that did: {merged:?}");
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    for number in &merged {
        assert_eq!(origin.file("main", &format!("file-{number}.txt")), number.to_string());
    }
    assert_eq!(files.lines().filter(|name| name.starts_with("file-")).count(), merged.len());

    factory.drain().await;
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
    for job in &jobs {
        assert_eq!(processes_of(job), Vec::<u32>::new());
    }
    let now = Timestamp::from_millis(i64::MAX / 2);
    world.workspace("a").gc(&CoordinatorStages(world.client.clone()), GcOptions::at(now)).await.unwrap();
    // What could not be merged is work, and stays: somebody may go on with it.
    let left = [origin.branches(), mirror_branches(&world.base("a"), "giga/")].concat();
    let of_conflicts = |name: &String| conflicts.iter().any(|number| name.contains(&jobs[*number]));
    let other: Vec<_> = left.iter().filter(|name| *name != "main" && !of_conflicts(name)).collect();
    assert!(other.is_empty(), "{other:?}");
    let results = origin.branches().iter().filter(|name| name.starts_with("giga/job")).count();
    assert_eq!(results, conflicts.len());
}
