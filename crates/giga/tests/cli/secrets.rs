//! `giga secret`: values come from a file, stdin or a prompt and never come back; keys lie outside of the database.

use std::os::unix::fs::PermissionsExt;

use giga_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::world::{Holder, Home, Server, giga, manifest, run_with_input};

const VALUE: &str = "correct-horse-battery-staple";
const HEX: &str = "636f72726563742d686f7273652d626174746572792d737461706c65";
const ENCODED: &str = "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5LXN0YXBsZQ==";

fn set(home: &Home, name: &str, value: &str) -> String {
    run_with_input(giga(home.path()).args(["secret", "set", name, "--product", "demo"]), value.as_bytes())
        .ok()
}

/// What a factory is given for a job that names the secret, or why not.
async fn given(home: &Home, server: &Server, request: &str) -> (u16, Value) {
    home.write("job.md", manifest(request, "secrets: [API_KEY]\n"));
    home.giga(&["job", "submit", "job.md"]).ok();
    let holder = Holder::enroll(home, server, request, &["os:linux", "has:secrets", "engine:any"]).await;
    let (job, epoch) = holder.take(request).await;
    holder.post(&format!("jobs/{job}/secrets"), json!({"leaseEpoch": epoch})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_goes_in_and_to_its_job_only() {
    let home = Home::new();
    let server = home.start();
    assert!(!home.data().join("secrets.key").exists(), "nobody needs it yet");
    assert_eq!(set(&home, "API_KEY", &format!("{VALUE}\n")).trim(), "API_KEY of demo, version 1");
    let file = home.write("key.txt", "two\nlines\n");
    let from_file = ["secret", "set", "KEY_FILE", "--file", file.to_str().unwrap(), "--product", "demo"];
    home.giga(&from_file).ok();
    let mode = home.data().join("secrets.key").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Not as an argument, where everybody on the machine could read it.
    let argument = home.giga(&["secret", "set", "API_KEY", VALUE, "--product", "demo"]).fails(2);
    assert!(argument.contains("unexpected argument"), "{argument}");
    let option = home.giga(&["secret", "set", "API_KEY", "--value", VALUE]).fails(2);
    assert!(option.contains("unexpected argument"), "{option}");

    let listed = home.giga(&["secret", "list", "--product", "demo"]).ok();
    assert!(listed.contains("API_KEY") && listed.contains("KEY_FILE"), "{listed}");
    let names = home.giga(&["secret", "list", "--product", "demo", "-o", "name"]).ok();
    assert_eq!(names, "API_KEY\nKEY_FILE\n");
    assert!(home.giga(&["secret", "list", "--product", "other"]).err.contains("no secrets"));

    let (status, answer) = given(&home, &server, "first").await;
    assert_eq!((status, &answer["secrets"][0]["value"]), (200, &json!(ENCODED)), "{answer}");
    home.write("other.md", "---\nname: x\nproduct: other\nsecrets: [API_KEY]\n---\n");
    let refused = home.giga(&["job", "submit", "other.md"]).fails(1);
    assert!(refused.contains("giga secret set API_KEY --product other"), "{refused}");

    for command in ["events", "job list", "secret list", "product list"] {
        let args: Vec<&str> = command.split(' ').chain(["--product", "demo", "-o", "json"]).collect();
        let shown = home.giga(&args);
        assert!(!shown.out.contains(VALUE) && !shown.out.contains(ENCODED), "{shown:?}");
    }
    home.giga(&["secret", "remove", "API_KEY", "--product", "demo"]).ok();
    home.giga(&["secret", "remove", "API_KEY", "--product", "demo"]).fails(3);

    // Neither in the database nor in a log, whether it runs or not.
    drop(server);
    let log = std::fs::read(home.path().join("server.log")).unwrap();
    let mut looked_into = 0;
    for entry in std::fs::read_dir(home.data()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let is_there =
            |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!is_there(&bytes, VALUE) && !is_there(&bytes, &ENCODED[..30]), "{:?}", entry.path());
        looked_into += usize::from(entry.file_name().to_string_lossy().starts_with("giga.db"));
        assert!(!is_there(&log, VALUE));
    }
    assert!(looked_into > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_lost_put_back_and_rotated() {
    let home = Home::new();
    let server = home.start();
    set(&home, "API_KEY", VALUE);
    let file = home.data().join("secrets.key");
    let old = std::fs::read_to_string(&file).unwrap();
    let old_key = old.lines().find(|line| !line.starts_with('#')).unwrap().to_owned();
    let listed = home.giga(&["secret", "list", "--product", "demo", "-o", "json"]).ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let old_id = listed["secrets"][0]["keyId"].as_str().unwrap().to_owned();

    // Another key, and none: what is wrong is said by the key's name, and nothing breaks.
    let new_key = "ab".repeat(32);
    std::fs::write(&file, format!("{new_key}\n")).unwrap();
    let (status, answer) = given(&home, &server, "wrong").await;
    assert_eq!((status, &answer["code"]), (409, &json!("secret_key")), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains(&format!("encrypted with key {old_id}")), "{answer}");
    let refused = home.giga(&["secret", "rotate"]).fails(5);
    assert!(refused.contains(&old_id) && !refused.contains(&new_key), "{refused}");
    std::fs::remove_file(&file).unwrap();
    let (status, answer) = given(&home, &server, "missing").await;
    assert_eq!((status, &answer["code"]), (409, &json!("secret_key")), "{answer}");
    std::fs::write(&file, "nonsense\n").unwrap();
    let refused = run_with_input(giga(home.path()).args(["secret", "set", "B"]), VALUE.as_bytes()).fails(5);
    assert!(refused.contains("line 1 is no key") && refused.contains("openssl rand -hex 32"), "{refused}");

    // Both, the new one first; then the new one alone.
    std::fs::write(&file, format!("{new_key}\n{old_key}\n")).unwrap();
    assert_eq!(given(&home, &server, "both").await.0, 200);
    let rotated = home.giga(&["secret", "rotate"]).ok();
    assert!(rotated.contains("1 encrypted again") && !rotated.contains(&old_id), "{rotated}");
    std::fs::write(&file, format!("{new_key}\n")).unwrap();
    let (status, answer) = given(&home, &server, "rotated").await;
    assert_eq!((status, &answer["secrets"][0]["value"]), (200, &json!(ENCODED)), "{answer}");
}

/// Several coordinators share PostgreSQL, so none of them makes a key up.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_database_needs_a_key_file() {
    let home = Home::new();
    let database = TestDatabase::new().await;
    let server = home.start_with(&["--store", database.url()]);
    let refused =
        run_with_input(giga(home.path()).args(["secret", "set", "API_KEY"]), VALUE.as_bytes()).fails(5);
    assert!(refused.contains("--secrets-key") && refused.contains("openssl rand -hex 32"), "{refused}");
    assert!(!home.data().join("secrets.key").exists());
    drop(server);

    let missing = home.path().join("keys");
    let server = home.start_with(&["--store", database.url(), "--secrets-key", missing.to_str().unwrap()]);
    let refused =
        run_with_input(giga(home.path()).args(["secret", "set", "API_KEY"]), VALUE.as_bytes()).fails(5);
    assert!(refused.contains("No such file"), "{refused}");
    home.write("keys", "cd".repeat(32));
    set(&home, "API_KEY", VALUE);
    let (status, answer) = given(&home, &server, "shared").await;
    assert_eq!((status, &answer["secrets"][0]["value"]), (200, &json!(ENCODED)), "{answer}");

    // Every row of every table, as a dump would show it.
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let names = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()";
    let tables: Vec<String> = client.query(names, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(tables.iter().any(|table| table == "job_secrets"), "{tables:?}");
    for table in tables {
        let rows = client.query(&format!("SELECT t::text FROM {table} AS t"), &[]).await.unwrap();
        for row in rows {
            let text: String = row.get(0);
            assert!(![VALUE, ENCODED, HEX].iter().any(|form| text.contains(form)), "{table}: {text}");
        }
    }
    drop(client);
    connection.await.unwrap().unwrap();
}
