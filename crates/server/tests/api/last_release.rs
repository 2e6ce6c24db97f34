//! What a factory of the last release says to its coordinator, said to this one: recorded between `giga factory run` and
//! `giga serve` of the revision in `tests/upgrade/last-release` (three jobs: one that ships, one that fails, one that is
//! handed back). Each call is answered as it was then, with everything that the factory could have read in the answer.
//! `cargo xtask upgrade` runs the real binaries; this is what every change is held against.

use std::collections::BTreeMap;

use axum::http::Method;
use giga_api::wire;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::world::World;

/// The first member of `then` that is not in `now`, or is something else by now.
fn missing(then: &Value, now: &Value, at: &str) -> Option<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then.iter().find_map(|(name, then)| {
            let at = format!("{at}.{name}");
            match now.get(name) {
                Some(now) => missing(then, now, &at),
                None => Some(at),
            }
        }),
        (Value::Array(then), Value::Array(now)) => match (then.first(), now.first()) {
            (Some(then), Some(now)) => missing(then, now, &format!("{at}[0]")),
            (Some(_), None) => Some(format!("{at}[0]")),
            (None, _) => None,
        },
        _ => (std::mem::discriminant(then) != std::mem::discriminant(now)).then(|| at.to_owned()),
    }
}

fn parses<T: DeserializeOwned>(answer: &Value) -> Result<(), String> {
    serde_json::from_value::<T>(answer.clone()).map(drop).map_err(|error| error.to_string())
}

/// A factory of this release reads what a coordinator of the last one answered.
fn is_understood(path: &str, answer: &Value) -> Result<(), String> {
    match path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default() {
        "heartbeat" => parses::<wire::HeartbeatAnswer>(answer),
        "claim" if path.contains("merges") => parses::<wire::MergeOrders>(answer),
        "claim" => parses::<wire::ClaimAnswer>(answer),
        "logs" => parses::<wire::AppendLogAnswer>(answer),
        "renew" => parses::<wire::RenewAnswer>(answer),
        "artifacts" => parses::<wire::Artifact>(answer),
        "queue-state" => parses::<wire::QueueState>(answer),
        "push" => Ok(()),
        _ => parses::<wire::Job>(answer),
    }
}

#[tokio::test]
async fn a_factory_of_the_last_release_is_answered_as_before() {
    let world = World::start().await;
    let token = world.factory("f-1", &[]).await;
    let record: Vec<Value> = serde_json::from_str(include_str!("fixtures/last-release.json")).unwrap();
    let mut ids = BTreeMap::new();
    let mut kinds = std::collections::BTreeSet::new();
    for call in &record {
        if let Some(name) = call["submit"].as_str() {
            let manifest = call["manifest"].as_str().unwrap();
            let submitted = world
                .post("/api/fleet/jobs")
                .token(&world.admin)
                .header("idempotency-key", name)
                .markdown(manifest)
                .gives(201)
                .await;
            ids.insert(format!("{{{name}}}"), submitted.json()["job"]["id"].as_str().unwrap().to_owned());
            continue;
        }
        let filled = |text: &str| ids.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id));
        let path = filled(call["path"].as_str().unwrap());
        let method: Method = call["method"].as_str().unwrap().parse().unwrap();
        let mut sent = world.call(method, &path).token(&token);
        if let Some(media_type) = call["type"].as_str() {
            let body = match &call["body"] {
                Value::String(text) => filled(text),
                json => filled(&json.to_string()),
            };
            sent = sent.body(media_type, body);
        }
        let answer = sent.gives(u16::try_from(call["status"].as_u64().unwrap()).unwrap()).await;
        if !call["answer"].is_null() {
            let now = answer.json();
            assert_eq!(missing(&call["answer"], &now, ""), None, "{path} answered {now:#}");
            is_understood(&path, &call["answer"]).unwrap_or_else(|why| panic!("{path}: {why}"));
        }
        kinds.insert(path.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned());
    }
    for kind in [
        "heartbeat",
        "queue-state",
        "claim",
        "logs",
        "renew",
        "artifacts",
        "report",
        "fail",
        "push",
        "settle",
        "release",
    ] {
        assert!(kinds.contains(kind), "{kind} is not in the record: {kinds:?}");
    }
}

#[test]
fn what_went_missing_is_named() {
    let of = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let then = of(r#"{"a": 1, "b": {"c": ["x"]}}"#);
    assert_eq!(missing(&then, &of(r#"{"a": 2, "b": {"c": ["y"], "d": 1}, "e": 1}"#), ""), None);
    assert_eq!(missing(&then, &of(r#"{"a": 1, "b": {"c": []}}"#), "").as_deref(), Some(".b.c[0]"));
    assert_eq!(missing(&then, &of(r#"{"a": "1", "b": {"c": ["x"]}}"#), "").as_deref(), Some(".a"));
    assert_eq!(missing(&then, &of(r#"{"b": {"c": ["x"]}}"#), "").as_deref(), Some(".a"));
}
