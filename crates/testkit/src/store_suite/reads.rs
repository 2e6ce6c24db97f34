//! Looking: filters, pages, texts and counts.

use std::collections::BTreeMap;
use std::time::Duration;

use giga_domain::job::{
    BudgetCaps, Concurrency, ConflictPolicy, DepsMode, FailurePolicy, MergeSettings, MergeStrategy,
    RetryPolicy, ReviewGate, ShipMode,
};
use giga_domain::stage::PerStage;
use giga_domain::{
    Ask, AskPolicy, CapabilitySet, EventSeq, FailReason, FeedPos, HolderAction, Job, JobId, JobKind, JobSpec,
    Permissions, Priority, ProductId, Stage, Usd,
};
use giga_ports::store::{JobFilter, JobText, NewJob, QueueState, SetFlag};
use serde_json::json;

use super::World;
use super::world::{factory, product, request, user};

/// Jobs of two products in several stages, priorities and repos.
async fn populated(world: &World) -> Vec<Job> {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let parent = world.submitted(|_| ()).await;
    for number in 0..24_usize {
        let new = world.new_job(|spec| {
            spec.name = format!("fix {} 100%_{number}", ["greeting", "Greeting", "Pärser"][number % 3]);
            spec.priority = Priority::ALL[number % 4];
            spec.repo = [None, Some("hello"), Some("world")][number % 3].map(str::to_owned);
            spec.parent = (number % 10 == 0).then_some(parent.id);
        });
        let in_product = if number % 2 == 0 { "demo" } else { "other" };
        let job = world.submit(NewJob { product: product(in_product), ..new }).await;
        match number % 6 {
            0 => drop(world.granted(job.id, &mac).await),
            1 => {
                let held = world.granted(job.id, &linux).await;
                let holder = super::world::holder(&held);
                let ask = Ask { text: "which port?".to_owned(), ..Ask::default() };
                let asks = (number > 12).then_some(HolderAction::Ask(ask));
                let actions: Vec<_> = [HolderAction::Start].into_iter().chain(asks).collect();
                world.hold(job.id, &holder, actions).await.unwrap();
            }
            2 => drop(world.operate(job.id, giga_domain::OperatorAction::Cancel).await.unwrap()),
            _ => {}
        }
        if number % 4 == 0 {
            world.advance(Duration::from_millis(1));
        }
    }
    all(world, &JobFilter::default()).await
}

async fn all(world: &World, filter: &JobFilter) -> Vec<Job> {
    world.store.read().list_jobs(filter, None, 1_000).await.unwrap()
}

async fn assert_filter(world: &World, jobs: &[Job], filter: JobFilter) {
    let expected: Vec<_> = jobs.iter().filter(|job| filter.matches(job)).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < jobs.len(), "{filter:?} tells nothing apart");
    assert_eq!(all(world, &filter).await, expected, "{filter:?}");
}

pub async fn each_filter_alone(world: &World) {
    let jobs = populated(world).await;
    assert_eq!(jobs.len(), 25);
    assert!(jobs.is_sorted_by(|a, b| a.id > b.id), "newest first");
    let parent = jobs.last().unwrap().id;
    let any = JobFilter::default;
    // A filter that is new here wants a case below.
    let JobFilter {
        ids: _,
        products: _,
        stages: _,
        priorities: _,
        repo: _,
        factory: _,
        parent: _,
        name_contains: _,
        needs_input: _,
    } = any();
    for filter in [
        JobFilter { products: vec![product("other")], ..any() },
        JobFilter { stages: vec![Stage::Queued], ..any() },
        JobFilter { stages: vec![Stage::Assigned, Stage::Cancelled], ..any() },
        JobFilter { priorities: vec![Priority::Critical, Priority::Low], ..any() },
        JobFilter { repo: Some("hello".to_owned()), ..any() },
        JobFilter { factory: Some(factory("mac-1")), ..any() },
        JobFilter { factory: Some(factory("linux-1")), ..any() },
        JobFilter { parent: Some(parent), ..any() },
        JobFilter { needs_input: true, ..any() },
        // An id that nobody has is simply not found.
        JobFilter { ids: vec![jobs[3].id, jobs[20].id, world.new_job(|_| ()).id], ..any() },
        // Case does not count, and the text is no pattern.
        JobFilter { name_contains: Some("greeting".to_owned()), ..any() },
        JobFilter { name_contains: Some("FIX GREETING".to_owned()), ..any() },
        JobFilter { name_contains: Some("päRSER".to_owned()), ..any() },
        JobFilter { name_contains: Some("100%_1".to_owned()), ..any() },
    ] {
        assert_filter(world, &jobs, filter).await;
    }
    // Beyond A to Z it does count, on all of them alike.
    for nothing in ["g%g", "gre_ting", "no such name", "PÄRSER"] {
        let filter = JobFilter { name_contains: Some(nothing.to_owned()), ..any() };
        assert_eq!(all(world, &filter).await, [], "{nothing}");
    }
    let greetings = JobFilter { name_contains: Some("greeting".to_owned()), ..any() };
    assert_eq!(all(world, &greetings).await.len(), 16, "of both spellings");
    let unknown = JobFilter { ids: vec![world.new_job(|_| ()).id], ..any() };
    assert_eq!(all(world, &unknown).await, []);
}

pub async fn filters_together(world: &World) {
    let jobs = populated(world).await;
    let parent = jobs.last().unwrap().id;
    let any = JobFilter::default;
    for filter in [
        JobFilter {
            products: vec![product("demo"), product("nobody")],
            stages: vec![Stage::Assigned],
            ..any()
        },
        JobFilter {
            products: vec![product("demo"), product("other")],
            repo: Some("world".to_owned()),
            ..any()
        },
        // The same one twice is once.
        JobFilter {
            products: vec![product("other"), product("demo"), product("other")],
            stages: vec![Stage::Queued, Stage::Cancelled, Stage::Queued],
            name_contains: Some("greeting".to_owned()),
            ..any()
        },
        // So many that a store would not ask for them one by one.
        JobFilter {
            products: (0..120).map(|n| product(&format!("p-{n}"))).chain([product("other")]).collect(),
            ..any()
        },
        JobFilter { products: vec![product("other"), product("other")], ..any() },
        JobFilter {
            factory: Some(factory("mac-1")),
            stages: vec![Stage::Assigned],
            priorities: vec![Priority::Critical],
            ..any()
        },
        JobFilter { parent: Some(parent), name_contains: Some("fix".to_owned()), ..any() },
        JobFilter {
            ids: jobs.iter().take(12).map(|job| job.id).collect(),
            stages: vec![Stage::Queued],
            products: vec![product("other")],
            ..any()
        },
        JobFilter {
            ids: jobs.iter().map(|job| job.id).collect(),
            factory: Some(factory("linux-1")),
            ..any()
        },
        JobFilter {
            products: vec![product("other")],
            stages: vec![Stage::Queued, Stage::Building],
            priorities: vec![Priority::High],
            repo: Some("hello".to_owned()),
            name_contains: Some("gREETING".to_owned()),
            ..any()
        },
    ] {
        assert_filter(world, &jobs, filter).await;
    }
}

pub async fn pages_cover_all_exactly_once(world: &World) {
    let jobs = populated(world).await;
    let queued = JobFilter { stages: vec![Stage::Queued], ..JobFilter::default() };
    let picked =
        JobFilter { ids: jobs.iter().step_by(3).map(|job| job.id).collect(), ..JobFilter::default() };
    let twice = vec![Stage::Queued, Stage::Assigned, Stage::Queued];
    let several = JobFilter {
        products: vec![product("demo"), product("other")],
        stages: twice,
        ..JobFilter::default()
    };
    let both = JobFilter { products: vec![product("demo"), product("other")], ..JobFilter::default() };
    for filter in [JobFilter::default(), queued, picked, several, both] {
        let expected: Vec<_> = jobs.iter().filter(|job| filter.matches(job)).cloned().collect();
        for limit in [1, 4, 7, 1_000] {
            let (mut seen, mut before) = (Vec::new(), None);
            loop {
                let page = world.store.read().list_jobs(&filter, before, limit).await.unwrap();
                assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                before = Some(last.id);
                seen.extend(page);
            }
            assert_eq!(seen, expected, "pages of {limit}");
        }
    }
}

pub async fn live_jobs_page_by_id(world: &World) {
    let jobs = populated(world).await;
    let live = |job: &&Job| job.stage() == Stage::Queued || job.stage().is_held();
    let expected: Vec<_> = jobs.iter().rev().filter(live).cloned().collect();
    assert!(expected.len() < jobs.len());
    for limit in [1, 5, 1_000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = world.store.read().live_jobs(after, limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            seen.extend(page);
        }
        assert_eq!(seen, expected, "pages of {limit}");
    }
}

pub async fn texts_come_back_byte_for_byte(world: &World) {
    let big = "0123456789".repeat(100_000);
    for body in ["", "\r\n", "a\r\nb\n", "nul \0 inside", "🏭 é \u{feff}\u{202e}", " \t trailing \n\n", &big]
    {
        let manifest = json!({ "name": "x", "nested": { "b": [1, 2.5, null], "a": "🏭\u{0}" }, "z": -1 });
        let new = NewJob { body: body.to_owned(), manifest: manifest.clone(), ..world.new_job(|_| ()) };
        world.submit(new.clone()).await;
        let text = world.store.read().job_text(new.id).await.unwrap();
        assert_eq!(text, Some(JobText { manifest, body: body.to_owned(), persona: None }));
    }
}

pub async fn jobs_by_id_skip_the_missing(world: &World) {
    let (one, two) = (world.submitted(|_| ()).await, world.submitted(|_| ()).await);
    let mut found = world.store.read().jobs_by_id(&[two.id, JobId::MAX, one.id]).await.unwrap();
    found.sort_by_key(|job| job.id);
    assert_eq!(found, [one, two]);
    assert_eq!(world.store.read().jobs_by_id(&[]).await.unwrap(), []);
}

pub async fn a_grant_is_found_while_it_is_held(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    let won = job.lease().unwrap().request.clone();
    let read = world.store.read();
    assert_eq!(read.grant(&mac, &won).await.unwrap(), Some(job.clone()));
    assert_eq!(read.grant(&factory("linux-1"), &won).await.unwrap(), None);
    assert_eq!(read.grant(&mac, &request(999)).await.unwrap(), None);
    world.hold(job.id, &holder, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(read.grant(&mac, &won).await.unwrap(), None);
}

pub async fn what_does_not_exist(world: &World) {
    let (read, id) = (world.store.read(), JobId::MAX);
    assert_eq!(read.job(id).await.unwrap(), None);
    assert_eq!(read.job_text(id).await.unwrap(), None);
    assert_eq!(read.runs(id).await.unwrap(), []);
    assert_eq!(read.job_events(id, EventSeq::ZERO, 10).await.unwrap(), []);
    assert_eq!(read.factory(&factory("nobody")).await.unwrap(), None);
    assert_eq!(read.factories().await.unwrap(), []);
    assert_eq!(read.queue_state(&product("nobody")).await.unwrap(), QueueState::default());
    assert_eq!(read.queue_states().await.unwrap(), []);
    assert_eq!(read.live_jobs(None, 10).await.unwrap(), []);
    assert_eq!(read.feed(FeedPos::ZERO, 10).await.unwrap(), []);
    assert_eq!(read.feed_head().await.unwrap(), FeedPos::ZERO);
}

pub async fn queue_states_count_stages(world: &World) {
    let jobs = populated(world).await;
    let mut counted: BTreeMap<ProductId, PerStage<u64>> = BTreeMap::new();
    for job in &jobs {
        counted.entry(job.product.clone()).or_default()[job.stage()] += 1;
    }
    let states = world.store.read().queue_states().await.unwrap();
    let kept: BTreeMap<_, _> =
        states.iter().map(|(product, state)| (product.clone(), state.by_stage)).collect();
    assert_eq!(kept, counted);
    for (product, state) in states {
        assert_eq!(world.store.read().queue_state(&product).await.unwrap(), state);
        assert!(state.version > 0);
    }
    // Every change of a product's jobs raises its version and no other's.
    let read = world.store.read();
    let version = async |name: &str| read.queue_state(&product(name)).await.unwrap().version;
    let (demo, other) = (version("demo").await, version("other").await);
    world.submitted(|_| ()).await;
    assert!(version("demo").await > demo);
    assert_eq!(version("other").await, other);
}

pub async fn a_spec_comes_back_whole(world: &World) {
    let dep = world.submitted(|_| ()).await.id;
    let full = JobSpec {
        name: "fix-greeting 🏭 'quoted' \"twice\" \\ %s".to_owned(),
        kind: JobKind::Composite,
        topic: Some("billing.invoice".to_owned()),
        priority: Priority::Critical,
        repo: Some("hello".to_owned()),
        more_repos: vec!["lib".to_owned()],
        engine: Some("shell".to_owned()),
        capabilities: CapabilitySet::parse(["os:linux", "engine:shell"]).unwrap(),
        deps: vec![dep],
        deps_mode: DepsMode::Any,
        parent: Some(dep),
        on_failure: FailurePolicy::Continue,
        on_conflict: ConflictPolicy::Fail,
        base: Some("main".to_owned()),
        target: Some("release/2.1".to_owned()),
        merge: MergeSettings { strategy: Some(MergeStrategy::Rebase), ..MergeSettings::default() },
        budget: BudgetCaps {
            usd: Some(Usd::from_micros(2_500_000)),
            tokens: Some(u64::from(u32::MAX) + 1),
            wall_ms: Some(1),
        },
        retry: RetryPolicy { max: 7, backoff_ms: 1_234 },
        retry_on: vec![FailReason::Crash, FailReason::VerifyFailed],
        review: ReviewGate { quorum: 2, reviewers: vec!["ana".to_owned(), "bo".to_owned()] },
        ship: ShipMode::Auto,
        permissions: Some(Permissions::Commands),
        ask: AskPolicy { park_after_ms: Some(1), deadline_ms: Some(2) },
        concurrency: Some(Concurrency { key: "repo:hello".to_owned(), limit: 3 }),
        run_at: Some(world.now().plus(Duration::from_hours(1))),
        idempotency_key: Some("ticket 812 ü".to_owned()),
    };
    let job = world.submitted(|spec| *spec = full.clone()).await;
    assert_eq!(world.job(job.id).await.spec, full);
    assert_eq!(world.job(job.id).await, job);
}

pub async fn it_answers_a_ping(world: &World) {
    world.store.read().ping().await.unwrap();
    let before = world.store.stats();
    world.submitted(|_| ()).await;
    let after = world.store.stats();
    assert_eq!(after.commands, before.commands + 1);
    assert!(after.commits > before.commits);
}

/// What one handle was answered, another one sees; and what this one knows, it has from the data alone.
pub async fn another_process_sees_everything(world: &World) {
    let jobs = populated(world).await;
    world
        .store
        .set_flag(SetFlag { name: "strict".to_owned(), value: json!(true), actor: user() })
        .await
        .unwrap();
    for handle in world.handles().await {
        let (here, there) = (world.store.read(), handle.read());
        assert_eq!(there.list_jobs(&JobFilter::default(), None, 1_000).await.unwrap(), jobs);
        assert_eq!(there.feed(FeedPos::ZERO, 10_000).await.unwrap(), world.feed().await);
        assert_eq!(there.feed_head().await.unwrap(), *handle.head().borrow());
        assert_eq!(there.queue_states().await.unwrap(), here.queue_states().await.unwrap());
        assert_eq!(there.factories().await.unwrap(), here.factories().await.unwrap());
        assert_eq!(there.tokens().await.unwrap(), here.tokens().await.unwrap());
        assert_eq!(there.flags().await.unwrap(), here.flags().await.unwrap());
        for job in &jobs {
            assert_eq!(there.runs(job.id).await.unwrap(), here.runs(job.id).await.unwrap());
        }
    }
}
