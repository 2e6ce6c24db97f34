//! Supply and demand of capabilities, and who gets what there is a number of.

use giga_coordinator::{CapabilityView, Sight};
use giga_domain::Delivery;
use giga_domain::factory::FactoryScope;

use crate::common::{Fleet, advertised, factory_id, operator};

async fn joined(fleet: &Fleet, id: &str, has: &[&str]) {
    let says = giga_domain::factory::Advertised { delivery: Some(Delivery::Poll), ..advertised(has, 9) };
    fleet.coordinator.enroll(factory_id(id), FactoryScope::default(), operator()).await.unwrap();
    fleet.coordinator.heartbeat(factory_id(id), says).await.unwrap();
}

async fn seen(fleet: &Fleet, sight: &Sight, capability: &str) -> Option<CapabilityView> {
    let views = fleet.coordinator.capabilities_for(sight).await.unwrap();
    views.into_iter().find(|view| view.capability.as_str() == capability)
}

#[tokio::test]
async fn a_number_is_shared_out_and_comes_back() {
    let fleet = Fleet::by_hand().await;
    joined(&fleet, "a", &["gpu=2", "engine:shell"]).await;
    for number in 1..=3 {
        fleet.submit(&format!("name: job-{number}\nengine: shell\nscript: x\ncapabilities: [gpu]")).await;
    }
    let a = factory_id("a");
    let held = fleet.claim(&a, "r-1").await.unwrap();
    fleet.claim(&a, "r-2").await.unwrap();
    assert!(fleet.claim(&a, "r-3").await.is_none(), "both are in use");
    let gpu = seen(&fleet, &Sight::Everything, "gpu").await.unwrap();
    assert_eq!((gpu.units(), gpu.running, gpu.queued), (Some(2), 2, 1));
    assert_eq!((gpu.holders[0].used, gpu.holders[0].available), (2, true));
    assert!(gpu.oldest_enqueued_at.is_some());
    fleet.finish(&held).await;
    assert!(fleet.claim(&a, "r-4").await.is_some(), "one came back");
}

#[tokio::test]
async fn what_is_asked_for_and_missing_comes_first_and_others_products_are_not_shown() {
    let fleet = Fleet::by_hand().await;
    joined(&fleet, "a", &["os:linux", "engine:shell", "gpu=4"]).await;
    fleet.submit("name: one\nengine: shell\nscript: x\ncapabilities: [xcode:16]").await;
    let views = fleet.coordinator.capabilities_for(&Sight::Everything).await.unwrap();
    assert_eq!((views[0].capability.as_str(), views[0].queued, views[0].holders.len()), ("xcode:16", 1, 0));
    let stranger = Sight::Products(vec!["elsewhere".parse().unwrap()]);
    assert_eq!(seen(&fleet, &stranger, "xcode:16").await, None);
    assert_eq!(seen(&fleet, &stranger, "engine:shell").await.map(|view| view.queued), Some(0));
}
