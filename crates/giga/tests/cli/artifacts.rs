//! Files of jobs from the command line, wherever the coordinator keeps them.

use serde_json::Value;

use crate::world::{Holder, Home, giga, manifest, run};

/// Takes a job and leaves a file: the job, what the claim said, and the file's id.
async fn with_a_file(home: &Home, holder: &Holder, url: &str) -> (Value, String) {
    let file = home.write("a.md", manifest("a", ""));
    home.giga(&["job", "submit", file.to_str().unwrap()]).ok();
    let claim = serde_json::json!({"factoryId": holder.id, "requestId": "r-1"});
    let (status, grant) = holder.post("claim", claim).await;
    assert_eq!(status, 200, "{grant}");
    let job = grant["job"]["id"].as_str().unwrap();
    let put = reqwest::Client::new()
        .post(format!("{url}/api/fleet/jobs/{job}/artifacts?leaseEpoch=1&name=out/report.bin"))
        .bearer_auth(grant["jobToken"].as_str().unwrap())
        .body(vec![0_u8, 1, 2, 255]);
    let answer = put.send().await.unwrap();
    assert_eq!(answer.status(), 201);
    let stored: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    (grant.clone(), stored["id"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn files_are_listed_fetched_linked_and_removed() {
    let home = Home::new();
    let server = home.start_with(&["--artifacts", "elsewhere"]);
    let holder = Holder::enroll(&home, &server, "f-1", &["os:linux"]).await;
    let (grant, id) = with_a_file(&home, &holder, &server.url).await;
    assert!(home.path().join("elsewhere/artifacts").is_dir(), "they are where --artifacts says");

    let listed = home.giga(&["artifact", "list", "a"]).ok();
    assert!(listed.contains(&id) && listed.contains("out/report.bin"), "{listed}");
    assert_eq!(home.giga(&["artifact", "list", "a", "-o", "name"]).ok().trim(), id);
    home.giga(&["artifact", "get", &id, "-O", "saved.bin"]).ok();
    assert_eq!(std::fs::read(home.path().join("saved.bin")).unwrap(), [0, 1, 2, 255]);
    let piped = giga(home.path()).args(["artifact", "get", &id]).output().unwrap();
    assert_eq!(piped.stdout, [0, 1, 2, 255]);

    let link = home.giga(&["artifact", "link", &id, "--ttl", "1h"]).ok();
    let followed = reqwest::get(link.trim()).await.unwrap();
    assert_eq!(followed.status(), 200);
    assert_eq!(followed.bytes().await.unwrap().as_ref(), [0, 1, 2, 255]);
    let too_long = home.giga(&["artifact", "link", &id, "--ttl", "2d"]).fails(1);
    assert!(too_long.contains("ttl"), "{too_long}");

    // What runs inside the job has no other token, and sees its own job with it and no other.
    let inside = |args: &[&str]| {
        let mut command = giga(home.path());
        command.env("GIGA_TOKEN", grant["jobToken"].as_str().unwrap()).env("GIGA_URL", &server.url);
        run(command.args(args))
    };
    let job = grant["job"]["id"].as_str().unwrap();
    assert!(inside(&["artifact", "list", job]).ok().contains(&id));
    inside(&["artifact", "rm", &id]).fails(4);

    home.giga(&["artifact", "rm", &id]).ok();
    home.giga(&["artifact", "get", &id, "-O", "again.bin"]).fails(3);
    assert!(!home.path().join("again.bin").exists(), "nothing is left of a file that did not come");
}

#[test]
fn a_place_that_cannot_be_used_stops_the_start_and_is_named() {
    let home = Home::new();
    for (place, variables, needle) in [
        ("ftp://host/x", &[][..], "s3://BUCKET/PREFIX"),
        ("s3://bucket", &[("AWS_ACCESS_KEY_ID", "AKIA1")][..], "AWS_SECRET_ACCESS_KEY is not"),
        (
            "s3://bucket",
            &[
                ("AWS_ACCESS_KEY_ID", "AKIA1"),
                ("AWS_SECRET_ACCESS_KEY", "s3cr3t-key"),
                ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
                ("AWS_ALLOW_HTTP", "true"),
            ][..],
            "cannot store artifacts in s3://bucket",
        ),
    ] {
        let mut serve = giga(home.path());
        serve.args(["serve", "--listen", "127.0.0.1:0", "--artifacts", place]);
        serve.envs(variables.iter().copied());
        let message = run(&mut serve).fails(1);
        assert!(message.contains(needle) && !message.contains("s3cr3t"), "{message}");
    }
}
