//! `giga web`: an address that leads in, or the reason why there is none.

use serde_json::Value;

use crate::world::{Home, giga, run};

/// As a browser asks for it; what is behind the `#` stays where it is.
async fn open(url: &str) -> reqwest::Response {
    reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_prints_the_address_with_the_token_behind_the_hash() {
    let home = Home::new();
    let server = home.start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap().trim().to_owned();
    let page = open(&server.url).await;
    if page.headers()["x-giga-page"] == "absent" {
        // Of a build without Node: it says so and how to change that.
        let refused = home.giga(&["web"]).fails(1);
        assert!(refused.contains("built without its web page"), "{refused}");
        assert!(refused.contains("hint: ") && refused.contains("GIGA_WEB=require"), "{refused}");
        return;
    }
    let printed = home.giga(&["web"]);
    assert_eq!(printed.err, "", "nothing is said where nobody watches");
    let address = printed.ok();
    assert_eq!(address, format!("{}/#token={token}\n", server.url));
    let page = open(address.trim()).await;
    assert_eq!((page.status().as_u16(), page.headers()["x-giga-page"].to_str().unwrap()), (200, "built"));

    assert_eq!(home.giga(&["web", "--no-token"]).ok(), format!("{}/\n", server.url));
    assert_eq!(home.giga(&["web", "-o", "name", "--no-token"]).ok(), format!("{}/\n", server.url));
    let json: Value = serde_json::from_str(&home.giga(&["web", "-o", "json"]).ok()).unwrap();
    assert_eq!(json, serde_json::json!({"url": format!("{}/#token={token}", server.url)}));
}

#[test]
fn a_token_that_leads_nowhere_is_not_printed() {
    let home = Home::new();
    let server = home.start();
    let elsewhere = home.path().join("elsewhere");
    let with = |args: &[&str], token: Option<&str>| {
        let mut command = giga(home.path());
        command.args(args).args(["--url", &server.url]).env("GIGA_DATA", &elsewhere);
        if let Some(token) = token {
            command.env("GIGA_TOKEN", token);
        }
        run(&mut command)
    };
    let refused = with(&["web"], None).fails(4);
    assert!(refused.contains("no token") && refused.contains("GIGA_TOKEN"), "{refused}");
    let revoked = home.giga(&["token", "create", "--role", "viewer", "-o", "json"]).ok();
    let revoked: Value = serde_json::from_str(&revoked).unwrap();
    let (id, secret) = (revoked["id"].as_str().unwrap(), revoked["token"].as_str().unwrap());
    home.giga(&["token", "revoke", id]).ok();
    let refused = with(&["web"], Some(secret));
    assert_eq!(refused.out, "");
    assert!(refused.fails(4).contains("unknown, revoked or expired"));
}

#[test]
fn nobody_there_is_said() {
    let home = Home::new();
    let server = home.start();
    let url = server.url.clone();
    server.kill9();
    for args in [&["web", "--url", &url][..], &["web", "--no-token", "--url", &url]] {
        let refused = home.giga(args).fails(1);
        assert!(refused.contains(&url) && refused.contains("giga up"), "{refused}");
    }
}
