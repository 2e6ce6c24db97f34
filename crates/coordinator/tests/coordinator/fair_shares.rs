//! Two products on one fleet: whoever has little to do is not kept waiting by whoever has much.

use std::collections::BTreeMap;

use crate::common::{Fleet, operator, request};
use futures::StreamExt as _;
use giga_domain::{Delivery, FactoryId, ProductId, ProductSettings};

const MANY: usize = 10_000;
const FEW: usize = 10;

/// The many first, so that the few are younger than all of them.
async fn crowded(fleet: &Fleet) {
    let of = |product: &'static str, count: usize| {
        futures::stream::iter(0..count).for_each_concurrent(500, move |n| async move {
            fleet.try_submit_for(product, &format!("name: job-{n}")).await.unwrap();
        })
    };
    of("big", MANY).await;
    fleet.clock.advance(std::time::Duration::from_secs(1));
    of("small", FEW).await;
}

async fn share(fleet: &Fleet, product: &str, share: f64) {
    let settings = ProductSettings { share, ..ProductSettings::default() };
    fleet.coordinator.set_product(product.parse().unwrap(), settings, None, operator()).await.unwrap();
}

fn counted(products: impl Iterator<Item = ProductId>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for product in products {
        *counts.entry(product.to_string()).or_default() += 1;
    }
    counts
}

fn expected(big: usize, small: usize) -> BTreeMap<String, usize> {
    [("big".to_owned(), big), ("small".to_owned(), small)].into()
}

/// So many seats are asked for one after the other.
async fn claimed(fleet: &Fleet, factory: &FactoryId, seats: usize) -> BTreeMap<String, usize> {
    let mut products = Vec::new();
    for n in 0..seats {
        products.push(fleet.claim(factory, &format!("r-{n}")).await.unwrap().product);
    }
    counted(products.into_iter())
}

#[tokio::test]
async fn ten_jobs_beside_ten_thousand_start_within_their_share() {
    let fleet = Fleet::by_hand().await;
    crowded(&fleet).await;
    let polls = fleet.factory("f-poll", &[], 20).await;
    assert_eq!(claimed(&fleet, &polls, 8).await, expected(4, 4), "half of the seats each");
    // What the small product does not want goes to the other.
    for n in 8..20 {
        fleet.claim(&polls, &format!("r-{n}")).await.unwrap();
    }
    let held = fleet.store.read().live_jobs(None, MANY + FEW).await.unwrap();
    let held = held.into_iter().filter(|job| job.lease().is_some()).map(|job| job.product);
    assert_eq!(counted(held), expected(10, 10), "all ten are started");
}

#[tokio::test]
async fn a_share_of_three_gets_three_of_four_seats() {
    let fleet = Fleet::by_hand().await;
    crowded(&fleet).await;
    share(&fleet, "small", 3.0).await;
    let polls = fleet.factory("f-poll", &[], 20).await;
    assert_eq!(claimed(&fleet, &polls, 12).await, expected(3, 9));
}

#[tokio::test]
async fn the_dispatcher_deals_by_the_same_shares() {
    let fleet = Fleet::by_hand().await;
    assert!(fleet.coordinator.dispatch().lead_once().await.unwrap().is_some());
    crowded(&fleet).await;
    share(&fleet, "small", 3.0).await;
    fleet.factory_by(Delivery::Stream, "f1", 5).await;
    fleet.factory_by(Delivery::Stream, "f2", 3).await;
    let offered = fleet.coordinator.dispatch().dispatch_once().await.unwrap().offered;
    assert_eq!(counted(offered.into_iter().map(|offer| offer.product_id)), expected(2, 6));
}

/// Claims that come in together are planned together: the share holds there too.
#[tokio::test]
async fn claims_that_race_are_dealt_by_share() {
    let fleet = Fleet::by_hand().await;
    crowded(&fleet).await;
    let polls = fleet.factory("f-poll", &[], 20).await;
    let asks = (0..20).map(|n| fleet.coordinator.claims().claim(polls.clone(), request(format!("r-{n}"))));
    let won = futures::future::join_all(asks).await;
    let products = won.into_iter().map(|job| job.unwrap().unwrap().product);
    assert_eq!(counted(products), expected(10, 10));
}
