//! What is special about the store in Cosmos DB: folding its log, long commits, several writers, errors of the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_core::http::{Method, Request};
use azure_data_cosmos::FeedScope;
use azure_data_cosmos::options::ChangeFeedStartFrom;
use azure_data_cosmos_driver::fault_injection::{
    FaultInjectionConditionBuilder, FaultInjectionErrorType, FaultInjectionResultBuilder,
    FaultInjectionRuleBuilder, FaultOperationType,
};
use azure_data_cosmos_driver::in_memory_emulator::RequestObserver;
use futures::StreamExt;
use giga_domain::{Actor, Event, FeedPos, Job, JobId, JobSpec, TreeLimits};
use giga_ports::store::{JobStore, JobText, NewJob, RegistryReads, Retire, SetFlag, Steer, Submit};
use giga_ports::{Clock, Store, StoreError};
use giga_store::cosmos::{EmulatedAccount, LOG_BYTES, failure};
use giga_store::{BatchStore, CosmosBackend, Tuning};
use giga_testkit::ManualClock;
use serde_json::{Value, json};

use crate::fixtures::cosmos::Cosmos;

fn job(clock: &ManualClock, number: u128, body: String) -> NewJob {
    let spec: JobSpec = serde_json::from_value(json!({ "name": format!("job-{number}") })).unwrap();
    NewJob {
        id: JobId::from_parts(clock.now(), number),
        product: "demo".parse().unwrap(),
        spec,
        manifest: json!({ "name": "job" }),
        fingerprint: body.clone(),
        body,
        persona: None,
        under: None,
        tree: TreeLimits::default(),
    }
}

async fn submit(store: &dyn Store, jobs: Vec<NewJob>) -> Result<(), StoreError> {
    store.submit(Submit { jobs, actor: Actor::system("test") }).await.map(drop)
}

/// Everything in the container, by id.
async fn documents(account: &EmulatedAccount) -> Vec<(String, Value)> {
    let container = account.container().await.unwrap();
    let (all, beginning) = (FeedScope::full_container(), ChangeFeedStartFrom::Beginning);
    let mut pages = Box::pin(container.query_change_feed::<Value>(all, beginning, None)).await.unwrap();
    let page = pages.next().await.unwrap().unwrap();
    let documents = page.items().iter().filter_map(|item| item.current().cloned());
    let mut documents: Vec<_> =
        documents.map(|document| (document["id"].as_str().unwrap().to_owned(), document)).collect();
    documents.sort_by(|(one, _), (other, _)| one.cmp(other));
    documents
}

fn kinds(documents: &[(String, Value)]) -> Vec<&str> {
    let mut kinds: Vec<&str> = documents.iter().map(|(id, _)| id.split('-').next().unwrap()).collect();
    kinds.dedup();
    kinds
}

async fn seen(
    store: &dyn Store,
    ids: &[JobId],
) -> (Vec<Job>, Vec<JobText>, Vec<Event>, Vec<(String, Value)>) {
    let read = store.read();
    let (mut jobs, mut texts) = (Vec::new(), Vec::new());
    for id in ids {
        jobs.extend(read.job(*id).await.unwrap());
        texts.extend(read.job_text(*id).await.unwrap());
    }
    (jobs, texts, read.feed(FeedPos::ZERO, 10_000).await.unwrap(), read.flags().await.unwrap())
}

async fn set_flag(store: &dyn Store, name: &str, value: u64) -> Result<(), StoreError> {
    store.set_flag(SetFlag { name: name.to_owned(), value: value.into(), actor: Actor::system("test") }).await
}

/// Before the fold, after it, and for somebody who comes later or was left behind.
#[tokio::test]
async fn a_folded_log_says_the_same() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let backend = account.backend(clock.clone()).await;
    let folder = backend.clone();
    let store = BatchStore::start(backend, Tuning::default()).await.unwrap();
    let behind = account.store(clock.clone()).await;
    let mut ids = Vec::new();
    for number in 0..30 {
        let new = job(&clock, number, format!("body {number}"));
        ids.push(new.id);
        submit(&store, vec![new]).await.unwrap();
        set_flag(&store, "turn", number as u64).await.unwrap();
    }
    let before = seen(&store, &ids).await;
    assert_eq!((before.0.len(), before.1.len(), before.3.len()), (30, 30, 1));
    assert_eq!(kinds(&documents(account.account()).await), ["commit", "head"]);

    folder.save().await.unwrap();
    assert_eq!(kinds(&documents(account.account()).await), ["head", "piece", "snapshot"]);
    assert_eq!(seen(&store, &ids).await, before);
    // It had read nothing yet, and what it would go on from is gone.
    assert_eq!(seen(&behind, &ids).await, before);
    assert_eq!(seen(&account.store(clock.clone()).await, &ids).await, before);

    // Everybody goes on from there, and the next snapshot takes the place of this one.
    set_flag(&behind, "after", 1).await.unwrap();
    folder.save().await.unwrap();
    let after = seen(&account.store(clock.clone()).await, &ids).await;
    assert_eq!(after.3, [("after".to_owned(), json!(1)), ("turn".to_owned(), json!(29))]);
    let there = documents(account.account()).await;
    assert_eq!(there.iter().filter(|(id, _)| id.starts_with("snapshot")).count(), 1);
}

/// What is retired is gone from the container too, once the log is folded.
#[tokio::test]
async fn what_was_retired_is_gone_after_the_fold() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let backend = account.backend(clock.clone()).await;
    let store = BatchStore::start(backend.clone(), Tuning::default()).await.unwrap();
    let (going, staying) =
        (job(&clock, 1, "a-body-to-forget".into()), job(&clock, 2, "a-body-to-keep".into()));
    let (id, kept) = (going.id, staying.id);
    submit(&store, vec![going, staying]).await.unwrap();
    let command =
        giga_domain::Command::Operator { action: giga_domain::OperatorAction::Cancel, reason: None };
    let request = "cancel".parse().unwrap();
    let cancel = Steer { job: id, request, command, if_rev: None, actor: Actor::system("test") };
    store.steer(cancel).await.unwrap();
    clock.advance(Duration::from_mins(1));
    assert_eq!(store.retire(Retire { before: clock.now(), jobs: vec![id] }).await.unwrap(), [id]);
    backend.save().await.unwrap();
    let there = format!("{:?}", documents(account.account()).await);
    assert!(there.contains("a-body-to-keep") && !there.contains("a-body-to-forget"));
    let later = account.store(clock.clone()).await;
    assert_eq!(later.read().job(id).await.unwrap(), None);
    assert!(later.read().job_text(kept).await.unwrap().is_some());
}

/// A commit past the 2 MB and the 100 operations of a batch is one commit all the same.
#[tokio::test]
async fn a_commit_may_be_longer_than_a_document() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let backend = account.backend(clock.clone()).await;
    let store = BatchStore::start(backend.clone(), Tuning::default()).await.unwrap();
    // Quotation marks and what takes several bytes are where cutting goes wrong.
    let body = |number: u128| format!("{number}\"é").repeat(100_000);
    let jobs: Vec<NewJob> = (0..8).map(|number| job(&clock, number, body(number))).collect();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    let small: Vec<NewJob> = (100..400).map(|number| job(&clock, number, "small".into())).collect();
    let all: Vec<JobId> = ids.iter().copied().chain(small.iter().map(|job| job.id)).collect();
    submit(&store, jobs.into_iter().chain(small).collect()).await.unwrap();
    let there = documents(account.account()).await;
    assert!(there.iter().filter(|(id, _)| id.starts_with("part")).count() >= 3);
    assert_eq!(there.iter().filter(|(id, _)| id.starts_with("commit")).count(), 1);
    assert!(there.iter().all(|(_, document)| document.to_string().len() < 2_000_000));

    let other = account.store(clock.clone()).await;
    let read = seen(&other, &all).await;
    assert_eq!(read.0.len(), 308);
    assert!((0..8).all(|number| read.1[number].body == body(number as u128)));
    backend.save().await.unwrap();
    assert_eq!(seen(&account.store(clock.clone()).await, &all).await, read);
    backend.save().await.unwrap();
    let left = documents(account.account()).await;
    assert!(left.iter().all(|(_, document)| document.to_string().len() < 2_000_000));
    assert!(!kinds(&left).contains(&"commit"));
}

/// The log is folded by itself while others write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_folded_by_itself() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::on(EmulatedAccount::new(None), 20_000);
    let (one, other) = (account.store(clock.clone()).await, account.store(clock.clone()).await);
    let ids: Vec<JobId> = (0..400).map(|number| job(&clock, number, String::new()).id).collect();
    for number in (0..400).step_by(2) {
        let (first, second) = (job(&clock, number, "one".into()), job(&clock, number + 1, "other".into()));
        let (first, second) = tokio::join!(submit(&one, vec![first]), submit(&other, vec![second]));
        first.unwrap();
        second.unwrap();
    }
    let head = documents(account.account()).await.into_iter().find(|(id, _)| id == "head").unwrap().1;
    assert!(head["snapshot"]["at"].as_u64().unwrap() > 0, "{head}");
    let late = account.store(clock.clone()).await;
    assert_eq!(seen(&late, &ids).await, seen(&one, &ids).await);
    assert_eq!(late.read().feed_head().await.unwrap(), other.read().feed_head().await.unwrap());
}

/// One commits without a pause, and the way of the other is longer; it gets through all the same, soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_kept_out_by_a_busy_writer() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let busy = Arc::new(account.store(clock.clone()).await);
    let commits = FaultInjectionConditionBuilder::new().with_operation_type(FaultOperationType::BatchItem);
    let late = FaultInjectionResultBuilder::new().with_delay(Duration::from_millis(20)).build();
    let late = FaultInjectionRuleBuilder::new("late", late).with_condition(commits.build()).build();
    let container = account.account().container_with(vec![Arc::new(late)]).await.unwrap();
    let slow = CosmosBackend::open(container, clock.clone()).await.unwrap();
    let slow = BatchStore::start(slow, Tuning::default()).await.unwrap();
    let written = Arc::new(AtomicU64::new(0));
    let writing = {
        let (busy, written) = (busy.clone(), written.clone());
        tokio::spawn(async move {
            loop {
                let number = written.fetch_add(1, Ordering::SeqCst);
                set_flag(&*busy, "busy", number).await.unwrap();
            }
        })
    };
    for number in 0..20 {
        let before = written.load(Ordering::SeqCst);
        set_flag(&slow, "slow", number).await.unwrap();
        let meanwhile = written.load(Ordering::SeqCst) - before;
        assert!(meanwhile < 200, "{meanwhile} commits of the other while one waited");
    }
    writing.abort();
    assert!(written.load(Ordering::SeqCst) > 0);
}

/// Time in the store never goes back, whoever asks.
#[tokio::test]
async fn a_clock_that_is_behind_is_lifted() {
    let (ahead, behind) = (Arc::new(ManualClock::default()), Arc::new(ManualClock::default()));
    ahead.advance(Duration::from_secs(30));
    let account = Cosmos::default();
    let (one, other) = (account.store(ahead.clone()).await, account.store(behind.clone()).await);
    set_flag(&one, "first", 1).await.unwrap();
    set_flag(&other, "second", 2).await.unwrap();
    let events = other.read().feed(FeedPos::ZERO, 10).await.unwrap();
    assert_eq!(events.iter().map(|event| event.at).collect::<Vec<_>>(), [ahead.now(), ahead.now()]);
    assert_eq!(other.read().now().await.unwrap(), ahead.now());

    // More than a day ahead is a wrong clock that somebody has put right since.
    ahead.advance(Duration::from_hours(25));
    set_flag(&one, "third", 3).await.unwrap();
    set_flag(&other, "fourth", 4).await.unwrap();
    let newest = other.read().feed(FeedPos::ZERO, 10).await.unwrap().pop().unwrap();
    assert_eq!(newest.at, behind.now());
}

#[derive(Debug, Default)]
struct Deletes(AtomicU64);

impl RequestObserver for Deletes {
    fn on_request(&self, request: &Request) {
        if request.method() == Method::Delete {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// With fewer request units than are asked for, everything takes longer, and nothing is lost. The emulator does not throttle
/// batches and reads; deleting the commits of a log that is folded is what it throttles.
#[tokio::test]
async fn throttling_is_waited_out() {
    let clock = Arc::new(ManualClock::default());
    let deletes = Arc::new(Deletes::default());
    let account = Cosmos::on(EmulatedAccount::observed(Some(400), Some(deletes.clone())), LOG_BYTES);
    let backend = account.backend(clock.clone()).await;
    let store = BatchStore::start(backend.clone(), Tuning::default()).await.unwrap();
    for number in 0..100 {
        set_flag(&store, "turn", number).await.unwrap();
    }
    backend.save().await.unwrap();
    assert!(deletes.0.load(Ordering::SeqCst) > 100, "some were refused at first, and asked again");
    assert_eq!(kinds(&documents(account.account()).await), ["head", "piece", "snapshot"]);
    assert_eq!(seen(&account.store(clock).await, &[]).await.3, [("turn".to_owned(), json!(99))]);
}

/// Whatever the service or the network does to a commit, also after it was carried out: every job is made once.
#[tokio::test]
async fn commits_survive_a_bad_day() {
    use FaultInjectionErrorType as Fault;
    for fault in [
        Fault::InternalServerError,
        Fault::TooManyRequests,
        Fault::RetryWith,
        Fault::Timeout,
        Fault::ServiceUnavailable,
        Fault::PartitionIsGone,
        Fault::ConnectionError,
        Fault::ResponseTimeout,
        Fault::ResponseTimeoutAfterService,
    ] {
        let clock = Arc::new(ManualClock::default());
        let account = Cosmos::default();
        let commits =
            FaultInjectionConditionBuilder::new().with_operation_type(FaultOperationType::BatchItem);
        let result = FaultInjectionResultBuilder::new().with_error(fault).build();
        let rule = Arc::new(
            FaultInjectionRuleBuilder::new("bad", result)
                .with_condition(commits.build())
                .with_hit_limit(6)
                .build(),
        );
        rule.disable();
        let container = account.account().container_with(vec![rule.clone()]).await.unwrap();
        let backend = CosmosBackend::open(container, clock.clone()).await.unwrap();
        let store = BatchStore::start(backend, Tuning::default()).await.unwrap();
        rule.enable();
        let ids: Vec<JobId> = (0..10).map(|number| job(&clock, number, String::new()).id).collect();
        for number in 0..10 {
            submit(&store, vec![job(&clock, number, "body".into())])
                .await
                .unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        }
        assert_eq!(rule.hit_count(), 6, "{fault:?}");
        let (jobs, _, events, _) = seen(&account.store(clock.clone()).await, &ids).await;
        assert_eq!((jobs.len(), events.len()), (10, 10), "{fault:?}");
    }
}

#[tokio::test]
async fn what_is_missing_is_named_with_its_remedy() {
    let account = EmulatedAccount::new(None);
    let missing = match account.container_named("none").await {
        Err(error) => failure(error),
        Ok(container) => CosmosBackend::open(container, Arc::new(ManualClock::default())).await.unwrap_err(),
    };
    assert!(!missing.is_transient());
    assert!(
        missing.to_string().contains("create the database and the container, partitioned by /pk"),
        "{missing}"
    );
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_refused() {
    let account = EmulatedAccount::new(None);
    let head = json!({
        "id": "head", "pk": "log", "format": 2, "last": 0, "at": 0, "writers": 0, "bytes": 0, "oldest": 1,
    });
    account.container().await.unwrap().create_item("log", "head", &head, None).await.unwrap();
    let clock = Arc::new(ManualClock::default());
    let refused = CosmosBackend::open(account.container().await.unwrap(), clock).await.unwrap_err();
    assert!(refused.to_string().contains("a newer giga has written this store in format 2"), "{refused}");
}

#[tokio::test]
async fn an_emptied_container_is_noticed() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let store = account.store(clock.clone()).await;
    set_flag(&store, "one", 1).await.unwrap();
    account.account().container().await.unwrap().delete_item("log", "head", None).await.unwrap();
    for error in [
        store.read().ping().await.unwrap_err(),
        store.read().leader().await.unwrap_err(),
        set_flag(&store, "two", 2).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("emptied"), "{error}");
    }
}

/// A look that finds nothing new costs one request unit.
#[tokio::test]
async fn idle_reads_cost_one_request_unit() {
    let clock = Arc::new(ManualClock::default());
    let account = Cosmos::default();
    let backend = account.backend(clock.clone()).await;
    set_flag(&account.store(clock.clone()).await, "one", 1).await.unwrap();
    backend.flags().await.unwrap();
    let before = backend.spent();
    for _ in 0..10 {
        backend.flags().await.unwrap();
    }
    let after = backend.spent();
    assert_eq!((after.reads - before.reads, after.writes), (10, before.writes));
    assert!((after.request_units - before.request_units - 10.0).abs() < 0.01, "{before:?} {after:?}");
}
