//! Repositories as they are: whatever their branch is called, empty, shallow, or seen for the first time.

use giga_api::wire::Stage;

use super::world::{World, git};

#[tokio::test(flavor = "multi_thread")]
async fn a_default_branch_may_have_any_name() {
    let world = World::start().await;
    let origin = world.origin_on("hello", "trunk");
    let factory = world.factory("a");
    let more = "repo: hello\nship: auto\nverify: [grep hello greeting.txt]";
    let job = world.submit("fix", more, "echo hello > greeting.txt").await;
    let merged = world.until_merged(&job).await.merge.unwrap();
    assert_eq!(merged.into.as_deref(), Some("trunk"));
    assert_eq!(origin.git(&["rev-parse", "trunk"]), merged.commit.unwrap());
    assert_eq!(origin.file("trunk", "greeting.txt"), "hello");
    factory.drain().await;
    assert_eq!(origin.branches(), ["trunk"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_result_is_the_first_commit_of_an_empty_repository() {
    let world = World::start().await;
    let origin = world.origin_with("fresh", "trunk", |_| {});
    let factory = world.factory("a");
    let more = "repo: fresh\nship: auto\nverify: [test -s hello.txt]";
    let first = world.submit("first", more, "echo hello > hello.txt").await;
    let result = world.until_merged(&first).await.result.unwrap();
    assert_eq!(origin.git(&["rev-list", "trunk"]), result.commit, "one commit, and it has no parent");
    let second = world.submit("second", more, "echo again >> hello.txt").await;
    world.until_merged(&second).await;
    assert_eq!(origin.file("trunk", "hello.txt"), "hello\nagain");
    factory.drain().await;
    assert_eq!(origin.branches(), ["trunk"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_may_be_shallow_itself() {
    let world = World::start().await;
    let whole = world.origin("whole");
    let seed = world.path().join("seeds/whole");
    for number in 0..3 {
        git(&seed, &["commit", "-q", "--allow-empty", "-m", &format!("more {number}")]);
    }
    git(&seed, &["push", "-q", whole.path().to_str().unwrap(), "main"]);
    let cut = world.path().join("repos/cut.git");
    let (from, to) = (format!("file://{}", whole.path().display()), cut.to_str().unwrap());
    git(world.path(), &["clone", "-q", "--bare", "--depth=2", &from, to]);
    git(&cut, &["remote", "remove", "origin"]);
    assert_eq!(git(&cut, &["rev-parse", "--is-shallow-repository"]), "true");

    let factory = world.factory("a");
    let more = "repo: cut\nship: auto\nverify: ['git log --oneline | grep -q more']";
    let script = "git log --format=%s\necho hello > greeting.txt\ngit commit -qam mine\necho 1 > new.txt";
    let job = world.submit("fix", more, script).await;
    world.until_merged(&job).await;
    let log = world.log(&job, None).await;
    assert!(log.contains("\nmore 2\nmore 1\n") && !log.contains("more 0"), "{log}");
    assert_eq!(git(&cut, &["show", "main:greeting.txt"]), "hello");
    assert_eq!(git(&cut, &["log", "--format=%s", "main"]).lines().filter(|line| *line == "mine").count(), 1);
    git(&cut, &["fsck"]);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_says_how_far_a_first_fetch_is() {
    let world = World::start().await;
    world.origin("hello");
    let factory = world.factory("a");
    let [first, second] = ["first", "second"];
    let job = world.submit(first, "repo: hello", "true").await;
    world.until_stage(&job, Stage::Testing).await;
    let log = world.log(&job, None).await;
    let told: Vec<_> = log.lines().filter(|line| line.starts_with("[giga] hello: ")).collect();
    assert!(told.iter().any(|line| line.contains("remote: Counting objects: 100% (3/3), done.")), "{log}");
    assert_eq!(told.last(), Some(&"[giga] hello: new work folder"), "{log}");
    let job = world.submit(second, "repo: hello", "true").await;
    world.until_stage(&job, Stage::Testing).await;
    let log = world.log(&job, None).await;
    assert!(!log.contains("objects"), "{log}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_sees_submodules_and_so_do_the_checks_of_the_merge() {
    let world = World::start().await;
    let lib = world.origin("lib");
    let at = lib.git(&["rev-parse", "main"]);
    let origin = world.origin_with("app", "main", |seed| {
        let known = "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib.git\n";
        let unknown = "[submodule \"x\"]\n\tpath = x\n\turl = https://host.invalid/x.git\n";
        std::fs::write(seed.join(".gitmodules"), format!("{known}{unknown}")).unwrap();
        for path in ["lib", "x"] {
            git(seed, &["update-index", "--add", "--cacheinfo", &format!("160000,{at},{path}")]);
            std::fs::create_dir(seed.join(path)).unwrap();
        }
    });
    let factory = world.factory("a");
    let more = "repo: app\nship: auto\nverify: [grep -q helo lib/greeting.txt]";
    let job = world.submit("use-lib", more, "cp lib/greeting.txt copy.txt").await;
    world.until_merged(&job).await;
    let log = world.log(&job, None).await;
    assert!(log.contains("[giga] submodule x is left empty: ") && log.contains("allow-list"), "{log}");
    assert_eq!(origin.file("main", "copy.txt"), "helo");
    assert_eq!(origin.git(&["rev-parse", "main:lib"]), at);
    factory.drain().await;
}
