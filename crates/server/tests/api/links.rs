//! Links to artifacts: whoever has one has the file, for a while, and nothing else.

use std::time::Duration;

use giga_domain::token::Role;

use crate::world::World;

/// A file of a job that is being built, and its link.
async fn linked(world: &World, ttl: &str) -> (String, String) {
    let token = world.factory("f-1", &["alpha"]).await;
    let job = world.building("alpha", "f-1", "a").await;
    let path = format!("/api/fleet/jobs/{}/artifacts?leaseEpoch=1&name=a.html", job.id);
    let put = world.post(&path).token(&token).body("text/html", "<script>alert(1)</script>");
    let id = put.gives(201).await.json()["id"].as_str().unwrap().to_owned();
    let answer =
        world.get(&format!("/api/fleet/artifacts/{id}/link{ttl}")).token(&world.admin).gives(200).await;
    let url = answer.json()["url"].as_str().unwrap().to_owned();
    (id, url.strip_prefix(&world.url).expect("it leads back to where it was asked for").to_owned())
}

#[tokio::test]
async fn one_needs_no_token_and_ends() {
    let world = World::start().await;
    let (id, link) = linked(&world, "?ttl=5m").await;
    let got = world.get(&link).gives(200).await;
    assert_eq!(got.text, "<script>alert(1)</script>");
    assert!(got.header("content-disposition").starts_with("attachment; filename=\"a.html\""));
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert!(got.header("content-security-policy").contains("sandbox"));
    assert_eq!(world.get(&link).header("range", "bytes=1-6").gives(206).await.text, "script");

    let (path, query) = link.split_once('?').unwrap();
    let (expires, signature) = query.split_once("&sig=").unwrap();
    let flipped = if signature.starts_with('0') { "1" } else { "0" };
    let longer = format!("expires={}", expires.trim_start_matches("expires=").parse::<u64>().unwrap() + 1);
    for forged in [
        format!("{path}?{expires}&sig={flipped}{}", &signature[1..]),
        format!("{path}?{expires}&sig={}", &signature[..63]),
        format!("{path}?{expires}&sig="),
        format!("{path}?{longer}&sig={signature}"),
        link.replace(&id, "01K00000000000000000000000"),
    ] {
        world.get(&forged).refused(403, "forbidden", "not valid").await;
    }
    world.get(path).refused(400, "invalid_request", "expires").await;
    world.get(&format!("{path}?{expires}")).refused(400, "invalid_request", "sig").await;

    world.clock.advance(Duration::from_mins(5));
    world.get(&link).refused(403, "forbidden", "its time is over").await;
}

#[tokio::test]
async fn one_ends_with_its_file() {
    let world = World::start().await;
    let (id, link) = linked(&world, "").await;
    let delete = world.call(axum::http::Method::DELETE, &format!("/api/fleet/artifacts/{id}"));
    delete.token(&world.admin).gives(204).await;
    world.get(&link).refused(404, "not_found", &id).await;
}

#[tokio::test]
async fn only_who_may_see_a_file_gets_a_link_and_for_a_day_at_most() {
    let world = World::start().await;
    let (id, _) = linked(&world, "?ttl=24h").await;
    let path = format!("/api/fleet/artifacts/{id}/link");
    let other = world.token(Role::Admin, &["beta"]).await;
    world.get(&path).token(&other).refused(404, "not_found", "there is no artifact").await;
    for ttl in ["0s", "25h", "soon"] {
        let ask = world.get(&format!("{path}?ttl={ttl}")).token(&world.admin);
        ask.refused(400, "invalid_request", "ttl").await;
    }
}
