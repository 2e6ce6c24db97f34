//! Who did what: in pages, by filter, and cut to what the caller may see.

use giga_domain::token::Role;
use serde_json::{Value, json};

use crate::world::World;

async fn page(world: &World, token: &str, query: &str) -> (Vec<Value>, Option<u64>) {
    let page = world.get(&format!("/api/fleet/audit?{query}")).token(token).gives(200).await.json();
    (page["entries"].as_array().unwrap().clone(), page["nextBefore"].as_u64())
}

/// All pages of one size.
async fn all(world: &World, token: &str, query: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut before) = (Vec::new(), String::new());
    loop {
        let (entries, next) = page(world, token, &format!("{query}&limit={limit}{before}")).await;
        assert!(entries.len() <= limit);
        found.extend(entries);
        let Some(next) = next else { return found };
        before = format!("&before={next}");
    }
}

async fn submit(world: &World, token: &str, product: &str, name: &str) {
    let body = json!({"manifest": {"name": name, "product": product}});
    world.post("/api/fleet/jobs").token(token).json(body).gives(201).await;
}

fn actors(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["actor"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn pages_of_any_size_show_the_same_newest_first() {
    let world = World::start().await;
    let (ana, bo) = (world.labelled(Role::Operator, "Ana").await, world.labelled(Role::Operator, "bo").await);
    for number in 0..7 {
        submit(&world, if number % 2 == 0 { &ana } else { &bo }, "demo", &format!("job-{number}")).await;
    }
    let whole = all(&world, &world.admin, "", 500).await;
    assert!(whole.is_sorted_by(|a, b| a["pos"].as_u64() > b["pos"].as_u64()));
    let people = whole.iter().filter(|entry| entry["type"] == "job.submitted").cloned().collect::<Vec<_>>();
    assert_eq!(actors(&people), ["Ana", "bo", "Ana", "bo", "Ana", "bo", "Ana"]);
    for limit in [1, 2, 3, 7] {
        assert_eq!(all(&world, &world.admin, "", limit).await, whole, "by {limit}");
        let of_ana = all(&world, &world.admin, "actor=ana", limit).await;
        assert_eq!(actors(&of_ana), ["Ana"; 4], "by {limit}");
    }
    // By id as well, and by what is no person.
    let id = people[0]["actorId"].as_str().unwrap().strip_prefix("token ").unwrap();
    assert_eq!(all(&world, &world.admin, &format!("actor={id}"), 500).await.len(), 4);
    world.factory("mac-1", &[]).await;
    let by_mac = all(&world, &world.admin, "actor=mac-1", 500).await;
    assert!(!by_mac.is_empty() && actors(&by_mac).iter().all(|actor| *actor == "mac-1"), "{by_mac:?}");
    let by_test = all(&world, &world.admin, "actor=test&kind=factory.enrolled", 500).await;
    assert_eq!(actors(&by_test), ["test"]);
    let anybody = all(&world, &world.admin, "actor=*", 2).await;
    assert_eq!(anybody.len(), world.feed().await.len());
}

#[tokio::test]
async fn filters_that_mean_nothing_are_refused() {
    let world = World::start().await;
    for (query, field) in [
        ("kind=job.exploded", "kind"),
        ("actor=%20", "actor"),
        ("since=yesterday", "since"),
        ("before=-1", "before"),
        ("limit=0", "limit"),
        ("job=7", "job"),
    ] {
        let call = world.get(&format!("/api/fleet/audit?{query}")).token(&world.admin);
        call.refused(400, "invalid_request", field).await;
    }
    let unknown = world.get("/api/fleet/audit?job=01J9ZK3V5N8Q4W2E6R7T1Y0ABC").token(&world.admin);
    unknown.refused(404, "not_found", "there is no job").await;
}

#[tokio::test]
async fn each_sees_its_own_products_and_nobody_else_the_fleet() {
    let world = World::start().await;
    let ana = world.labelled(Role::Operator, "ana").await;
    submit(&world, &ana, "alpha", "one").await;
    submit(&world, &ana, "beta", "two").await;
    let of_alpha = world.token(Role::Operator, &["alpha"]).await;
    let seen = all(&world, &of_alpha, "actor=*", 500).await;
    assert!(!seen.is_empty() && seen.iter().all(|entry| entry["productId"] == "alpha"), "{seen:?}");
    assert_eq!(actors(&all(&world, &of_alpha, "actor=ana", 500).await), ["ana"]);
    assert_eq!(all(&world, &of_alpha, "kind=token.issued", 500).await, Vec::<Value>::new());
    assert!(!all(&world, &world.admin, "kind=token.issued", 500).await.is_empty());
    let narrowed = world.get("/api/fleet/audit").token(&world.admin).header("x-product-id", "beta");
    let narrowed = narrowed.gives(200).await.json();
    assert_eq!(narrowed["entries"].as_array().unwrap().len(), 1);
}
