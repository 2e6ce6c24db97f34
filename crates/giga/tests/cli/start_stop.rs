//! Starting, stopping, starting again.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use giga_testkit::postgres::TestDatabase;

use crate::mask::mask;
use crate::world::{Home, Server, giga, manifest, run};

#[test]
fn the_token_is_the_owners_alone_and_stays() {
    let home = Home::new();
    let server = home.start();
    let path = home.data().join("admin.token");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(home.data()).unwrap().permissions().mode() & 0o777, 0o700);
    let first = std::fs::read_to_string(&path).unwrap();
    assert_eq!(std::fs::read_to_string(home.data().join("url")).unwrap().trim(), server.url);
    home.write("job.md", manifest("kept", ""));
    home.giga(&["job", "submit", "job.md"]).ok();

    drop(server);

    let server = home.start();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), first, "the same token after a restart");
    assert!(home.giga(&["job", "list"]).ok().contains("kept"));
    drop(server);

    // Lost, or of another store: a new one is written and works.
    std::fs::remove_file(&path).unwrap();
    let server = home.start();
    assert_ne!(std::fs::read_to_string(&path).unwrap(), first);
    assert!(home.giga(&["job", "list"]).ok().contains("kept"));
    assert!(std::fs::read_to_string(home.path().join("server.log")).unwrap().contains("is missing"));
    drop(server);
}

#[test]
fn a_signal_stops_it_in_good_order() {
    let home = Home::new();
    for signal in ["TERM", "INT"] {
        let server = home.start();
        home.giga(&["job", "list"]).ok();
        let status = server.stop(signal);
        assert_eq!(status.code(), Some(0), "{signal}");
        assert!(!home.data().join("url").exists(), "its address is gone with it");
    }
    let _server = home.start();
    home.giga(&["job", "list"]).ok();
}

#[test]
fn one_coordinator_per_folder() {
    let home = Home::new();
    let server = home.start();
    let second = home.giga(&["up", "--listen", "127.0.0.1:0"]).fails(1);
    assert!(
        second.contains("a coordinator is already running in") && second.contains(&server.url),
        "{second}"
    );
    assert!(second.contains("hint: "), "{second}");
    home.giga(&["job", "list"]).ok();
    // The lock ends with the process, however it ends.
    server.kill9();
    let _server = home.start();
    home.giga(&["job", "list"]).ok();
}

#[test]
fn a_port_in_use_says_what_to_do() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = home.giga(&["serve", "--listen", &address]).fails(1);
    assert!(refused.contains(&format!("cannot listen on {address}")), "{refused}");
    assert!(refused.contains("--listen 127.0.0.1:0"), "{refused}");
    let refused = home.giga(&["serve", "--listen", "nonsense"]).fails(1);
    assert!(refused.contains("cannot listen on nonsense"), "{refused}");
}

#[test]
fn a_store_that_is_not_there_is_named_without_its_password() {
    let home = Home::new();
    // Bound and let go: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = format!("postgres://giga:hush@127.0.0.1:{port}/giga");
    let refused = home.giga(&["serve", "--listen", "127.0.0.1:0", "--store", &store]).fails(1);
    assert!(
        refused.contains(&format!("cannot open the store postgres://giga:***@127.0.0.1:{port}/giga")),
        "{refused}"
    );
    assert!(!refused.contains("hush"), "{refused}");
    let refused = home.giga(&["serve", "--listen", "127.0.0.1:0", "--store", "mysql://x"]).fails(1);
    assert!(refused.contains("`sqlite:PATH`"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_and_memory_serve_too() {
    let database = TestDatabase::new().await;
    for store in [database.url(), "memory:"] {
        let home = Home::new();
        let server = home.start_with(&["--store", store]);
        home.write("job.md", manifest("stored", ""));
        home.giga(&["job", "submit", "job.md"]).ok();
        assert!(home.giga(&["job", "list"]).ok().contains("stored"), "{store}");
        assert_eq!(server.stop("TERM").code(), Some(0), "{store}");
    }
}

#[test]
fn up_says_what_to_do_next() {
    let home = Home::new();
    let mut command = giga(home.path());
    command
        .args(["up", "--listen", "127.0.0.1:0", "--factories", "2", "--data"])
        .arg(home.path().join("mine"));
    let server = Server::spawn(command, home.path());
    let log = std::fs::read_to_string(home.path().join("server.log")).unwrap();
    let with = |args: &[&str]| run(giga(home.path()).args(args).env("GIGA_DATA", home.path().join("mine")));
    // Built without Node there is no page, and then it is not to send anybody there.
    let greeting = match with(&["web", "--no-token"]).code {
        Some(0) => "up__greeting",
        _ => "up__greeting_without_page",
    };
    insta::assert_snapshot!(greeting, mask(&log, &home.path().canonicalize().unwrap()));
    let found = with(&["job", "list"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    assert_eq!(server.stop("INT").code(), Some(0));
}
