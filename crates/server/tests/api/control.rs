//! What control planes ask for themselves: whose token they have, and texts made ready to be shown.

use giga_api::client::{Client, ClientOptions};
use giga_domain::limits;
use giga_domain::token::Role;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn every_token_is_told_whose_it_is() {
    let world = World::start().await;
    let whoami = |token: &str| world.get("/api/fleet/whoami").token(token);
    for role in Role::ALL {
        let me = whoami(&world.token(role, &["alpha", "beta"]).await).gives(200).await.json();
        assert_eq!((&me["kind"], &me["role"]), (&json!("user"), &json!(role.as_str())));
        assert_eq!((&me["products"], &me["everyProduct"]), (&json!(["alpha", "beta"]), &json!(false)));
        assert_eq!((me.get("factoryId"), &me["version"]), (None, &json!(env!("CARGO_PKG_VERSION"))));
    }
    let ana = whoami(&world.labelled(Role::Operator, "ana").await).gives(200).await.json();
    assert_eq!(
        (&ana["label"], &ana["products"], &ana["everyProduct"]),
        (&json!("ana"), &json!([]), &json!(true))
    );
    let issued = world.coordinator.reads().tokens().await.unwrap();
    let known = issued.iter().find(|token| token.label == "ana").unwrap();
    assert_eq!(ana["tokenId"], json!(known.id));

    let factory = whoami(&world.factory("f-1", &["alpha"]).await).gives(200).await.json();
    assert_eq!((&factory["kind"], &factory["factoryId"]), (&json!("factory"), &json!("f-1")));
    assert_eq!((factory.get("role"), &factory["products"]), (None, &json!(["alpha"])));
}

/// The header chooses what is shown, not who asks.
#[tokio::test]
async fn the_product_of_the_call_changes_nothing_about_the_token() {
    let world = World::start().await;
    let token = world.token(Role::Viewer, &["alpha", "beta"]).await;
    let whoami = |product: &str| world.get("/api/fleet/whoami").token(&token).header("x-product-id", product);
    assert_eq!(whoami("beta").gives(200).await.json()["products"], json!(["alpha", "beta"]));
    whoami("gamma").refused(403, "forbidden", "x-product-id").await;
}

#[tokio::test]
async fn texts_come_back_as_html_in_their_order() {
    let world = World::start().await;
    let viewer = world.token(Role::Viewer, &["alpha"]).await;
    let render = |texts: serde_json::Value| {
        world.post("/api/fleet/markdown").token(&viewer).json(json!({ "texts": texts }))
    };
    let answer = render(json!(["**a**", "", "<script>alert(1)</script>"])).gives(200).await;
    assert_eq!(
        answer.json()["html"],
        json!([
            "<p><strong>a</strong></p>\n",
            "",
            "<pre><code>&lt;script&gt;alert(1)&lt;/script&gt;</code></pre>\n"
        ])
    );
    assert_eq!(answer.header("content-type"), "application/json", "never as a page of its own");
    assert_eq!(render(json!([])).gives(200).await.json()["html"], json!([]));
    let fifty = vec!["a"; limits::MARKDOWN_TEXTS];
    assert_eq!(render(json!(fifty)).gives(200).await.json()["html"].as_array().unwrap().len(), 50);

    let more = vec!["a"; limits::MARKDOWN_TEXTS + 1];
    render(json!(more)).refused(400, "invalid_request", "texts: it may list at most 50; it lists 51").await;
    render(json!("a")).refused(400, "invalid_request", "texts: it must be a list").await;
    render(json!([7])).refused(400, "invalid_request", "texts[0]").await;
    let long = "x".repeat(limits::MANIFEST_BYTES);
    render(json!([long])).refused(413, "payload_too_large", "1048576 bytes").await;
    render(json!([&long[..limits::MANIFEST_BYTES - 100]])).gives(200).await;
}

#[tokio::test]
async fn the_client_asks_both() {
    let world = World::start().await;
    let (url, token) = (world.url.clone(), Some(world.admin.clone()));
    let client = Client::new(ClientOptions { url, token, ..ClientOptions::default() }).unwrap();
    let me = client.whoami().await.unwrap();
    assert_eq!((me.role, me.every_product), (Some(Role::Admin.into()), true));
    let rendered = client.markdown(vec!["*a*".to_owned()]).await.unwrap();
    assert_eq!(rendered.html, ["<p><em>a</em></p>\n"]);
}
