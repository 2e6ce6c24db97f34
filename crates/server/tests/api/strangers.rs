//! Callers that guess tokens: they cost the store next to nothing, and nobody else anything.

use std::time::Duration;

use futures::StreamExt;
use giga_domain::token::{Role, TokenSecret};

use crate::world::World;

/// Well-formed, and nobody's.
fn guess(number: u32) -> String {
    let mut random = [7; 32];
    random[..4].copy_from_slice(&number.to_be_bytes());
    TokenSecret::from_random("user", random).reveal().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_unknown_tokens_leaves_the_store_and_valid_callers_alone() {
    let world = World::start().await;
    let never_used = world.token(Role::Viewer, &[]).await;
    world.get("/api/fleet/jobs").token(&world.admin).gives(200).await;
    let before = *world.store.token_reads.borrow();

    let flood = futures::stream::iter(0..2_000).map(|number| {
        let world = &world;
        async move { world.get("/api/fleet/jobs").token(&guess(number)).send().await }
    });
    let replies: Vec<_> = flood.buffer_unordered(64).collect().await;
    let refused = replies.iter().filter(|reply| reply.status == 429).count();
    assert_eq!(replies.iter().filter(|reply| reply.status == 401).count() + refused, 2_000);
    assert!(refused >= 1_900, "{refused}");
    let slowed = replies.iter().find(|reply| reply.status == 429).unwrap();
    assert!(slowed.text.contains("too_many_requests") && slowed.text.contains("unknown tokens"));
    assert_eq!(slowed.header("retry-after"), "1");

    // From the very same address: one that was known, one that is used for the first time, one that is new.
    world.get("/api/fleet/jobs").token(&world.admin).gives(200).await;
    world.get("/api/fleet/jobs").token(&never_used).gives(200).await;
    world.clock.advance(Duration::from_secs(3));
    let new = world.token(Role::Viewer, &[]).await;
    world.get("/api/fleet/jobs").token(&new).gives(200).await;
    let reads = *world.store.token_reads.borrow() - before;
    assert!(reads <= 45, "{reads} reads for 2,000 guesses");
}

#[tokio::test]
async fn an_unknown_token_is_asked_for_once_and_the_address_recovers() {
    let world = World::start().await;
    let before = *world.store.token_reads.borrow();
    for _ in 0..30 {
        world.get("/api/fleet/jobs").token(&guess(1)).refused(401, "unauthenticated", "unknown").await;
    }
    assert_eq!(*world.store.token_reads.borrow() - before, 1);
    world.get("/api/fleet/jobs").token(&guess(1)).refused(429, "too_many_requests", "in 1 s").await;
    world.clock.advance(Duration::from_secs(1));
    world.get("/api/fleet/jobs").token(&guess(1)).refused(401, "unauthenticated", "unknown").await;
}
