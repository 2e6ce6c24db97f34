//! What was reviewed is what is merged: jobs that would have people look at one thing and merge another.

use giga_api::wire::{Job, OperatorAction, ProblemCode, ReviewRequest, ReviewVerdict, Stage};

use super::shipping::until_settled;
use super::world::{Origin, World, git};

async fn diff_of(world: &World, job: &str) -> String {
    let artifacts = world.client.artifacts(job).await.unwrap();
    let diff = artifacts.artifacts.iter().rfind(|one| one.name == "changes.diff").unwrap();
    String::from_utf8_lossy(&world.client.artifact_bytes(&diff.id).await.unwrap()).into_owned()
}

/// Somebody else's commit on the branch, while a job works.
fn push_fix(world: &World, origin: &Origin) {
    let seed = world.path().join("seeds/hello");
    std::fs::write(seed.join("security.txt"), "fixed\n").unwrap();
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-qm", "the fix"]);
    git(&seed, &["push", "-q", origin.path().to_str().unwrap(), "main"]);
}

async fn ship(world: &World, job: &str) -> Job {
    world.client.act(job, OperatorAction::Ship, None, None).await.unwrap();
    until_settled(world, job).await
}

/// Its commit says that it comes after the fix, and has the files from before: from the base people see a typo.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_takes_a_fix_back_brings_in_only_what_its_diff_shows() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let script = "echo ready; until git fetch -q origin && git cat-file -e origin/main:security.txt; do :; done\n\
                  echo hello > greeting.txt; git add .\n\
                  git commit-tree -p origin/main -m typo $(git write-tree) > ../commit\n\
                  git reset -q --hard $(cat ../commit)";
    let job = world.submit("typo", "repo: hello", script).await;
    world.until_logged(&job, "ready").await;
    push_fix(&world, &origin);
    let result = world.until_stage(&job, Stage::Testing).await.result.unwrap();
    let diff = diff_of(&world, &job).await;
    assert!(diff.contains("+hello") && !diff.contains("security.txt"), "{diff}");
    let parents = origin.git(&["log", "-1", "--format=%P", &result.commit]);
    assert_eq!(Some(parents), result.base, "one commit, on what it was shown against");
    assert_eq!(ship(&world, &job).await.stage, Stage::Shipped);
    assert_eq!(origin.file("main", "greeting.txt"), "hello");
    assert_eq!(origin.file("main", "security.txt"), "fixed", "nobody was shown that it goes");
    factory.drain().await;
}

/// The branch is moved to another commit after it was looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_is_swapped_after_the_review_changes_nothing() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let job = world.submit("one", "repo: hello", "echo one > one.txt").await;
    let result = world.until_stage(&job, Stage::Testing).await.result.unwrap();
    let seed = world.path().join("seeds/hello");
    std::fs::write(seed.join("evil.txt"), "evil\n").unwrap();
    git(&seed, &["add", "."]);
    git(&seed, &["commit", "-qm", "evil"]);
    let to = format!("+HEAD:refs/heads/{}", result.branch);
    git(&seed, &["push", "-q", origin.path().to_str().unwrap(), &to]);
    assert_eq!(ship(&world, &job).await.stage, Stage::Shipped);
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert!(files.contains("one.txt") && !files.contains("evil.txt"), "{files}");
    factory.drain().await;
}

/// Padding pushes a line out of the diff, and a binary file has none: whoever approves has to know it.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_diff_shows_has_to_be_acknowledged() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let padded = "yes padding | head -c 3000000 > a.txt; echo evil > z.txt";
    let binary = "printf 'a\\0b' > logo.png";
    for (name, script, said) in
        [("padded", padded, "cut after 2 MiB"), ("binary", binary, "1 binary: logo.png")]
    {
        let more = "repo: hello\nreview: {quorum: 1}\nship: auto";
        let job = world.submit(name, more, script).await;
        let result = world.until_stage(&job, Stage::Review).await.result.unwrap();
        assert!(result.unseen.as_ref().is_some_and(|unseen| unseen.contains(said)), "{result:?}");
        let mut review = ReviewRequest {
            verdict: ReviewVerdict::Approve,
            reviewer: Some("ana".to_owned()),
            comment: None,
            lease_epoch: None,
            commit: Some(result.commit),
            acknowledge_unseen: false,
        };
        let refused = world.client.review(&job, &review).await.unwrap_err();
        assert_eq!(refused.code(), Some(ProblemCode::UnseenChanges), "{refused}");
        assert!(refused.to_string().contains(said), "{refused}");
        review.acknowledge_unseen = true;
        world.client.review(&job, &review).await.unwrap();
        assert_eq!(until_settled(&world, &job).await.stage, Stage::Shipped);
    }
    assert_eq!(origin.file("main", "z.txt"), "evil");
    factory.drain().await;
}

/// A file that is renamed and changed, one that becomes a link, one that may be run now.
#[tokio::test(flavor = "multi_thread")]
async fn renames_links_and_modes_are_in_the_diff() {
    let world = World::start().await;
    world.origin_with("hello", "main", |seed| {
        std::fs::write(seed.join("long.txt"), "a line\n".repeat(100)).unwrap();
        std::fs::write(seed.join("link.txt"), "plain\n").unwrap();
        std::fs::write(seed.join("run.txt"), "plain\n").unwrap();
    });
    let factory = world.factory("a");
    let script =
        "git mv long.txt moved.txt; echo evil >> moved.txt\nln -sf /etc/passwd link.txt\nchmod +x run.txt";
    let job = world.submit("tricks", "repo: hello", script).await;
    world.until_stage(&job, Stage::Testing).await;
    let diff = diff_of(&world, &job).await;
    for line in [
        "rename from long.txt",
        "rename to moved.txt",
        "+evil",
        "new file mode 120000",
        "+/etc/passwd",
        "new mode 100755",
    ] {
        assert!(diff.lines().any(|found| found == line), "{line}:\n{diff}");
    }
    factory.drain().await;
}
