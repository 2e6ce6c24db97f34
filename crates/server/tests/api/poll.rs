//! The queue state: tags, sums, and long polls that wake at once.

use std::time::Duration;

use giga_domain::token::Role;
use giga_server::ServerOptions;
use serde_json::json;

use crate::world::World;

const PATH: &str = "/api/fleet/queue-state";

#[tokio::test]
async fn it_is_tagged_and_summed_over_the_callers_products() {
    let world = World::start().await;
    let factory = world.factory("f-1", &["alpha"]).await;
    let both = world.token(Role::Viewer, &["alpha", "beta"]).await;
    world.submit("alpha", "name: a").await;
    world.submit("beta", "name: b").await;
    world.submit("gamma", "name: c").await;
    for (token, header, pending) in [
        (&world.admin, None, 3),
        (&world.admin, Some("gamma"), 1),
        (&world.admin, Some("unheard-of"), 0),
        (&both, None, 2),
        (&both, Some("alpha"), 1),
        (&factory, None, 1),
    ] {
        let call = || {
            let call = world.get(PATH).token(token);
            header
                .map_or_else(|| world.get(PATH).token(token), |product| call.header("x-product-id", product))
        };
        let state = call().gives(200).await;
        assert_eq!(state.json()["pendingCount"], pending);
        let unchanged = call().header("if-none-match", state.header("etag")).gives(304).await;
        assert_eq!(unchanged.header("etag"), state.header("etag"));
    }
}

#[tokio::test]
async fn a_long_poll_wakes_when_something_happens_to_it() {
    let world = World::start().await;
    let token = world.token(Role::Viewer, &["alpha"]).await;
    let tag = world.get(PATH).token(&token).gives(200).await.header("etag").to_owned();
    let mut reads = world.store.queue_reads.subscribe();
    reads.mark_unchanged();
    let poll = world.get(&format!("{PATH}?wait=60s")).token(&token).header("if-none-match", &tag);
    let poll = tokio::spawn(poll.send());
    reads.changed().await.unwrap();
    // Another product's job is looked at and is no reason to answer.
    world.submit("beta", "name: b").await;
    reads.changed().await.unwrap();
    assert!(!poll.is_finished());
    world.submit("alpha", "name: a").await;
    let woken = poll.await.unwrap();
    assert_eq!((woken.status, woken.json()["pendingCount"].clone()), (200, json!(1)));
    assert_ne!(woken.header("etag"), tag);
}

/// The queue is the same, but more of it may be had: whoever waits to ask for work should ask.
#[tokio::test]
async fn a_long_poll_ends_early_when_a_budget_opens() {
    let world = World::start().await;
    let budget = |what: &str| {
        world.post(&format!("/api/fleet/budgets/demo/{what}")).token(&world.admin).json(json!({}))
    };
    budget("pause").gives(200).await;
    world.submit("demo", "name: a").await;
    let tag = world.get(PATH).token(&world.admin).gives(200).await.header("etag").to_owned();
    let mut reads = world.store.queue_reads.subscribe();
    reads.mark_unchanged();
    let poll = world.get(&format!("{PATH}?wait=60s")).token(&world.admin).header("if-none-match", &tag);
    let poll = tokio::spawn(poll.send());
    reads.changed().await.unwrap();
    budget("resume").gives(200).await;
    let woken = tokio::time::timeout(Duration::from_secs(20), poll).await.expect("it waited on").unwrap();
    assert_eq!((woken.status, woken.header("etag")), (304, tag.as_str()));
}

#[tokio::test]
async fn a_long_poll_ends_unchanged() {
    let world = World::start().await;
    let tag = world.get(PATH).token(&world.admin).gives(200).await.header("etag").to_owned();
    let waited = world.get(&format!("{PATH}?wait=20ms")).token(&world.admin).header("if-none-match", &tag);
    waited.gives(304).await;
    // Whoever has nothing to compare with is answered at once.
    world.get(&format!("{PATH}?wait=60s")).token(&world.admin).gives(200).await;
}

#[tokio::test]
async fn waiting_costs_one_look_for_everybody() {
    let options = ServerOptions { look_every: Duration::from_millis(50), ..ServerOptions::default() };
    let world = World::start_with(options).await;
    let tag = world.get(PATH).token(&world.admin).gives(200).await.header("etag").to_owned();
    let mut looks = world.store.head_reads.subscribe();
    let before = *looks.borrow_and_update();
    let began = tokio::time::Instant::now();
    let polls = (0..20).map(|_| {
        world.get(&format!("{PATH}?wait=300ms")).token(&world.admin).header("if-none-match", &tag).send()
    });
    let replies = futures::future::join_all(polls).await;
    assert!(replies.iter().all(|reply| reply.status == 304));
    let most = 1 + began.elapsed().as_millis() as u64 / 50;
    let made = *looks.borrow() - before;
    assert!((1..=most).contains(&made), "{made} looks for 20 who waited");
}
