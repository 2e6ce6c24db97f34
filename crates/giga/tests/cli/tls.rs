//! HTTPS, by real handshakes: the command, a factory with its stream, a worker, the page.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use giga_testkit::certificates::{Authority, Issued};
use giga_worker::{Client, Config, Job};
use reqwest::tls::TlsInfo;
use serde_json::Value;

use crate::world::{Home, Server, giga, run};

/// Long enough for a slow machine; what is waited for takes a second or two.
const PATIENCE: Duration = Duration::from_mins(1);

fn serve(home: &Home, issued: &Issued) -> Server {
    let (cert, key) = (issued.cert.to_str().unwrap(), issued.key.to_str().unwrap());
    home.start_with(&["--tls-cert", cert, "--tls-key", key])
}

/// `giga` that trusts this CA.
fn trusting(home: &Home, authority: &Authority, words: &[&str]) -> Command {
    let mut command = giga(home.path());
    command.args(words).arg("--ca-cert").arg(authority.file());
    command
}

fn admin(home: &Home) -> String {
    std::fs::read_to_string(home.data().join("admin.token")).unwrap().trim().to_owned()
}

fn browser(authority: &Authority) -> reqwest::Client {
    let roots = reqwest::Certificate::from_pem_bundle(&authority.pem()).unwrap();
    reqwest::Client::builder().tls_certs_only(roots).tls_info(true).build().unwrap()
}

/// The certificate that whoever connects now is shown.
async fn shown(url: &str, authority: &Authority) -> Vec<u8> {
    let answer = browser(authority).get(format!("{url}/livez")).send().await.unwrap();
    answer.extensions().get::<TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_over_tls() {
    let (home, authority) = (Home::new(), Authority::new());
    let server = serve(&home, &authority.issue("first", &["127.0.0.1", "localhost"]));
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    run(&mut trusting(&home, &authority, &["job", "list"])).ok();

    // What the system trusts, which this variable says.
    run(giga(home.path()).args(["job", "list"]).env("SSL_CERT_FILE", authority.file())).ok();

    // The page, and a link that leads back.
    let page = browser(&authority).get(&server.url).send().await.unwrap();
    assert!(page.headers().contains_key("content-security-policy"), "{page:?}");

    // A factory: HTTP, and jobs down its stream.
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_giga"));
    let folder = program.parent().unwrap().to_str().unwrap();
    let words = ["factory", "run", "--id", "mac", "--sandbox-read", folder];
    let mut command = trusting(&home, &authority, &words);
    let mut factory = Ended(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(factory.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready factory mac"));
    // What runs inside a job trusts the coordinator too, and is known there as the job.
    let asks = "job list 2>&1 | grep \"this is the token of job\"";
    let script = format!("{} {asks}", program.display());
    let manifest = format!(
        "---\nname: hello\nproduct: demo\nengine: shell\nscript: '{script}'\nship: auto\nretry: {{max: 0}}\n---\nSay hello.\n"
    );
    home.write("job.md", manifest);
    run(&mut trusting(&home, &authority, &["job", "submit", "job.md"])).ok();
    // Follows the events, which is SSE.
    run(&mut trusting(&home, &authority, &["job", "wait", "hello"])).ok();
    let shown = run(&mut trusting(&home, &authority, &["factory", "show", "mac", "-o", "json"])).ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert!(shown.to_string().contains("\"stream\""), "{shown:#}");

    // gRPC.
    let worker = Config::new(&server.url, admin(&home)).product("demo").ca_certificate(authority.pem());
    let client = Client::connect(worker).await.unwrap();
    client.enqueue(Job::new("mail", b"hello".to_vec())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_cannot_prove_itself_gets_no_token() {
    let (home, authority, other) = (Home::new(), Authority::new(), Authority::new());
    let server = serve(&home, &authority.issue("first", &["127.0.0.1"]));
    let refused = |command: &mut Command| run(command).fails(1);
    let unknown = refused(giga(home.path()).args(["job", "list"]));
    assert!(unknown.contains("invalid peer certificate: UnknownIssuer"), "{unknown}");
    let unknown = refused(&mut trusting(&home, &other, &["job", "list"]));
    assert!(unknown.contains("invalid peer certificate"), "{unknown}");
    refused(&mut trusting(&home, &other, &["factory", "run", "--once", "--id", "mac"]));
    let worker = Config::new(&server.url, admin(&home)).ca_certificate(other.pem());
    assert!(Client::connect(worker).await.is_err());
    drop(server);

    let server = serve(&home, &authority.issue_expired("old", &["127.0.0.1"]));
    let expired = refused(&mut trusting(&home, &authority, &["job", "list"]));
    assert!(expired.contains("expired"), "{expired}");
    let worker = Config::new(&server.url, admin(&home)).ca_certificate(authority.pem());
    assert!(Client::connect(worker).await.is_err());
    drop(server);

    let server = serve(&home, &authority.issue("elsewhere", &["giga.example.com"]));
    assert!(server.url.starts_with("https://giga.example.com:"), "{}", server.url);
    let here = server.url.replace("giga.example.com", "127.0.0.1");
    let mut command = trusting(&home, &authority, &["job", "list", "--url", &here]);
    let named = refused(command.env("GIGA_TOKEN", admin(&home)));
    assert!(named.contains("not valid for name"), "{named}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_up_while_connections_stay() {
    let (home, authority) = (Home::new(), Authority::new());
    let files = authority.issue("served", &["127.0.0.1"]);
    let server = serve(&home, &files);
    let before = shown(&server.url, &authority).await;

    let mut command = trusting(&home, &authority, &["events", "-f", "--after", "0", "-o", "name"]);
    let mut following = Ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut events = BufReader::new(following.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    run(&mut trusting(&home, &authority, &["factory", "enroll", "one"])).ok();
    assert!(events.any(|event| event == "factory.enrolled"));

    authority.issue("renewed", &["127.0.0.1"]).replace(&files);
    let deadline = Instant::now() + PATIENCE;
    let renewed = loop {
        let now = shown(&server.url, &authority).await;
        if now != before {
            break now;
        }
        assert!(Instant::now() < deadline, "the new certificate was never shown");
    };

    // What cannot be used replaces nothing.
    std::fs::write(&files.cert, "half a certif").unwrap();
    let log = home.path().join("server.log");
    while !std::fs::read_to_string(&log).unwrap().contains("the old one stays") {
        assert_eq!(shown(&server.url, &authority).await, renewed);
        assert!(Instant::now() < deadline, "nothing was said");
    }
    assert_eq!(shown(&server.url, &authority).await, renewed);

    run(&mut trusting(&home, &authority, &["factory", "drain", "one"])).ok();
    assert!(events.any(|event| event == "factory.draining"), "by the connection of before");
    drop(following.0.kill());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut following.0.stderr.take().unwrap(), &mut said).unwrap();
    assert!(!said.contains("connection lost"), "{said}");
}

#[test]
fn wrong_settings_say_what_to_set() {
    let (home, authority) = (Home::new(), Authority::new());
    let (one, two) = (authority.issue("one", &["127.0.0.1"]), authority.issue("two", &["127.0.0.1"]));
    let cert = one.cert.to_str().unwrap();
    let serve =
        |words: &[&str]| run(giga(home.path()).args(["serve", "--listen", "127.0.0.1:0"]).args(words));
    let refused = serve(&["--tls-cert", cert]).fails(2);
    assert!(refused.contains("`tls-cert` needs `tls-key` too (--tls-key)"), "{refused}");
    let refused = serve(&["--tls-key", cert]).fails(2);
    assert!(refused.contains("`tls-key` needs `tls-cert` too"), "{refused}");
    let refused = serve(&["--tls-cert", cert, "--tls-key", two.key.to_str().unwrap()]).fails(1);
    assert!(refused.contains("the private key is not the certificate's"), "{refused}");
    let refused = serve(&["--tls-cert", "nowhere.pem", "--tls-key", cert]).fails(1);
    assert!(refused.contains("nowhere.pem") && refused.contains("--tls-cert takes"), "{refused}");
    let refused = serve(&["--tls-acme", "localhost"]).fails(2);
    assert!(refused.contains("`localhost` is not a domain"), "{refused}");
    let refused = serve(&["--tls-acme", "a.example", "--tls-cert", cert]).fails(2);
    assert!(refused.contains("use either"), "{refused}");
    let refused = serve(&["--tls-acme", "a.example", "--tls-acme-directory", "http://ca.example"]).fails(2);
    assert!(refused.contains("is not an https:// URL"), "{refused}");
    let refused = home.giga(&["job", "list", "--ca-cert", one.key.to_str().unwrap()]);
    assert_eq!(refused.code, Some(4), "no coordinator, no token: {refused:?}");
    let refused = run(giga(home.path())
        .args(["job", "list", "--ca-cert", one.key.to_str().unwrap()])
        .env("GIGA_TOKEN", "x"));
    refused.fails(2);
}
