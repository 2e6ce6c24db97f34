//! Products, the repositories that they own, and the secrets that coordinators share.

use std::time::Duration;

use futures::future::join_all;
use giga_domain::job::{MergeBy, MergeFeedback, MergeSettings, MergeStrategy};
use giga_domain::{
    EventKind, NetworkLevel, Permissions, PolicyFloor, Product, ProductSettings, Rev, ScoreTerm, Weights,
};
use giga_ports::StoreError;
use giga_ports::store::{RotateKey, SetProduct, ShareKey};

use super::World;
use super::world::{product, user};

fn owning(repos: &[&str]) -> ProductSettings {
    ProductSettings {
        repos: repos.iter().map(|&repo| repo.to_owned()).collect(),
        ..ProductSettings::default()
    }
}

fn write(id: &str, settings: &ProductSettings, if_rev: Option<Rev>) -> SetProduct {
    SetProduct { product: product(id), settings: settings.clone(), if_rev, actor: user() }
}

async fn set(world: &World, id: &str, settings: &ProductSettings) -> Product {
    world.store.set_product(write(id, settings, None)).await.unwrap()
}

async fn products(world: &World) -> Vec<Product> {
    world.store.read().products().await.unwrap()
}

pub async fn a_product_is_set_and_told(world: &World) {
    assert_eq!(products(world).await, []);
    let settings = ProductSettings {
        share: 1.0 / 3.0,
        weights: Weights::default().with(ScoreTerm::Affinity, 0.1 + 0.2),
        repos: vec!["hello".to_owned(), "naïve \"quoted\"".to_owned()],
        merge: MergeSettings {
            strategy: Some(MergeStrategy::Squash),
            by: Some(MergeBy::PullRequest),
            feedback: Some(MergeFeedback::Changes),
            message: Some("{name}\n\n{job}".to_owned()),
            author: Some("Ana <ana@example.org>".to_owned()),
        },
        merge_checks: vec!["make all".to_owned()],
        merge_batch: 7,
        policy: PolicyFloor {
            quorum: 2,
            auto_ship: false,
            engines: vec!["claude".to_owned()],
            sandbox: true,
            network: NetworkLevel::List,
            permissions: Some(Permissions::Edit),
            max_children: Some(9),
            max_depth: Some(0),
            max_queued_jobs: Some(u64::from(u32::MAX) + 1),
            max_artifact_mib: None,
        },
    };
    let made = set(world, "demo", &settings).await;
    assert_eq!(made, Product { id: product("demo"), settings, rev: Rev(1) });
    assert_eq!(products(world).await, std::slice::from_ref(&made));
    let other = set(world, "app", &ProductSettings::default()).await;
    assert_eq!(products(world).await, [other, made], "by id");
    let feed = world.feed().await;
    assert_eq!(feed.len(), 2);
    let reported = &feed[0];
    assert_eq!((reported.kind, &reported.actor, reported.job), (EventKind::ProductChanged, &user(), None));
    assert_eq!((&reported.product, &reported.data["productId"]), (&Some(product("demo")), &"demo".into()));
    for store in world.handles().await {
        assert_eq!(store.read().products().await.unwrap(), products(world).await);
    }
}

pub async fn the_same_settings_again_change_nothing(world: &World) {
    let first = set(world, "demo", &owning(&["a"])).await;
    let second = world.store.set_product(write("demo", &owning(&["b"]), Some(first.rev))).await.unwrap();
    let before = (products(world).await, world.feed().await);
    world.advance(Duration::from_secs(1));
    // As after a lost reply, with and without the revision that the caller saw.
    for if_rev in [None, Some(first.rev), Some(second.rev)] {
        let again = world.store.set_product(write("demo", &owning(&["b"]), if_rev)).await.unwrap();
        assert_eq!(again, second);
    }
    assert_eq!((products(world).await, world.feed().await), before);
    assert_eq!(before.1.len(), 2);
}

pub async fn another_revision_is_refused(world: &World) {
    let fresh = world.store.set_product(write("demo", &owning(&["a"]), Some(Rev(3)))).await.unwrap_err();
    assert!(matches!(fresh, StoreError::RevMismatch { given: Rev(3), current: Rev(0) }), "{fresh:?}");
    assert_eq!(products(world).await, []);
    world.store.set_product(write("demo", &owning(&["a"]), Some(Rev(0)))).await.unwrap();
    set(world, "demo", &owning(&["b"])).await;
    let before = (products(world).await, world.feed().await);
    for given in [Rev(0), Rev(1), Rev(3)] {
        let error = world.store.set_product(write("demo", &owning(&["c"]), Some(given))).await.unwrap_err();
        let expected = |error: &StoreError| matches!(error, StoreError::RevMismatch { current: Rev(2), .. });
        assert!(expected(&error), "{error:?}");
    }
    assert_eq!((products(world).await, world.feed().await), before);
}

pub async fn a_repository_has_one_owner(world: &World) {
    set(world, "demo", &owning(&["hello", "notes"])).await;
    let before = (products(world).await, world.feed().await);
    let error = world.store.set_product(write("app", &owning(&["own", "notes"]), None)).await.unwrap_err();
    let StoreError::RepoOwned { repo, owner } = &error else { panic!("{error:?}") };
    assert_eq!((repo.as_str(), owner), ("notes", &product("demo")));
    let spelled = world.store.set_product(write("app", &owning(&["Notes.git"]), None)).await;
    assert!(matches!(spelled, Err(StoreError::RepoOwned { .. })), "{spelled:?}");
    assert_eq!((products(world).await, world.feed().await), before, "not even what was free");
    // What it owns itself it may name again, and what it lets go of is free.
    set(world, "demo", &owning(&["hello"])).await;
    set(world, "app", &owning(&["own", "notes"])).await;
    let error = world.store.set_product(write("demo", &owning(&["hello", "notes"]), None)).await.unwrap_err();
    assert!(matches!(&error, StoreError::RepoOwned { owner, .. } if *owner == product("app")), "{error:?}");
}

pub async fn one_of_many_racing_owners_wins(world: &World) {
    let handles = world.handles().await;
    let racers = (0..20).map(|n| {
        let store = handles[n % handles.len()].clone();
        let write = write(&format!("product-{n}"), &owning(&["wanted", &format!("own-{n}")]), None);
        tokio::spawn(async move { store.set_product(write).await })
    });
    let answers = join_all(racers).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().map(Result::unwrap).partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    let winner = won.into_iter().next().unwrap().unwrap();
    for error in lost.into_iter().map(Result::unwrap_err) {
        assert!(matches!(&error, StoreError::RepoOwned { owner, .. } if *owner == winner.id), "{error:?}");
    }
    assert_eq!(products(world).await, [winner]);
    assert_eq!(world.feed().await.len(), 1);
    assert!(handles.iter().all(|store| store.stats().retries == 0), "they took turns");
}

pub async fn a_key_is_replaced_when_it_is_old_enough(world: &World) {
    const MONTH: Duration = Duration::from_hours(30 * 24);
    let rotate = async |fresh: u8, older_than| {
        let (name, previous) = ("links", "links.previous");
        let command = RotateKey { name, previous, fresh: [fresh; 32], older_than, actor: user() };
        let ring = world.store.rotate_key(command).await.unwrap();
        (ring.current[0], ring.previous.map(|key| key[0]))
    };
    assert_eq!(rotate(1, MONTH).await, (1, None));
    world.advance(MONTH.saturating_sub(Duration::from_millis(1)));
    assert_eq!(rotate(2, MONTH).await, (1, None), "not yet");
    assert_eq!(world.feed().await, []);
    world.advance(Duration::from_millis(1));
    assert_eq!(rotate(2, MONTH).await, (2, Some(1)));
    assert_eq!(rotate(3, MONTH).await, (2, Some(1)));
    // By hand, and the same once more.
    assert_eq!(rotate(4, Duration::ZERO).await, (4, Some(2)));
    assert_eq!(rotate(4, Duration::ZERO).await, (4, Some(2)), "a repetition");
    let kinds: Vec<_> = world.feed().await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::KeyRotated, EventKind::KeyRotated]);
}

pub async fn a_key_is_replaced_by_one_of_many(world: &World) {
    let handles = world.handles().await;
    let key = |fresh, older_than| RotateKey {
        name: "links",
        previous: "links.previous",
        fresh: [fresh; 32],
        older_than,
        actor: user(),
    };
    world.store.rotate_key(key(0, Duration::MAX)).await.unwrap();
    world.advance(Duration::from_secs(10));
    let racers = (1..=10u8).map(|n| {
        let (store, key) = (handles[usize::from(n) % handles.len()].clone(), key(n, Duration::from_secs(10)));
        tokio::spawn(async move { store.rotate_key(key).await.unwrap() })
    });
    let rings: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    assert!(rings.iter().all(|ring| *ring == rings[0] && ring.previous == Some([0; 32])));
    assert_eq!(world.feed().await.len(), 1);
}

pub async fn a_secret_is_one_for_all(world: &World) {
    let handles = world.handles().await;
    let racers = (0..10u8).map(|n| {
        let store = handles[usize::from(n) % handles.len()].clone();
        tokio::spawn(
            async move { store.share_key(ShareKey { name: "links", fresh: [n; 32] }).await.unwrap() },
        )
    });
    let reported: Vec<[u8; 32]> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
    assert!(reported.iter().all(|secret| *secret == reported[0]), "{reported:?}");
    let other = world.store.share_key(ShareKey { name: "other", fresh: [0xfe; 32] }).await.unwrap();
    assert_eq!(other, [0xfe; 32]);
    for store in world.handles().await {
        assert_eq!(
            store.share_key(ShareKey { name: "links", fresh: [0xff; 32] }).await.unwrap(),
            reported[0]
        );
    }
    assert_eq!(world.feed().await, [], "nobody is told");
}
