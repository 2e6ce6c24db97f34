//! Where tokens go, seen by a listener that writes down what it is sent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use giga_domain::token::TokenSecret;
use parking_lot::Mutex;

use crate::world::{Home, giga, run};

/// Answers 401 to everything and remembers it.
struct Recorder {
    address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start(address: Ipv4Addr) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<Mutex<Vec<String>>>::default();
        let kept = received.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut bytes = Vec::new();
                let mut buffer = [0; 4096];
                while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
                        _ => break,
                    }
                }
                kept.lock().push(String::from_utf8_lossy(&bytes).into_owned());
                let _ = stream.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
            }
        });
        Self { address, received }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came since the last time. One more call of our own comes after all that came before it.
    fn received(&self) -> Vec<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.address.port())).unwrap();
        stream.write_all(b"GET /the-end HTTP/1.1\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        let mut received = std::mem::take(&mut *self.received.lock());
        assert!(received.pop().unwrap().contains("/the-end"));
        received
    }
}

fn token(byte: u8) -> String {
    TokenSecret::from_random("user", [byte; 32]).reveal().to_owned()
}

#[test]
fn a_cloned_repository_gets_no_token() {
    let home = Home::new();
    let _server = home.start();
    let thief = Recorder::start(Ipv4Addr::LOCALHOST);
    let file = home.write("clone/giga.toml", format!("url = \"{}\"\n", thief.url()));
    let own = home.path().join(".config/gigafactory/giga.toml").display().to_string();
    let inside = || {
        let mut command = giga(home.path());
        command.current_dir(home.path().join("clone"));
        command
    };
    for words in
        [&["job", "list"][..], &["web"], &["doctor"], &["factory", "run", "--once"], &["config", "show"]]
    {
        let refused = run(inside().args(words)).fails(2);
        for part in [&file.display().to_string(), "`url`", &own, "--url", "GIGA_URL"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    assert_eq!(thief.received(), Vec::<String>::new());

    // The flag wins over the file, and brings no token with it.
    let refused = run(inside().args(["job", "list", "--url", &thief.url()])).fails(4);
    assert!(refused.contains(&thief.url()) && refused.contains("--token-file"), "{refused}");
    run(inside().args(["factory", "run", "--once", "--url", &thief.url()])).fails(1);
    assert_eq!(thief.received(), Vec::<String>::new());

    // Whoever names a token for it has chosen.
    run(inside().args(["job", "list"]).env("GIGA_URL", thief.url()).env("GIGA_TOKEN", token(7))).fails(1);
    let received = thief.received();
    assert!(!received.is_empty() && received.iter().all(|call| call.contains(&token(7))), "{received:?}");
}

#[test]
fn a_project_opens_nothing() {
    let home = Home::new();
    for setting in [
        "listen = \"0.0.0.0:0\"",
        "repos = \"/\"",
        "git-allow = [\"https://example.com\"]",
        "github-api = \"https://example.com\"",
        "token-file = \"x\"",
        "data = \"bait\"",
        "allow-plain-http = true",
        "ca-cert = \"mine.pem\"",
        "secrets-key = \"mine\"",
    ] {
        let name = setting.split(' ').next().unwrap();
        home.write("giga.toml", setting);
        // What would not start anyway, so that a hole shows and does not hang.
        let up = ["up", "--factories", "none"];
        let serve = ["serve", "--tls-cert", "alone.pem"];
        for words in [&up[..], &serve, &["job", "list"]] {
            let refused = home.giga(words).fails(2);
            assert!(refused.contains(&format!("may not set `{name}`")), "{refused}");
        }
    }
    assert!(!home.data().exists(), "nothing was started");
}

#[test]
fn no_token_goes_over_plain_http_to_another_machine() {
    let home = Home::new();
    // Not an address of loopback, and yet this machine.
    let far = Recorder::start(Ipv4Addr::UNSPECIFIED);
    let asked = |words: &[&str]| {
        let mut command = giga(home.path());
        command.args(words).env("GIGA_URL", far.url()).env("GIGA_TOKEN", token(7));
        command
    };
    home.write("enrolled/factory.token", token(8));
    let factory = ["factory", "run", "--once", "--id", "mac", "--base", "enrolled"];
    for words in [&["job", "list"][..], &["web"], &factory, &["factory", "run", "--once", "--id", "new"]] {
        let refused = run(&mut asked(words)).fails(2);
        for part in [&far.url(), "https://", "--allow-plain-http", "GIGA_ALLOW_PLAIN_HTTP"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
    assert_eq!(far.received(), Vec::<String>::new());

    run(&mut asked(&["job", "list", "--allow-plain-http"])).fails(1);
    assert!(far.received().iter().any(|call| call.contains(&token(7))));
    run(asked(&factory).env("GIGA_ALLOW_PLAIN_HTTP", "true")).fails(1);
    assert!(far.received().iter().any(|call| call.contains(&token(8))));
    home.write(".config/gigafactory/giga.toml", "allow-plain-http = true\n");
    run(&mut asked(&["job", "list"])).fails(1);
    assert!(far.received().iter().any(|call| call.contains(&token(7))));
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_does_that_of_a_worker() {
    let far = Recorder::start(Ipv4Addr::UNSPECIFIED);
    let config = || giga_worker::Config::new(far.url(), token(7));
    let refused = giga_worker::Client::connect(config()).await.unwrap_err().to_string();
    assert!(refused.starts_with("url: ") && refused.contains("allow_plain_http"), "{refused}");
    assert!(giga_worker::Client::connect_lazily(config()).is_err());
    assert_eq!(far.received(), Vec::<String>::new());
    let _ = giga_worker::Client::connect(config().allow_plain_http()).await;
    assert!(!far.received().is_empty());
}
