//! The OpenAPI document: the same as the golden one, and the same as the route table.

use std::collections::BTreeSet;

use giga_server::{openapi, routes};
use serde_json::Value;

use crate::world::World;

fn document() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

#[test]
fn it_is_what_it_was() {
    insta::assert_json_snapshot!("openapi", document());
}

#[test]
fn it_has_every_route_and_no_other() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            documented.insert((
                method.to_uppercase(),
                path.clone(),
                operation["operationId"].as_str().unwrap().to_owned(),
            ));
        }
    }
    let table = routes::table().iter();
    let served: BTreeSet<_> =
        table.map(|r| (r.method.to_string(), r.path.to_owned(), r.operation.to_owned())).collect();
    assert_eq!(documented, served);
    assert_eq!(served.len(), routes::table().len(), "no two routes alike");
}

#[test]
fn it_says_who_may_and_what_may_go_wrong() {
    let document = document();
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    for route in routes::table() {
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        let public = route.access == routes::Access::Public;
        assert_eq!(operation["security"].is_array(), !public, "{}", route.operation);
        // A message that is signed instead needs no token, and may be signed wrongly; whoever signs in has none yet, and may be
        // refused.
        let signs_in = ["startDeviceSignIn", "pollDeviceSignIn", "login", "loginCallback"];
        let may_be_strange =
            !public || route.operation == "receiveHook" || signs_in.contains(&route.operation);
        assert_eq!(operation["responses"]["401"].is_object(), may_be_strange, "{}", route.operation);
        assert!(!route.about.is_empty() && !route.answers.is_empty(), "{}", route.operation);
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 20);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), field) {
                    ("$ref", Value::String(target)) => {
                        references.insert(target.clone());
                    }
                    _ => collect(field, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[tokio::test]
async fn it_is_served_to_anyone() {
    let world = World::start().await;
    let served = world.get("/api/openapi.json").gives(200).await;
    assert_eq!(served.header("content-type"), "application/json");
    assert_eq!(served.json(), document());
}
