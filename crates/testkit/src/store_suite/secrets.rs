//! Named secrets: versions that follow each other, of one product each, and sealed bytes that come back as they were.

use std::time::Duration;

use futures::future::join_all;
use giga_domain::{EventKind, SealedSecret, Secret, limits};
use giga_ports::StoreError;
use giga_ports::store::{RekeySecret, RemoveSecret, SetSecret};
use serde_json::json;

use super::World;
use super::world::{product, user};

fn set(of: &str, name: &str, version: u64, sealed: &[u8]) -> SetSecret {
    let (product, name) = (product(of), name.parse().unwrap());
    SetSecret { product, name, version, key_id: "k-1".to_owned(), sealed: sealed.to_vec(), actor: user() }
}

fn remove(of: &str, name: &str) -> RemoveSecret {
    RemoveSecret { product: product(of), name: name.parse().unwrap(), actor: user() }
}

async fn sealed(world: &World, of: &str, name: &str) -> Option<SealedSecret> {
    world.store.read().sealed_secret(&product(of), &name.parse().unwrap()).await.unwrap()
}

async fn names(world: &World, of: &str) -> Vec<(String, u64)> {
    let listed = world.store.read().secrets(&product(of)).await.unwrap();
    listed.into_iter().map(|secret| (secret.name.to_string(), secret.version)).collect()
}

pub async fn versions_follow_each_other(world: &World) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let first = world.store.set_secret(set("demo", "KEY", 1, &every_byte)).await.unwrap();
    world.advance(Duration::from_secs(1));
    let second = world.store.set_secret(set("demo", "KEY", 2, b"two")).await.unwrap();
    assert_eq!((first.version, second.version), (1, 2));
    assert_eq!((second.created_at, second.updated_at), (first.created_at, world.now()));
    assert_eq!(second.updated_by, user());
    for store in world.handles().await {
        let read = store.read().sealed_secret(&product("demo"), &second.name).await.unwrap();
        assert_eq!(read, Some(SealedSecret { secret: second.clone(), sealed: b"two".to_vec() }));
    }
    // What somebody else was faster with is refused, and says nothing in the feed.
    let before = world.feed().await;
    for stale in [1, 2, 4] {
        let refused = world.store.set_secret(set("demo", "KEY", stale, b"late")).await;
        assert!(matches!(refused, Err(StoreError::SecretChanged(_))), "{refused:?}");
    }
    // The same command again is answered.
    assert_eq!(world.store.set_secret(set("demo", "KEY", 2, b"two")).await.unwrap(), second);
    assert_eq!(world.feed().await, before);
    let told: Vec<_> = before.iter().map(|e| (e.kind, &e.product, e.data["version"].clone())).collect();
    let of = Some(product("demo"));
    assert_eq!(told, [(EventKind::SecretSet, &of, json!(1)), (EventKind::SecretSet, &of, json!(2))]);
}

pub async fn sealed_bytes_come_back_as_they_were(world: &World) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(limits::SECRET_BYTES + 100).collect();
    world.store.set_secret(set("demo", "KEY", 1, &every_byte)).await.unwrap();
    assert_eq!(sealed(world, "demo", "KEY").await.unwrap().sealed, every_byte);
    assert_eq!(sealed(world, "demo", "OTHER").await, None);
    assert_eq!(sealed(world, "other", "KEY").await, None);
}

pub async fn secrets_are_of_their_product(world: &World) {
    for (of, name) in [("demo", "B"), ("demo", "A"), ("app", "A"), ("demo", "A_B")] {
        world.store.set_secret(set(of, name, 1, format!("{of} {name}").as_bytes())).await.unwrap();
    }
    let one = |name: &str| (name.to_owned(), 1);
    assert_eq!(names(world, "demo").await, [one("A"), one("A_B"), one("B")], "by name");
    assert_eq!(names(world, "app").await, [one("A")]);
    assert_eq!(names(world, "none").await, []);
    let all = world.store.read().all_secrets().await.unwrap();
    let all: Vec<_> = all.iter().map(|secret| (secret.product.as_str(), secret.name.as_str())).collect();
    assert_eq!(all, [("app", "A"), ("demo", "A"), ("demo", "A_B"), ("demo", "B")]);
    assert_eq!(sealed(world, "app", "A").await.unwrap().sealed, b"app A");
}

pub async fn what_is_removed_is_gone(world: &World) {
    world.store.set_secret(set("demo", "KEY", 1, b"one")).await.unwrap();
    world.store.set_secret(set("app", "KEY", 1, b"theirs")).await.unwrap();
    assert!(world.store.remove_secret(remove("demo", "KEY")).await.unwrap());
    assert_eq!(sealed(world, "demo", "KEY").await, None);
    assert_eq!(names(world, "app").await, [("KEY".to_owned(), 1)]);
    let before = world.feed().await;
    assert_eq!(before.last().unwrap().kind, EventKind::SecretRemoved);
    assert!(!world.store.remove_secret(remove("demo", "KEY")).await.unwrap(), "once");
    assert_eq!(world.feed().await, before);
    // Made anew, it begins anew.
    let again = world.store.set_secret(set("demo", "KEY", 1, b"anew")).await.unwrap();
    assert_eq!(again.version, 1);
}

pub async fn another_key_seals_the_same_version(world: &World) {
    let set_at = world.store.set_secret(set("demo", "KEY", 1, b"old key")).await.unwrap();
    world.advance(Duration::from_secs(1));
    let opened = sealed(world, "demo", "KEY").await.unwrap();
    let rekey = RekeySecret {
        opened: opened.clone(),
        key_id: "k-2".to_owned(),
        sealed: b"new key".to_vec(),
        actor: user(),
    };
    assert!(world.store.rekey_secret(rekey.clone()).await.unwrap());
    let now = sealed(world, "demo", "KEY").await.unwrap();
    assert_eq!(
        now,
        SealedSecret { secret: Secret { key_id: "k-2".to_owned(), ..set_at }, sealed: b"new key".to_vec() }
    );
    let event = world.feed().await.pop().unwrap();
    assert_eq!((event.kind, &event.data["keyId"]), (EventKind::SecretRekeyed, &json!("k-2")));
    // Again after a lost reply, and late, after somebody has set it.
    assert!(world.store.rekey_secret(rekey.clone()).await.unwrap());
    world.store.set_secret(set("demo", "KEY", 2, b"set meanwhile")).await.unwrap();
    assert!(!world.store.rekey_secret(rekey).await.unwrap());
    assert_eq!(sealed(world, "demo", "KEY").await.unwrap().sealed, b"set meanwhile");
    let late = RekeySecret { opened, key_id: "k-2".to_owned(), sealed: b"x".to_vec(), actor: user() };
    world.store.remove_secret(remove("demo", "KEY")).await.unwrap();
    assert!(!world.store.rekey_secret(late).await.unwrap(), "what is gone stays gone");
}

pub async fn one_too_many_is_refused(world: &World) {
    let most = limits::PRODUCT_SECRETS;
    let sets =
        (0..most).map(|n| world.store.set_secret(set("demo", &format!("S{n}"), 1, n.to_string().as_bytes())));
    join_all(sets).await.into_iter().for_each(|set| drop(set.unwrap()));
    let refused = world.store.set_secret(set("demo", "MORE", 1, b"more")).await;
    assert!(matches!(refused, Err(StoreError::TooManySecrets(_))), "{refused:?}");
    world.store.set_secret(set("demo", "S7", 2, b"a new value")).await.unwrap();
    world.store.set_secret(set("app", "MORE", 1, b"theirs")).await.unwrap();
}

pub async fn racing_setters_lose_no_version(world: &World) {
    let handles = world.handles().await;
    let racers = (0..12_u8).map(|n| {
        let store = handles[usize::from(n) % handles.len()].clone();
        tokio::spawn(async move { store.set_secret(set("demo", "KEY", 1, &[n])).await })
    });
    let answers: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "one of them made version 1");
    let lost = |answer: &&Result<Secret, StoreError>| matches!(answer, Err(StoreError::SecretChanged(_)));
    assert_eq!(answers.iter().filter(lost).count(), 11);
    assert_eq!(world.feed().await.len(), 1);
}
