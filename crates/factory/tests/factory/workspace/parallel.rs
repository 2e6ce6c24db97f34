//! Twenty jobs of one repository on one host, four at a time.

use std::sync::Arc;

use giga_domain::Stage;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::fixture::{Fixture, Merged, Stages, far_future, git, job, merge, order, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_jobs_of_one_repository_do_not_meet() {
    let fixture = Arc::new(Fixture::new());
    let host = fixture.host("one");
    let seats = Arc::new(Semaphore::new(4));
    let mut running = JoinSet::new();
    for number in 1..=20u64 {
        let (fixture, host, seats) = (Arc::clone(&fixture), host.clone(), Arc::clone(&seats));
        running.spawn(async move {
            let _seat = seats.acquire().await.unwrap();
            let worktree = fixture.checkout(&host, job(number), 1).await;
            assert_eq!(git(worktree.path(), &["status", "--porcelain"]), "", "a folder of its own");
            write(worktree.path(), &format!("job-{number}.txt"), &format!("{number}\n"));
            worktree.checkpoint("half way", true).await.unwrap().unwrap();
            // Every fifth one wants the same line as the others of its kind.
            if number.is_multiple_of(5) {
                write(worktree.path(), "README.md", &format!("job {number}\n"));
            }
            let result = worktree.commit_result(&format!("job {number}"), "").await.unwrap().unwrap();
            worktree.push_result(&result).await.unwrap();
            let outcome = merge(&host, &order(&worktree, &result)).await.unwrap();
            worktree.remove().await.unwrap();
            (number, outcome)
        });
    }
    let mut conflicts = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (number, outcome) = ended.unwrap();
        match outcome {
            Merged::Now { .. } => {
                assert_eq!(fixture.show(&format!("main:job-{number}.txt")), number.to_string());
            }
            Merged::Conflict { files, .. } => {
                assert_eq!(files, ["README.md"]);
                conflicts.push(number);
            }
            Merged::Before { .. } => panic!("job {number} was merged by somebody else"),
        }
    }
    assert!(conflicts.len() <= 3 && conflicts.iter().all(|n| n.is_multiple_of(5)), "{conflicts:?}");

    let left: Vec<_> = std::fs::read_dir(fixture.path().join("one/work")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let stage = |n: u64| if conflicts.contains(&n) { Stage::Failed } else { Stage::Shipped };
    let stages: Vec<_> = (1..=20).map(|n| (job(n), stage(n))).collect();
    host.gc(&Stages::all(&stages), far_future()).await.unwrap();
    let branches = fixture.origin_branches();
    assert_eq!(
        branches.len(),
        1 + 2 * conflicts.len(),
        "only main and what is in conflict stay: {branches:?}"
    );
    git(&fixture.mirror("one"), &["fsck", "--connectivity-only"]);
}
