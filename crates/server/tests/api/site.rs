//! The page over a real socket: a small one that every build has, none at all, and the one that this build carries.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::LazyLock;

use axum::http::Method;
use flate2::Compression;
use flate2::write::GzEncoder;
use giga_server::ServerOptions;
use giga_web::{Asset, Body, Page};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::PATIENCE;
use crate::world::World;

const SCRIPT: &str = "console.log('the fleet')\n";
const BROTLI: &[u8] = b"what Brotli makes of it";
const ICON: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg'/>";
const INDEX: &str =
    "<!doctype html><meta name=\"csp-nonce\" content=\"__CSP_NONCE__\"><div id=\"root\"></div>";

static SMALL: LazyLock<Page> = LazyLock::new(|| {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(SCRIPT.as_bytes()).unwrap();
    let gzip: &'static [u8] = packer.finish().unwrap().leak();
    let script = Body::Packed { gzip, brotli: BROTLI };
    let assets = vec![
        Asset {
            path: "/assets/index-4f2a.js",
            content_type: "text/javascript; charset=utf-8",
            hashed: true,
            fingerprint: "00c0ffee",
            body: script,
        },
        Asset {
            path: "/icon.svg",
            content_type: "image/svg+xml",
            hashed: false,
            fingerprint: "0badcafe",
            body: Body::Plain(ICON),
        },
    ];
    Page { index: INDEX, assets: assets.leak() }
});

async fn world() -> World {
    World::start_with(ServerOptions { page: Some(&SMALL), ..ServerOptions::default() }).await
}

/// Sent as it is: no client puts the path right on its way. The status line, the headers and the body.
async fn raw(world: &World, method: &str, path: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.url.strip_prefix("http://").unwrap()).await.unwrap();
    let mut request = format!("{method} ").into_bytes();
    request.extend_from_slice(path);
    request.extend_from_slice(b" HTTP/1.1\r\nhost: giga.example\r\nconnection: close\r\n\r\n");
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn nonce_in(policy: &str) -> String {
    policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap().to_owned()
}

#[tokio::test]
async fn the_document_comes_with_every_header() {
    let world = world().await;
    let reply = world.get("/").gives(200).await;
    let nonce = nonce_in(reply.header("content-security-policy"));
    assert_eq!(
        reply.header("content-security-policy"),
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
             font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'"
        )
    );
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("x-giga-page", "built"),
        ("etag", ""),
        ("set-cookie", ""),
        ("access-control-allow-origin", ""),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    assert!(reply.header("permissions-policy").contains("camera=()"));
    assert_eq!(reply.text, INDEX.replace("__CSP_NONCE__", &nonce));
}

#[tokio::test]
async fn each_document_has_a_nonce_of_its_own() {
    let world = world().await;
    let mut seen = BTreeSet::new();
    for path in ["/", "/", "/jobs", "/jobs/01J9ZK3V5N8Q4W2E6R7T1Y0ABC"] {
        let reply = world.get(path).gives(200).await;
        let nonce = nonce_in(reply.header("content-security-policy"));
        // 128 bits in base64.
        assert_eq!((nonce.len(), nonce.ends_with("==")), (24, true), "{nonce}");
        assert!(reply.text.contains(&format!("content=\"{nonce}\"")), "{}", reply.text);
        assert!(!reply.text.contains("__CSP_NONCE__"));
        assert!(seen.insert(nonce), "a nonce came twice");
    }
}

#[tokio::test]
async fn every_address_of_the_page_answers_with_the_document() {
    let world = world().await;
    for path in ["/", "/jobs?stage=queued", "/jobs/01ABC", "/topics/mail.v1", "/factories/mac.local", "/new"]
    {
        let reply = world.get(path).header("accept", "text/html,*/*;q=0.8").gives(200).await;
        assert!(reply.text.contains("id=\"root\""), "{path}");
    }
    let reply = world.call(Method::HEAD, "/jobs/01ABC").gives(200).await;
    let length = INDEX.len() - "__CSP_NONCE__".len() + 24;
    assert_eq!((reply.text.as_str(), reply.header("content-length")), ("", length.to_string().as_str()));
    assert!(reply.header("content-security-policy").contains("'nonce-"));
    // Somebody forgot /api: a document would be no help to a program.
    let json = world.get("/fleet/jobs").header("accept", "application/json");
    json.refused(404, "not_found", "there is no GET /fleet/jobs; see /api/openapi.json").await;
}

#[tokio::test]
async fn files_are_packed_as_the_caller_likes() {
    let world = world().await;
    let path = "/assets/index-4f2a.js";
    let mut tags = BTreeSet::new();
    for (accepted, coding) in
        [("gzip, deflate, br", "br"), ("gzip", "gzip"), ("br;q=0, gzip;q=0.5", "gzip"), ("identity", "")]
    {
        let answer = world.get(path).header("accept-encoding", accepted).open().await;
        assert_eq!(answer.status(), 200);
        let header = |name: &str| answer.headers().get(name).map_or("", |v| v.to_str().unwrap()).to_owned();
        assert_eq!(header("content-encoding"), coding, "{accepted}");
        assert_eq!(header("vary"), "accept-encoding");
        assert_eq!(header("content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        let (length, tag) = (header("content-length"), header("etag"));
        let bytes = answer.bytes().await.unwrap();
        assert_eq!(length, bytes.len().to_string(), "{accepted}");
        match coding {
            "br" => assert_eq!(bytes, BROTLI),
            "gzip" => {
                let mut unpacked = String::new();
                let mut reader = flate2::read::GzDecoder::new(&bytes[..]);
                std::io::Read::read_to_string(&mut reader, &mut unpacked).unwrap();
                assert_eq!(unpacked, SCRIPT);
            }
            _ => assert_eq!(bytes, SCRIPT.as_bytes()),
        }
        tags.insert((coding, tag.clone()));
        // The same bytes are not sent again; others are.
        let again = world.get(path).header("accept-encoding", accepted).header("if-none-match", &tag);
        let again = again.gives(304).await;
        assert_eq!((again.text.as_str(), again.header("etag")), ("", tag.as_str()));
        world
            .get(path)
            .header("accept-encoding", "x-none")
            .header("if-none-match", "\"else\"")
            .gives(200)
            .await;
    }
    let distinct: BTreeSet<_> = tags.iter().map(|(_, tag)| tag).collect();
    assert_eq!((tags.len(), distinct.len()), (3, 3), "other bytes, another tag: {tags:?}");
    let nothing_said = world.get(path).gives(200).await;
    assert_eq!((nothing_said.header("content-encoding"), nothing_said.text.as_str()), ("", SCRIPT));
    let head = world.call(Method::HEAD, path).header("accept-encoding", "br").gives(200).await;
    assert_eq!(head.header("content-length"), BROTLI.len().to_string());
    assert_eq!((head.header("content-encoding"), head.text.as_str()), ("br", ""));
}

#[tokio::test]
async fn a_file_whose_name_stays_is_asked_about_again() {
    let world = world().await;
    let reply = world.get("/icon.svg").header("accept-encoding", "br, gzip").gives(200).await;
    assert_eq!(reply.text.as_bytes(), ICON);
    for (name, value) in [
        ("content-type", "image/svg+xml"),
        ("cache-control", "no-cache"),
        ("content-encoding", ""),
        ("etag", "\"0badcafe\""),
        // An image that is opened by itself runs nothing.
        ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ] {
        assert_eq!(reply.header(name), value, "{name}");
    }
    let again = world.get("/icon.svg").header("if-none-match", "\"other\", W/\"0badcafe\"").gives(304).await;
    assert_eq!(again.header("cache-control"), "no-cache");
}

#[tokio::test]
async fn what_is_not_there_is_missed_and_not_dressed_up() {
    let world = world().await;
    for path in [
        "/assets/index-0000.js",
        "/assets/",
        "/assets",
        "/favicon.ico",
        "/index.html",
        "/api/nothing",
        "/api",
        "/livez/x",
        "/metrics/x",
        "/readyz/",
    ] {
        let reply = world.get(path).refused(404, "not_found", "there is no GET").await;
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
    }
}

#[tokio::test]
async fn no_path_leads_out() {
    let world = world().await;
    for path in [
        "/assets/../icon.svg",
        "/assets/../../../../etc/passwd",
        "/assets/%2e%2e/icon.svg",
        "/assets/..%2ficon.svg",
        "/assets/index-4f2a.js/",
        "/assets//index-4f2a.js",
        "//icon.svg",
        "/./icon.svg",
        "/%69con.svg",
        "/icon.svg%00",
        "/icon.svg/..",
        "/..",
        "/jobs/../icon.svg",
        "/jobs/%2E%2e/%2e%2e/etc/passwd",
        "/jobs/..%5c..%5cetc",
        "/jobs/a%00.html",
    ] {
        let answer = raw(&world, "GET", path.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{path}: {answer}");
        assert!(answer.contains("application/problem+json") && !answer.contains("<svg"), "{path}: {answer}");
    }
    // These are no addresses at all, and do not even come to us.
    for path in [&b"/assets/\0"[..], b"/assets/..\\icon.svg\x01", b"/a b"] {
        let answer = raw(&world, "GET", path).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{path:?}: {answer}");
    }
    let answer = raw(&world, "GET", b"/assets/..\\icon.svg").await;
    assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
    assert!(raw(&world, "GET", b"/icon.svg").await.contains("<svg"), "the same way it is found by its name");
}

#[tokio::test]
async fn it_is_looked_at_and_nothing_else() {
    let world = world().await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        for path in ["/", "/jobs/01ABC", "/icon.svg", "/assets/index-4f2a.js"] {
            let reply = world.call(method.clone(), path).refused(405, "method_not_allowed", "/api").await;
            assert_eq!(reply.header("allow"), "GET, HEAD", "{method} {path}");
        }
    }
    world.post("/fleet.v1.Nobody/Knows").refused(404, "not_found", "there is no POST").await;
}

#[tokio::test]
async fn another_origin_gets_nothing_out_of_it() {
    let world = world().await;
    for path in ["/", "/icon.svg", "/api/fleet/jobs", "/api/openapi.json", "/livez"] {
        let preflight = world
            .call(Method::OPTIONS, path)
            .header("origin", "https://evil.example")
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "authorization");
        let preflight = preflight.gives(405).await;
        let asked =
            world.get(path).header("origin", "https://evil.example").token(&world.admin).gives(200).await;
        for reply in [preflight, asked] {
            let allowing = reply.headers.keys().find(|name| name.as_str().starts_with("access-control-"));
            assert_eq!(allowing, None, "{path}");
        }
    }
}

#[tokio::test]
async fn without_the_page_it_says_how_to_get_it() {
    let world = World::start_with(ServerOptions { page: None, ..ServerOptions::default() }).await;
    for path in ["/", "/jobs/01ABC"] {
        let reply = world.get(path).gives(200).await;
        assert!(reply.text.contains("built without its web page"), "{}", reply.text);
        assert!(reply.text.contains("GIGA_WEB=require cargo build --release -p giga"), "{}", reply.text);
        assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
        assert_eq!((reply.header("x-giga-page"), reply.header("cache-control")), ("absent", "no-store"));
        assert_eq!(reply.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
    }
    world.get("/assets/index-4f2a.js").refused(404, "not_found", "there is no GET").await;
    world.get("/icon.svg").refused(404, "not_found", "there is no GET").await;
    world.post("/").refused(405, "method_not_allowed", "/api").await;
}

#[tokio::test]
async fn what_is_served_is_counted_under_two_names() {
    let world = world().await;
    world.get("/jobs/1").gives(200).await;
    world.get("/jobs/2").gives(200).await;
    world.get("/icon.svg").gives(200).await;
    world.get("/made-up.php").gives(404).await;
    let text = world.get("/metrics").token(&world.admin).gives(200).await.text;
    for (route, status, count) in [("page", 200, 2), ("asset", 200, 1), ("unmatched", 404, 1)] {
        let line = format!(
            "giga_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}} {count}"
        );
        assert!(text.lines().any(|found| found == line), "no `{line}` in\n{text}");
    }
    assert!(!text.contains("/jobs/1") && !text.contains("made-up"), "nobody can make up labels");
}

/// Whatever this build carries is what it serves by default.
#[tokio::test]
async fn the_page_of_this_build_is_served() {
    let world = World::start().await;
    let reply = world.get("/").gives(200).await;
    let Some(page) = giga_web::page() else {
        assert_eq!(reply.header("x-giga-page"), "absent");
        return;
    };
    let nonce = nonce_in(reply.header("content-security-policy"));
    assert_eq!(reply.text, page.index.replace("__CSP_NONCE__", &nonce));
    for asset in page.assets {
        let answer = world.get(asset.path).open().await;
        assert_eq!(answer.status(), 200, "{}", asset.path);
        assert_eq!(answer.headers()["content-type"], asset.content_type);
        assert_eq!(answer.bytes().await.unwrap()[..], asset.body.plain()[..], "{}", asset.path);
    }
}
