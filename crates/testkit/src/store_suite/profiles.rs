//! Profiles: versions without gaps, none of which ever changes.

use std::time::Duration;

use futures::future::join_all;
use giga_domain::{EventKind, Profile, ProfileContent};
use giga_ports::store::AddProfile;
use serde_json::{Value, json};

use super::World;
use super::world::{product, user};

fn content(persona: &str) -> ProfileContent {
    let Value::Object(defaults) = json!({ "engine": "claude", "capabilities": ["has:git"] }) else {
        unreachable!("it is written as an object")
    };
    ProfileContent { persona: persona.to_owned(), defaults }
}

fn new(name: &str, persona: &str) -> AddProfile {
    AddProfile { product: product("demo"), name: name.to_owned(), content: content(persona), actor: user() }
}

async fn added(world: &World, name: &str, persona: &str) -> Profile {
    world.store.add_profile(new(name, persona)).await.unwrap()
}

async fn version(world: &World, name: &str, version: Option<u32>) -> Option<Profile> {
    world.store.read().profile(&product("demo"), name, version).await.unwrap()
}

pub async fn versions_follow_each_other(world: &World) {
    let text = "You write Rust.\n\n\tNo \"unwrap\" — ever. 🦀";
    let first = added(world, "coder", text).await;
    world.advance(Duration::from_secs(1));
    let second = added(world, "coder", "You write Go.").await;
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!((&first.content, first.created_by.clone()), (&content(text), user()));
    assert_eq!(second.created_at, world.now());
    for store in world.handles().await {
        let read = store.read().profile(&product("demo"), "coder", Some(1)).await.unwrap();
        assert_eq!(read, Some(first.clone()));
    }
    assert_eq!(version(world, "coder", Some(1)).await, Some(first));
    assert_eq!(version(world, "coder", Some(2)).await, Some(second.clone()));
    assert_eq!(version(world, "coder", None).await, Some(second));
    assert_eq!(version(world, "coder", Some(3)).await, None);
    assert_eq!(version(world, "nobody", None).await, None);
    let feed = world.feed().await;
    let reported: Vec<_> = feed.iter().map(|e| (e.kind, e.data["version"].as_u64().unwrap())).collect();
    assert_eq!(reported, [(EventKind::ProfileAdded, 1), (EventKind::ProfileAdded, 2)]);
    assert_eq!((&feed[0].product, &feed[0].data["name"]), (&Some(product("demo")), &json!("coder")));
}

pub async fn the_newest_content_again_is_the_newest(world: &World) {
    let first = added(world, "coder", "one").await;
    let second = added(world, "coder", "two").await;
    let before = world.feed().await;
    world.advance(Duration::from_secs(1));
    assert_eq!(added(world, "coder", "two").await, second);
    assert_eq!(world.feed().await, before);
    // Going back is a step forward: the older version stays what it was.
    let third = added(world, "coder", "one").await;
    assert_eq!((third.version, &third.content), (3, &first.content));
    assert_eq!(version(world, "coder", Some(1)).await, Some(first));
}

pub async fn profiles_are_of_their_product(world: &World) {
    added(world, "tester", "tests").await;
    added(world, "coder", "one").await;
    let newest = added(world, "coder", "two").await;
    let elsewhere = AddProfile { product: product("app"), ..new("coder", "theirs") };
    let theirs = world.store.add_profile(elsewhere).await.unwrap();
    assert_eq!(theirs.version, 1);
    let listed = world.store.read().profiles(&product("demo")).await.unwrap();
    let names: Vec<_> = listed.iter().map(|p| (p.name.as_str(), p.version)).collect();
    assert_eq!(names, [("coder", 2), ("tester", 1)], "the newest of each, by name");
    assert_eq!(listed[0], newest);
    assert_eq!(world.store.read().profiles(&product("app")).await.unwrap(), [theirs]);
    assert_eq!(world.store.read().profiles(&product("none")).await.unwrap(), []);
}

pub async fn racing_authors_leave_no_gap(world: &World) {
    let handles = world.handles().await;
    let racers = (0..24).map(|n| {
        let store = handles[n % handles.len()].clone();
        // Pairs of them write the same.
        let new = new("coder", &format!("text {}", n / 2));
        tokio::spawn(async move { store.add_profile(new).await.unwrap() })
    });
    let made: Vec<Profile> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    let newest = version(world, "coder", None).await.unwrap().version;
    assert!((12..=24).contains(&newest));
    for n in 1..=newest {
        let kept = version(world, "coder", Some(n)).await.unwrap();
        assert!(made.contains(&kept), "version {n} is what somebody was told");
    }
    assert_eq!(world.feed().await.len(), newest as usize);
    assert!(handles.iter().all(|store| store.stats().retries == 0), "they took turns");
}
