//! Certificates from a CA, by a real ACME server (pebble) that looks at the coordinator by itself.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use giga_testkit::certificates::Authority;
use reqwest::tls::TlsInfo;

use crate::world::{Home, Server, giga, run};

const PATIENCE: Duration = Duration::from_mins(1);
const DOMAIN: &str = "giga.example.test";

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An ACME server, and a name server that says that every domain is this machine.
struct Pebble {
    authority: Authority,
    directory: String,
    management: String,
    /// Where it looks for the coordinator.
    port: u16,
    _processes: [Ended; 2],
}

impl Pebble {
    fn start(home: &Home) -> Self {
        let authority = Authority::new();
        let own = authority.issue("pebble", &["127.0.0.1"]);
        let [dns, listen, management, port] = [(); 4].map(|()| free_port());
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{listen}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": own.cert,
            "privateKey": own.key,
            "httpPort": port,
            "tlsPort": port,
        }});
        let config = home.write("pebble.json", config.to_string());
        let mut names = Command::new("pebble-challtestsrv");
        names.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""]);
        names.args(["-management", "127.0.0.1:0", "-dns01", &format!("127.0.0.1:{dns}")]);
        let names = started(names, "Starting management server");
        let mut pebble = Command::new("pebble");
        pebble.arg("-config").arg(config).args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        pebble.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "5");
        let pebble = started(pebble, "ACME directory available");
        for port in [listen, management] {
            // It says so a moment before it is true.
            let deadline = Instant::now() + PATIENCE;
            while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
                assert!(Instant::now() < deadline, "pebble does not answer");
            }
        }
        Self {
            authority,
            directory: format!("https://127.0.0.1:{listen}/dir"),
            management: format!("https://127.0.0.1:{management}"),
            port,
            _processes: [names, pebble],
        }
    }

    fn browser(&self) -> reqwest::ClientBuilder {
        let roots = reqwest::Certificate::from_pem_bundle(&self.authority.pem()).unwrap();
        reqwest::Client::builder().tls_certs_only(roots)
    }

    /// What it signs certificates with.
    async fn root(&self) -> Vec<u8> {
        let url = format!("{}/roots/0", self.management);
        let answer = self.browser().build().unwrap().get(url).send().await.unwrap();
        answer.bytes().await.unwrap().to_vec()
    }

    fn command(&self, home: &Home, port: u16) -> Command {
        let mut command = giga(home.path());
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--tls-acme", DOMAIN]);
        command.args(["--tls-acme-directory", &self.directory]).env("SSL_CERT_FILE", self.authority.file());
        command
    }

    fn serve(&self, home: &Home) -> Server {
        Server::spawn(self.command(home, self.port), home.path())
    }

    /// The certificate that the coordinator shows, which has to be good.
    async fn shown(&self, root: &[u8]) -> Vec<u8> {
        let roots = reqwest::Certificate::from_pem_bundle(root).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let client = reqwest::Client::builder().tls_certs_only(roots).resolve(DOMAIN, address).tls_info(true);
        let url = format!("https://{DOMAIN}:{}/livez", self.port);
        let answer = client.build().unwrap().get(url).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer.extensions().get::<TlsInfo>().unwrap().peer_certificate().unwrap().to_vec()
    }
}

/// Returns when it has said this. What it says later is read and forgotten, so that it never waits for a reader.
fn started(mut command: Command, ready: &str) -> Ended {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let program = command.get_program().to_owned();
    let mut child =
        Ended(spawned.unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo xtask setup` installs it", program.display())
        }));
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(ready)), "{} did not start", program.display());
    std::thread::spawn(move || lines.for_each(drop));
    child
}

fn kept(home: &Home) -> PathBuf {
    let servers = std::fs::read_dir(home.data().join("acme")).unwrap();
    servers.map(|server| server.unwrap().path().join(format!("{DOMAIN}.pem"))).next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_got_kept_and_renewed() {
    let home = Home::new();
    let pebble = Pebble::start(&home);
    let root = pebble.root().await;
    let server = pebble.serve(&home);
    assert_eq!(server.url, format!("https://{DOMAIN}:{}", pebble.port));
    let first = pebble.shown(&root).await;
    for file in [kept(&home), kept(&home).with_file_name("account.json")] {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
    drop(server);

    // The same after a restart.
    let server = pebble.serve(&home);
    assert_eq!(pebble.shown(&root).await, first);
    drop(server);

    // One whose end has come is replaced.
    let other = Authority::new();
    let old = other.issue_expired("old", &[DOMAIN]);
    let pem = [std::fs::read(old.key).unwrap(), std::fs::read(old.cert).unwrap()].concat();
    std::fs::write(kept(&home), pem).unwrap();
    let _server = pebble.serve(&home);
    assert_ne!(pebble.shown(&root).await, first);
}

#[test]
fn a_ca_that_gives_none_is_named() {
    let home = Home::new();
    let pebble = Pebble::start(&home);
    // It looks where nobody is.
    let refused = run(&mut pebble.command(&home, 0)).fails(1);
    for part in [DOMAIN, &pebble.directory, "port 443", "--tls-cert"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!home.data().join("admin.token").exists(), "nothing was started");
    let mut command = pebble.command(&home, 0);
    let refused = run(command.env("SSL_CERT_FILE", Authority::new().file())).fails(1);
    assert!(refused.contains(&pebble.directory), "{refused}");
}
