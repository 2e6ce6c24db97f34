//! Every `sslmode` against a real server: with TLS and without, that insists on it or refuses it, with the right
//! certificate and with wrong ones.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::time::{Duration, Instant};

use giga_postgres::Connector;
use giga_testkit::certificates::{Authority, Issued};
use giga_testkit::postgres::PostgresServer;

/// Longer than a server takes to read its settings again.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Plain,
    Tls,
    Refused,
}
use Way::{Plain, Refused, Tls};

struct World {
    server: PostgresServer,
}

impl World {
    async fn start() -> Self {
        let server = tokio::task::spawn_blocking(PostgresServer::start).await.unwrap();
        Self { server }
    }

    /// What a connection by this URL turns out to be.
    async fn way(&self, query: &str) -> Way {
        let url = format!("{}?{query}", self.server.url("postgres"));
        let Ok((client, _)) = Connector::new(&url, "test").unwrap().connect("SELECT 1").await else {
            return Refused;
        };
        let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        if client.query_one(sql, &[]).await.unwrap().get(0) { Tls } else { Plain }
    }

    async fn expect(&self, rows: &[(&str, Way)]) {
        for (query, way) in rows {
            assert_eq!(self.way(query).await, *way, "{query}");
        }
    }

    /// As the server's own user, which has to own its key. By the socket, which every rule lets in.
    async fn as_server(&self, sql: &str) {
        let url = format!("{}?sslmode=prefer", self.server.url("postgres"));
        let (client, _) = Connector::new(&url, "test").unwrap().connect("SELECT 1").await.unwrap();
        for statement in sql.split(";;") {
            client.batch_execute(statement).await.unwrap();
        }
    }

    async fn use_certificate(&self, issued: &Issued) {
        let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        let put = |text: String, name: &str| {
            let program = format!("cat > {name} && chmod 600 {name}");
            let lines = text.trim().lines().map(|line| format!("(\'{line}\')")).collect::<Vec<_>>().join(",");
            format!("COPY (VALUES {lines}) TO PROGRAM \'{program}\'")
        };
        let (cert, key) = (put(text(&issued.cert), "server.crt"), put(text(&issued.key), "server.key"));
        self.as_server(&format!("{cert};;{key};;ALTER SYSTEM SET ssl = on;;SELECT pg_reload_conf()")).await;
    }

    async fn only(&self, kind: &str) {
        let rule = format!("{kind} all all all trust");
        let file = "COPY (VALUES (\'RULE\')) TO PROGRAM \'cat > pg_hba.conf\'".replace("RULE", &rule);
        self.as_server(&format!("{file};;SELECT pg_reload_conf()")).await;
    }

    /// The server reads its settings when it gets to it.
    async fn until(&self, query: &str, way: Way) {
        let deadline = Instant::now() + PATIENCE;
        while self.way(query).await != way {
            assert!(Instant::now() < deadline, "{query} never became {way:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_mode_does_what_libpq_does() {
    let world = World::start().await;
    let (authority, other) = (Authority::new(), Authority::new());
    let ca = format!("sslrootcert={}", authority.file().display());
    let wrong = format!("sslrootcert={}", other.file().display());
    let (verify_ca, verify_full) = (format!("sslmode=verify-ca&{ca}"), format!("sslmode=verify-full&{ca}"));

    // A server without TLS.
    world
        .expect(&[
            ("sslmode=disable", Plain),
            ("sslmode=allow", Plain),
            ("sslmode=prefer", Plain),
            ("", Plain),
            ("sslmode=require", Refused),
            (&verify_ca, Refused),
            (&verify_full, Refused),
        ])
        .await;

    // With TLS, and the right certificate.
    world.use_certificate(&authority.issue("right", &["127.0.0.1"])).await;
    world.until("sslmode=require", Tls).await;
    world
        .expect(&[
            ("sslmode=disable", Plain),
            ("sslmode=allow", Plain),
            ("sslmode=prefer", Tls),
            ("", Tls),
            (&verify_ca, Tls),
            (&verify_full, Tls),
            (&format!("sslmode=require&{ca}"), Tls),
            (&format!("sslmode=require&{wrong}"), Refused),
            (&format!("sslmode=prefer&{wrong}"), Plain),
            (&format!("sslmode=verify-ca&{wrong}"), Refused),
            (&format!("sslmode=verify-full&{wrong}"), Refused),
            ("sslmode=verify-full", Refused),
        ])
        .await;

    // For another host.
    world.use_certificate(&authority.issue("elsewhere", &["db.example"])).await;
    world.until(&verify_full, Refused).await;
    world.expect(&[("sslmode=require", Tls), (&verify_ca, Tls), (&verify_full, Refused)]).await;

    // Of yesterday.
    world.use_certificate(&authority.issue_expired("old", &["127.0.0.1"])).await;
    world.until(&verify_ca, Refused).await;
    world.expect(&[("sslmode=require", Tls), ("sslmode=prefer", Tls), (&verify_full, Refused)]).await;

    // A server that takes nothing else.
    world.only("hostssl").await;
    world.until("sslmode=disable", Refused).await;
    world.expect(&[("sslmode=allow", Tls), ("sslmode=prefer", Tls), ("sslmode=require", Tls)]).await;

    // One that has it and does not want it.
    world.only("hostnossl").await;
    world.until("sslmode=disable", Plain).await;
    world.expect(&[("sslmode=allow", Plain), ("sslmode=prefer", Plain), ("sslmode=require", Refused)]).await;
}
