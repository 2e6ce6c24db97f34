//! Streams: what is offered arrives claimed, once, whatever becomes of the broker, the stream or the leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Fleet, advertised, operator};
use giga_coordinator::{Coordinator, FactoryStream, Grant, StreamEvent};
use giga_domain::factory::Advertised;
use giga_domain::{Delivery, Epoch, FactoryId, Holder, HolderAction, JobId, RunReport, Stage};
use tokio::sync::{mpsc, watch};

const LONG: Duration = Duration::from_secs(20);

async fn next_grant(stream: &mut FactoryStream) -> Grant {
    let next = async {
        loop {
            match stream.next().await {
                Some(StreamEvent::Grant(grant)) => return *grant,
                Some(StreamEvent::News) => {}
                None => panic!("the stream ended"),
            }
        }
    };
    tokio::time::timeout(LONG, next).await.expect("no grant came")
}

async fn news(stream: &mut FactoryStream) {
    let event = tokio::time::timeout(LONG, stream.next()).await.expect("nothing came");
    assert!(matches!(event, Some(StreamEvent::News)), "{event:?}");
}

/// Serves the factory's stream like an agent: does each job at once and says which it was.
fn work(
    coordinator: &Arc<Coordinator>,
    factory: &FactoryId,
    done: mpsc::UnboundedSender<(FactoryId, JobId, Epoch)>,
) -> tokio::task::JoinHandle<()> {
    work_after(coordinator, factory, done, async {})
}

/// The same, but its first job takes until then.
fn work_after(
    coordinator: &Arc<Coordinator>,
    factory: &FactoryId,
    done: mpsc::UnboundedSender<(FactoryId, JobId, Epoch)>,
    first: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let (coordinator, factory) = (coordinator.clone(), factory.clone());
    let mut stream = coordinator.dispatch().open_factory_stream(factory.clone()).unwrap();
    let mut first = Some(first);
    tokio::spawn(async move {
        while let Some(event) = stream.next().await {
            let StreamEvent::Grant(grant) = event else { continue };
            let (job, epoch) = (grant.job().id, grant.job().epoch);
            grant.delivered();
            if let Some(first) = first.take() {
                first.await;
            }
            let holder = Holder { factory: factory.clone(), epoch };
            let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
            coordinator.hold(job, holder, actions).await.unwrap();
            if done.send((factory.clone(), job, epoch)).is_err() {
                return;
            }
        }
    })
}

/// Waits until so many jobs are done, and asserts that each was done once.
async fn all_done(
    finished: &mut mpsc::UnboundedReceiver<(FactoryId, JobId, Epoch)>,
    count: usize,
) -> BTreeMap<JobId, FactoryId> {
    let mut holders = BTreeMap::new();
    let waiting = async {
        while holders.len() < count {
            let (factory, job, _) = finished.recv().await.unwrap();
            assert!(holders.insert(job, factory).is_none(), "{job} was done twice");
        }
    };
    let waited = tokio::time::timeout(Duration::from_mins(1), waiting).await;
    assert!(waited.is_ok(), "{} of {count} were done", holders.len());
    holders
}

#[tokio::test]
async fn a_submitted_job_comes_down_the_stream_claimed() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let job = fleet.submit("name: one").await;
    let grant = next_grant(&mut stream).await;
    assert_eq!((grant.job().id, grant.job().stage(), grant.job().epoch), (job.id, Stage::Assigned, Epoch(1)));
    assert_eq!(grant.job().lease().unwrap().factory, f1);
    grant.delivered();
    assert_eq!(fleet.job(job.id).await.stage(), Stage::Assigned);
}

#[tokio::test]
async fn what_could_not_be_delivered_is_given_back_at_once() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let job = fleet.submit("name: one").await;
    let grant = next_grant(&mut stream).await;
    // The connection breaks before the job could be handed to it.
    drop(stream);
    drop(grant);
    let queued = fleet.until_stage(job.id, Stage::Queued).await;
    assert_eq!(
        (queued.attempts, queued.epoch),
        (0, Epoch(2)),
        "no attempt is used up, the old grant is fenced"
    );
    let mut again = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    fleet.reached_by(&f1, Delivery::Stream, 1).await;
    let grant = next_grant(&mut again).await;
    assert_eq!((grant.job().id, grant.job().epoch), (job.id, Epoch(3)));
    grant.delivered();
}

#[tokio::test]
async fn a_factory_whose_stream_is_lost_is_not_chosen_until_it_says_that_it_is_back() {
    let fleet = Fleet::by_hand().await;
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 1).await;
    let stream = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let mut head = fleet.store.head();
    drop(stream);
    let noticed = async {
        let delivery = |factory: giga_domain::Factory| factory.advertised.delivery;
        while fleet.store.read().factory(&f1).await.unwrap().map(delivery) != Some(Some(Delivery::Poll)) {
            head.changed().await.unwrap();
        }
    };
    tokio::time::timeout(LONG, noticed).await.expect("nobody noticed");
    fleet.submit("name: one").await;
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered, []);
    fleet.reached_by(&f1, Delivery::Stream, 1).await;
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered.len(), 1);
}

#[tokio::test]
async fn a_newer_stream_ends_the_older_and_gets_what_it_left() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 8).await;
    let mut older = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let mut newer = fleet.coordinator.dispatch().open_factory_stream(f1).unwrap();
    assert!(tokio::time::timeout(LONG, older.next()).await.unwrap().is_none());
    assert!(older.was_replaced() && !newer.was_replaced());
    let job = fleet.submit("name: one").await;
    let grant = next_grant(&mut newer).await;
    assert_eq!(grant.job().id, job.id);
    grant.delivered();
}

#[tokio::test]
async fn a_stream_finds_what_was_offered_before_it_opened_without_the_broker() {
    let fleet = Fleet::by_hand().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    let job = fleet.submit("name: one").await;
    fleet.coordinator.dispatch().lead_once().await.unwrap();
    assert_eq!(fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered.len(), 1);
    fleet.broker.wipe();
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1).unwrap();
    let grant = next_grant(&mut stream).await;
    assert_eq!(grant.job().id, job.id);
    grant.delivered();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_broker_that_is_wiped_again_and_again_costs_no_job() {
    let fleet = Fleet::start().await;
    let (done, mut finished) = mpsc::unbounded_channel();
    for n in 0..4 {
        let factory = fleet.factory_by(Delivery::Stream, &format!("f{n}"), 4).await;
        work(&fleet.coordinator, &factory, done.clone());
    }
    for n in 0..200 {
        fleet.submit(&format!("name: job-{n}")).await;
        if n % 7 == 0 {
            fleet.broker.wipe();
        }
    }
    fleet.broker.wipe();
    all_done(&mut finished, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_jobs_find_fifty_factories() {
    let fleet = Fleet::start().await;
    let (done, mut finished) = mpsc::unbounded_channel();
    // Nobody is done before eleven are busy, so that the spread does not hang on how fast this machine is.
    let busy = watch::Sender::new(0);
    for n in 0..50 {
        let factory = fleet.factory_by(Delivery::Stream, &format!("f{n}"), 4).await;
        let busy = busy.clone();
        let first = async move {
            busy.send_modify(|busy| *busy += 1);
            busy.subscribe().wait_for(|busy| *busy > 10).await.unwrap();
        };
        work_after(&fleet.coordinator, &factory, done.clone(), first);
    }
    for n in 0..1_000 {
        fleet.submit(&format!("name: job-{n}")).await;
    }
    let holders = all_done(&mut finished, 1_000).await;
    let used: std::collections::BTreeSet<_> = holders.values().collect();
    assert!(used.len() > 10, "the work is spread: {} factories", used.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_coordinators_share_a_fleet_and_survive_the_leader() {
    let fleet = Fleet::start().await;
    fleet.until_it_leads().await;
    let second = Coordinator::start(fleet.ports.clone(), giga_coordinator::Options::default()).await.unwrap();
    let (done, mut finished) = mpsc::unbounded_channel();
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 4).await;
    let f2 = fleet.factory_by(Delivery::Stream, "f2", 4).await;
    second.refresh_once().await.unwrap();
    work(&fleet.coordinator, &f1, done.clone());
    work(&second, &f2, done.clone());
    for n in 0..40 {
        fleet.submit(&format!("name: job-{n}")).await;
    }
    let holders = all_done(&mut finished, 40).await;
    for factory in [&f1, &f2] {
        assert!(holders.values().any(|by| by == factory), "{factory} got none");
    }
    // The leader leaves in good order; the other one goes on at once.
    assert!(fleet.coordinator.dispatch().leading().is_some() && second.dispatch().leading().is_none());
    fleet.coordinator.stop().await;
    // What the factory says whose stream has ended.
    let polls = Advertised { delivery: Some(Delivery::Poll), ..advertised(&[], 4) };
    second.heartbeat(f1, polls).await.unwrap();
    let job = {
        let text = "---\nname: after\n---\nDo it.\n";
        let (manifest, body) = giga_domain::manifest::parse_markdown(text.as_bytes()).unwrap();
        let product = "demo".parse().unwrap();
        let request = giga_coordinator::SubmitRequest { product, manifest, body, actor: operator() };
        second.submit(request).await.unwrap().job
    };
    assert_eq!(all_done(&mut finished, 1).await, BTreeMap::from([(job.id, f2)]));
    assert!(second.dispatch().leading().is_some());
}

#[tokio::test]
async fn the_factory_that_made_a_result_hears_of_the_order_to_merge_it() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(f1).unwrap();
    fleet.submit("name: one\nrepo: hello\nship: auto").await;
    let grant = next_grant(&mut stream).await;
    let job = grant.job().clone();
    grant.delivered();
    let report = RunReport {
        branch: Some(format!("giga/job/{}/1", job.id)),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    };
    let shipped = fleet.hold(&job, vec![HolderAction::Start, HolderAction::Report(report)]).await.unwrap();
    assert_eq!(shipped.stage(), Stage::Shipping);
    news(&mut stream).await;
}

#[tokio::test]
async fn a_factory_hears_that_it_should_be_reached_another_way() {
    let fleet = Fleet::start().await;
    let f1 = fleet.factory_by(Delivery::Stream, "f1", 2).await;
    let f2 = fleet.factory_by(Delivery::Stream, "f2", 2).await;
    let mut first = fleet.coordinator.dispatch().open_factory_stream(f1.clone()).unwrap();
    let mut second = fleet.coordinator.dispatch().open_factory_stream(f2).unwrap();
    fleet.set_flag("delivery.f1", "poll").await;
    news(&mut first).await;
    assert_eq!(fleet.coordinator.wished_delivery(&f1), Delivery::Poll);
    fleet.set_flag("delivery.f1", serde_json::Value::Null).await;
    // The other one is not bothered: the next thing that it gets is a job.
    fleet.reached_by(&f1, Delivery::Poll, 2).await;
    fleet.submit("name: one").await;
    let event = tokio::time::timeout(LONG, second.next()).await.unwrap();
    assert!(matches!(event, Some(StreamEvent::Grant(_))), "{event:?}");
}

#[tokio::test]
async fn whoever_is_unknown_or_mute_gets_no_stream() {
    let fleet = Fleet::start().await;
    let unknown =
        fleet.coordinator.dispatch().open_factory_stream(crate::common::factory_id("ghost")).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no factory ghost");
    let scope = giga_domain::factory::FactoryScope::default();
    fleet.coordinator.enroll(crate::common::factory_id("mute"), scope, operator()).await.unwrap();
    let mute =
        fleet.coordinator.dispatch().open_factory_stream(crate::common::factory_id("mute")).unwrap_err();
    assert!(mute.to_string().contains("has not sent a heartbeat yet"), "{mute}");
}
