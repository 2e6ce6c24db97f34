//! Tokens and flags.

use std::time::Duration;

use giga_domain::factory::FactoryScope;
use giga_domain::token::TokenRecord;
use giga_domain::{CapabilitySet, EventKind, TokenId};
use giga_ports::StoreError;
use giga_ports::store::{
    Enroll, IssueToken, RenewToken, RevokeFactoryTokens, RevokeToken, RotateToken, SetFlag,
};
use serde_json::{Value, json};

use super::World;
use super::world::{factory, product, user};

const GRACE: Duration = Duration::from_mins(10);

async fn known(world: &World, record: &TokenRecord) -> TokenRecord {
    world.store.read().token_by_hash(&record.hash).await.unwrap().expect("the token is known")
}

async fn is_live(world: &World, record: &TokenRecord) -> bool {
    known(world, record).await.is_live(world.now())
}

/// A factory and its first token.
async fn enrolled(world: &World) -> (giga_domain::FactoryId, TokenRecord) {
    let token = world.factory_token("mac-1");
    let new =
        Enroll { id: factory("mac-1"), scope: FactoryScope::default(), token: token.clone(), actor: user() };
    world.store.enroll(new).await.unwrap();
    (factory("mac-1"), token)
}

pub async fn found_by_its_hash(world: &World) {
    let mut token = world.user_token();
    token.expires_at = Some(world.now().plus(GRACE));
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    let scope = FactoryScope {
        products: vec![product("demo")],
        capabilities: CapabilitySet::parse(["os:linux"]).ok(),
    };
    let mut of_factory = world.factory_token("mac-1");
    of_factory.permission = giga_domain::token::Permission::Factory { factory: factory("mac-1"), scope };
    world.store.issue_token(IssueToken { token: of_factory.clone(), actor: user() }).await.unwrap();
    for record in [token, of_factory] {
        // Times are the store's, whatever the caller wrote.
        let expected = TokenRecord { created_at: world.now(), ..record.clone() };
        assert_eq!(known(world, &record).await, expected);
    }
    let stranger = world.user_token();
    assert_eq!(world.store.read().token_by_hash(&stranger.hash).await.unwrap(), None);
}

pub async fn rotation_leaves_a_grace(world: &World) {
    let (mac, old) = enrolled(world).await;
    world.advance(Duration::from_secs(5));
    let new = world.factory_token("mac-1");
    world
        .store
        .rotate_token(RotateToken { factory: mac.clone(), token: new.clone(), grace: GRACE, actor: user() })
        .await
        .unwrap();
    assert!(is_live(world, &old).await && is_live(world, &new).await, "both work during the grace");
    assert_eq!(known(world, &old).await.expires_at, Some(world.now().plus(GRACE)));
    let before = (world.store.read().tokens().await.unwrap(), world.feed().await);
    world.advance(Duration::from_secs(5));
    world
        .store
        .rotate_token(RotateToken { factory: mac, token: new.clone(), grace: GRACE, actor: user() })
        .await
        .unwrap();
    assert_eq!((world.store.read().tokens().await.unwrap(), world.feed().await), before, "a repetition");
    world.advance(GRACE);
    assert!(!is_live(world, &old).await);
    assert!(is_live(world, &new).await);
}

pub async fn a_second_rotation_does_not_prolong(world: &World) {
    let (mac, first) = enrolled(world).await;
    let (second, third) = (world.factory_token("mac-1"), world.factory_token("mac-1"));
    world
        .store
        .rotate_token(RotateToken {
            factory: mac.clone(),
            token: second.clone(),
            grace: GRACE,
            actor: user(),
        })
        .await
        .unwrap();
    let ends = known(world, &first).await.expires_at;
    world.advance(Duration::from_mins(1));
    world
        .store
        .rotate_token(RotateToken { factory: mac.clone(), token: third.clone(), grace: GRACE, actor: user() })
        .await
        .unwrap();
    assert_eq!(known(world, &first).await.expires_at, ends);
    assert_eq!(known(world, &second).await.expires_at, Some(world.now().plus(GRACE)));
    // Without a grace the old ones end at once.
    let fourth = world.factory_token("mac-1");
    world
        .store
        .rotate_token(RotateToken {
            factory: mac,
            token: fourth.clone(),
            grace: Duration::ZERO,
            actor: user(),
        })
        .await
        .unwrap();
    for old in [&first, &second, &third] {
        assert!(!is_live(world, old).await);
    }
    assert!(is_live(world, &fourth).await);
}

pub async fn revoking_a_factorys_tokens_is_immediate(world: &World) {
    let (mac, first) = enrolled(world).await;
    let second = world.factory_token("mac-1");
    world
        .store
        .rotate_token(RotateToken {
            factory: mac.clone(),
            token: second.clone(),
            grace: GRACE,
            actor: user(),
        })
        .await
        .unwrap();
    let users = world.user_token();
    world.store.issue_token(IssueToken { token: users.clone(), actor: user() }).await.unwrap();
    world
        .store
        .revoke_factory_tokens(RevokeFactoryTokens { factory: mac.clone(), actor: user() })
        .await
        .unwrap();
    for record in [&first, &second] {
        assert_eq!(known(world, record).await.revoked_at, Some(world.now()));
        assert!(!is_live(world, record).await);
    }
    assert!(is_live(world, &users).await);
    let before = (world.store.read().tokens().await.unwrap(), world.feed().await);
    world.advance(Duration::from_secs(1));
    world.store.revoke_factory_tokens(RevokeFactoryTokens { factory: mac, actor: user() }).await.unwrap();
    assert_eq!((world.store.read().tokens().await.unwrap(), world.feed().await), before, "a repetition");
}

pub async fn a_repeated_issue_is_one_token(world: &World) {
    let token = world.user_token();
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    let before = (world.store.read().tokens().await.unwrap(), world.feed().await);
    world.advance(Duration::from_secs(1));
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    assert_eq!((world.store.read().tokens().await.unwrap(), world.feed().await), before);
    assert_eq!(before.0.len(), 1);
    // Nor does a repetition bring a revoked token back to life.
    world.store.revoke_token(RevokeToken { token: token.id.clone(), actor: user() }).await.unwrap();
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    assert!(!is_live(world, &token).await);
}

pub async fn a_repeated_revocation_changes_nothing(world: &World) {
    let token = world.user_token();
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    world.store.revoke_token(RevokeToken { token: token.id.clone(), actor: user() }).await.unwrap();
    let (revoked, feed) = (known(world, &token).await, world.feed().await);
    assert_eq!(revoked.revoked_at, Some(world.now()));
    assert_eq!(feed.last().unwrap().kind, EventKind::TokenRevoked);
    world.advance(Duration::from_secs(1));
    world.store.revoke_token(RevokeToken { token: token.id.clone(), actor: user() }).await.unwrap();
    assert_eq!((known(world, &token).await, world.feed().await), (revoked, feed));
}

pub async fn a_renewal_gives_another_end(world: &World) {
    let mut token = world.user_token();
    token.expires_at = Some(world.now().plus(GRACE));
    world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
    let renew = async |expires_at| {
        let command = RenewToken { token: token.id.clone(), factory: None, expires_at, actor: user() };
        world.store.renew_token(command).await.unwrap()
    };
    // Also one that is over.
    world.advance(GRACE * 2);
    assert!(!is_live(world, &token).await);
    let end = Some(world.now().plus(GRACE));
    assert_eq!(renew(end).await.expires_at, end);
    assert!(is_live(world, &token).await);
    let event = world.feed().await.pop().unwrap();
    assert_eq!((event.kind, &event.data["tokenId"]), (EventKind::TokenRenewed, &json!(token.id.as_str())));
    let feed = world.feed().await.len();
    renew(end).await;
    assert_eq!(world.feed().await.len(), feed, "a repetition");
    assert_eq!(renew(None).await.expires_at, None);

    world.store.revoke_token(RevokeToken { token: token.id.clone(), actor: user() }).await.unwrap();
    let feed = world.feed().await.len();
    assert!(renew(end).await.revoked_at.is_some());
    assert!(!is_live(world, &token).await, "what was revoked stays so");
    assert_eq!(world.feed().await.len(), feed);
    let nobody =
        RenewToken { token: "nobody".parse().unwrap(), factory: None, expires_at: None, actor: user() };
    assert!(matches!(world.store.renew_token(nobody).await, Err(StoreError::NoSuchToken(_))));
}

pub async fn what_a_rotation_replaced_is_not_renewed(world: &World) {
    let (mac, old) = enrolled(world).await;
    world.advance(Duration::from_secs(5));
    let new = world.factory_token("mac-1");
    let rotate = RotateToken { factory: mac.clone(), token: new.clone(), grace: GRACE, actor: user() };
    world.store.rotate_token(rotate).await.unwrap();
    let far = Some(world.now().plus(GRACE * 10));
    let renew = async |token: &TokenRecord| {
        let factory = Some(mac.clone());
        let command = RenewToken { token: token.id.clone(), factory, expires_at: far, actor: user() };
        world.store.renew_token(command).await.unwrap().expires_at
    };
    assert_eq!(renew(&old).await, Some(world.now().plus(GRACE)));
    assert_eq!(renew(&new).await, far);
    world.advance(GRACE);
    assert!(!is_live(world, &old).await && is_live(world, &new).await);
}

pub async fn an_unknown_token_is_not_found(world: &World) {
    let id: TokenId = "nobody".parse().unwrap();
    let error = world.store.revoke_token(RevokeToken { token: id.clone(), actor: user() }).await.unwrap_err();
    assert!(matches!(&error, StoreError::NoSuchToken(named) if *named == id), "{error:?}");
    assert_eq!(world.feed().await, []);
}

pub async fn listed_by_creation(world: &World) {
    let mut issued = Vec::new();
    for _ in 0..12 {
        let token = world.user_token();
        world.store.issue_token(IssueToken { token: token.clone(), actor: user() }).await.unwrap();
        issued.push(token.id);
        world.advance(Duration::from_millis(1));
    }
    let listed: Vec<_> = world.store.read().tokens().await.unwrap().into_iter().map(|t| t.id).collect();
    assert_eq!(listed, issued);
}

pub async fn flags_are_set_and_audited(world: &World) {
    let store = &world.store;
    assert_eq!(store.read().flags().await.unwrap(), []);
    store.set_flag(SetFlag { name: "strict".to_owned(), value: json!(true), actor: user() }).await.unwrap();
    store
        .set_flag(SetFlag { name: "lease_ms".to_owned(), value: json!(5_000), actor: user() })
        .await
        .unwrap();
    store
        .set_flag(SetFlag { name: "lease_ms".to_owned(), value: json!(6_000), actor: user() })
        .await
        .unwrap();
    let mut flags = store.read().flags().await.unwrap();
    flags.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(flags, [("lease_ms".to_owned(), json!(6_000)), ("strict".to_owned(), json!(true))]);
    let reported: Vec<_> = world.feed().await.into_iter().map(|e| (e.kind, e.actor, e.data)).collect();
    assert_eq!(reported.len(), 3);
    assert!(reported.iter().all(|(kind, actor, _)| *kind == EventKind::FlagChanged && *actor == user()));
    let changes: Vec<_> =
        reported.iter().map(|(.., data)| (data["from"].clone(), data["to"].clone())).collect();
    let expected = [(Value::Null, json!(true)), (Value::Null, json!(5_000)), (json!(5_000), json!(6_000))];
    assert_eq!(changes, expected);
}

pub async fn the_same_flag_value_appends_no_event(world: &World) {
    for _ in 0..3 {
        world
            .store
            .set_flag(SetFlag { name: "delivery".to_owned(), value: json!("poll"), actor: user() })
            .await
            .unwrap();
    }
    assert_eq!(world.feed().await.len(), 1);
    assert_eq!(world.store.read().flags().await.unwrap(), [("delivery".to_owned(), json!("poll"))]);
}

pub async fn null_unsets_a_flag(world: &World) {
    let set =
        |value| world.store.set_flag(SetFlag { name: "delivery.mac-1".to_owned(), value, actor: user() });
    set(Value::Null).await.unwrap();
    assert_eq!(world.feed().await, [], "it was not set");
    set(json!("poll")).await.unwrap();
    set(Value::Null).await.unwrap();
    set(Value::Null).await.unwrap();
    assert_eq!(world.store.read().flags().await.unwrap(), []);
    let feed = world.feed().await;
    assert_eq!(feed.len(), 2);
    let last = &feed[1];
    assert_eq!((last.kind, &last.data["from"]), (EventKind::FlagChanged, &json!("poll")));
    assert_eq!((last.data.get("to"), &last.data["name"]), (Some(&Value::Null), &json!("delivery.mac-1")));
    set(json!("stream")).await.unwrap();
    let expected = [("delivery.mac-1".to_owned(), json!("stream"))];
    assert_eq!(world.store.read().flags().await.unwrap(), expected);
}
