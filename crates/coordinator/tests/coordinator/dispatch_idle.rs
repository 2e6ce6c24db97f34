//! What an idle fleet costs: the leader's renewals in the store, and a little memory per stream.

use std::sync::Arc;
use std::time::Duration;

use crate::common::counted::Counted;
use crate::common::{Fleet, advertised, factory_id, operator};
use giga_coordinator::{Coordinator, FactoryStream, Options, Ports};
use giga_domain::Delivery;
use giga_domain::factory::{Advertised, FactoryScope};

const LONG: Duration = Duration::from_secs(20);

async fn with_factories(fleet: &Fleet, count: usize) -> (Arc<Coordinator>, Arc<Counted>) {
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
    for n in 0..count {
        let id = factory_id(&format!("f{n}"));
        coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
        let says = Advertised { delivery: Some(Delivery::Stream), ..advertised(&["os:linux"], 4) };
        coordinator.heartbeat(id, says).await.unwrap();
    }
    (coordinator, counted)
}

fn streams(coordinator: &Arc<Coordinator>, count: usize) -> Vec<FactoryStream> {
    let ids = (0..count).map(|n| factory_id(&format!("f{n}")));
    ids.map(|id| coordinator.dispatch().open_factory_stream(id).unwrap()).collect()
}

/// The tests share a process, and memory is counted for all of it.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(start_paused = true)]
async fn an_idle_fleet_asks_the_store_for_nothing_but_the_lead() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let fleet = Fleet::by_hand().await;
    let (coordinator, counted) = with_factories(&fleet, 100).await;
    let mut streams = streams(&coordinator, 100);
    // It works: a job goes through, and is over.
    let job = fleet.submit("name: one").await;
    let mut all = futures::stream::FuturesUnordered::new();
    all.extend(streams.iter_mut().map(FactoryStream::next));
    let event =
        tokio::time::timeout(LONG, futures::StreamExt::next(&mut all)).await.unwrap().unwrap().unwrap();
    let giga_coordinator::StreamEvent::Grant(grant) = event else { panic!("{event:?}") };
    assert_eq!(grant.job().id, job.id);
    let held = grant.job().clone();
    grant.delivered();
    drop(all);
    fleet.finish(&held).await;
    tokio::time::sleep(Duration::from_secs(65)).await;

    counted.taken();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut asked = counted.taken();
    assert_eq!(asked.remove("lead"), Some(6), "renewed at half of twenty seconds");
    // The reaper's, in case another process granted leases and died.
    assert!(asked.remove("expire_leases").is_none_or(|sweeps| sweeps <= 1));
    // The same for jobs that are to be looked at again.
    assert_eq!(asked.remove("reconsider"), Some(1));
    assert!(asked.is_empty(), "{asked:?}");
    coordinator.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stream_costs_a_few_kilobytes() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let fleet = Fleet::by_hand().await;
    let (coordinator, _) = with_factories(&fleet, 500).await;
    let before = resident();
    let mut streams = streams(&coordinator, 500);
    // One of them has been through its opening when a job comes down it.
    let job = fleet.submit("name: one").await;
    let mut all = futures::stream::FuturesUnordered::new();
    all.extend(streams.iter_mut().map(FactoryStream::next));
    let event =
        tokio::time::timeout(LONG, futures::StreamExt::next(&mut all)).await.unwrap().unwrap().unwrap();
    let giga_coordinator::StreamEvent::Grant(grant) = event else { panic!("{event:?}") };
    assert_eq!(grant.job().id, job.id);
    grant.delivered();
    let each = resident().saturating_sub(before) / 500;
    assert!(each < 20 * 1024, "{each} bytes per stream");
    drop(all);
    coordinator.stop().await;
}
