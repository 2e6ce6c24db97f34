//! Signing in with a real OpenID provider: on the page, in the terminal, and all that must not get in.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::Duration;

use giga_testkit::oidc::{CLIENT, OpenIdProvider};
use reqwest::Url;
use serde_json::{Value, json};

use crate::browser::{Browser, Page};
use crate::world::{Home, Ran, Server, giga, run};

const GRANTS: [&str; 3] = ["eng=operator:web", "ops=operator:api", "root=admin"];

struct Scene {
    home: Home,
    provider: OpenIdProvider,
    server: Server,
}

impl Scene {
    fn start() -> Self {
        Self::start_with(&[], None)
    }

    fn start_with(more: &[&str], secret: Option<&str>) -> Self {
        let (home, provider) = (Home::new(), OpenIdProvider::start());
        let issuer = provider.issuer.clone();
        let mut args = vec!["--oidc-issuer", &issuer, "--oidc-client-id", CLIENT];
        for grant in GRANTS {
            args.extend(["--oidc-grant", grant]);
        }
        let file = secret.map(|secret| home.write("client.secret", secret).display().to_string());
        if let Some(file) = &file {
            args.extend(["--oidc-client-secret-file", file]);
        }
        args.extend(more);
        let server = home.start_with(&args);
        provider.client(&server.url, secret);
        provider.groups("ada", &["eng", "ops"]);
        provider.groups("bob", &["sales"]);
        provider.groups("root", &["root"]);
        Self { home, provider, server }
    }

    fn login_url(&self) -> String {
        format!("{}/auth/login", self.server.url)
    }

    async fn sign_in(&self, person: &str) -> Page {
        Browser::of(person).open(&self.login_url()).await
    }

    async fn token_of(&self, person: &str) -> String {
        let page = self.sign_in(person).await;
        page.token().unwrap_or_else(|| panic!("{person} did not get in: {page:#?}"))
    }

    fn whoami(&self, token: &str) -> Ran {
        run(giga(self.home.path()).args(["whoami", "-o", "json"]).env("GIGA_TOKEN", token))
    }

    fn identity(&self, token: &str) -> Value {
        serde_json::from_str(&self.whoami(token).ok()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_become_role_and_products_on_the_page() {
    let scene = Scene::start();
    let landed = Browser::of("ada").open(&format!("{}?to=/jobs?stage=failed", scene.login_url())).await;
    assert_eq!(
        (landed.url.path(), landed.url.query(), landed.url.origin()),
        ("/jobs", Some("stage=failed"), Url::parse(&scene.server.url).unwrap().origin())
    );
    let token = landed.token().unwrap();
    assert!(token.starts_with("giga_login_"), "{token}");
    let me = scene.identity(&token);
    assert_eq!(
        (&me["label"], &me["role"], &me["products"]),
        (&json!("ada@example.com"), &json!("operator"), &json!(["api", "web"]))
    );
    // Twelve hours, and a moment less.
    let listed = scene.home.giga(&["token", "list"]).ok();
    let row = listed.lines().find(|line| line.contains("ada@example.com")).unwrap().to_owned();
    assert!(row.contains("in 11h") || row.contains("in 12h"), "{listed}");
    // The rights are real.
    let with = |args: &[&str]| run(giga(scene.home.path()).args(args).env("GIGA_TOKEN", &token));
    with(&["token", "list"]).fails(4);
    with(&["job", "list", "--product", "web"]).ok();
    assert!(with(&["job", "list", "--product", "secret"]).fails(4).contains("api, web"));
    // Nobody is sent to where somebody else wants them.
    let elsewhere = Browser::of("ada").open(&format!("{}?to=//evil.example/", scene.login_url())).await;
    assert_eq!((elsewhere.url.path(), elsewhere.url.origin()), ("/", landed.url.origin()));

    let root = scene.identity(&scene.token_of("root").await);
    assert_eq!((&root["role"], &root["everyProduct"]), (&json!("admin"), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_a_secret_signs_in_too_and_groups_may_be_in_the_token() {
    let scene = Scene::start_with(&["--oidc-session", "30m"], Some("s3cret: with/odd&signs"));
    scene.provider.put_groups_into_tokens();
    let me = scene.identity(&scene.token_of("ada").await);
    assert_eq!(me["products"], json!(["api", "web"]));
    assert!(scene.home.giga(&["token", "list"]).ok().contains("in 29m"));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_in_no_group_that_counts_is_told_so() {
    let scene = Scene::start();
    let before = scene.home.giga(&["token", "list"]).ok();
    let refused = scene.sign_in("bob").await;
    assert_eq!((refused.status.as_u16(), refused.token()), (403, None));
    for word in ["bob@example.com", "sales", "--oidc-grant", "eng, ops, root"] {
        assert!(refused.text.contains(word), "{word}: {}", refused.text);
    }
    assert_eq!(scene.home.giga(&["token", "list"]).ok().lines().count(), before.lines().count());

    // Groups are asked about each time: what somebody has got stays until its end, and the next one is another.
    let first = scene.token_of("ada").await;
    scene.provider.groups("ada", &["eng"]);
    scene.provider.groups("bob", &["root"]);
    let second = scene.identity(&scene.token_of("ada").await);
    assert_eq!(second["products"], json!(["web"]));
    assert_eq!(scene.identity(&first)["products"], json!(["api", "web"]));
    assert_eq!(scene.identity(&scene.token_of("bob").await)["role"], "admin");
    scene.provider.groups("ada", &[]);
    assert!(scene.sign_in("ada").await.text.contains("ada@example.com is in no group"));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_lie_are_refused() {
    let scene = Scene::start();
    scene.token_of("ada").await;
    let (past, future) = (1_000_000_000, 4_000_000_000_u64);
    let lies = [
        (json!({"aud": "somebody-else"}), "another client"),
        (json!({"aud": [CLIENT, "somebody-else"]}), "another client"),
        (json!({"azp": "somebody-else"}), "another client"),
        (json!({"iss": "https://evil.example"}), "issued by somebody else"),
        (json!({"nonce": "another"}), "another attempt"),
        (json!({"exp": past}), "expired"),
        (json!({"exp": null}), "does not say when it expires"),
        (json!({"iat": future}), "from the future"),
        (json!({"sub": ""}), "who it is about"),
        (json!({"sub": "root"}), "about somebody else"),
        (json!({"alg": "none"}), "not signed"),
        (json!({"alg": "HS256"}), "private key"),
        (json!({"stranger": true}), "none of its keys"),
    ];
    for (lie, why) in lies {
        scene.provider.forge(&lie);
        let refused = scene.sign_in("ada").await;
        assert_eq!(refused.token(), None, "{lie}");
        assert_eq!(refused.status.as_u16(), 401, "{lie}: {}", refused.text);
        assert!(refused.text.contains(why), "{lie}: {}", refused.text);
    }
    scene.provider.forge(&json!({}));
    scene.token_of("ada").await;
    // A key that is new is asked for.
    scene.provider.rotate_keys();
    scene.token_of("ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_of_one_browser_and_good_once() {
    let scene = Scene::start();
    // As far as the way back, without taking it.
    let mut ada = Browser::of("ada");
    ada.open(&scene.login_url()).await.token().unwrap();
    let mut url = Url::parse(&scene.login_url()).unwrap();
    while url.path() != "/auth/callback" {
        let response = ada.step(&url, None).await;
        url = url.join(response.headers()["location"].to_str().unwrap()).unwrap();
    }
    // Her link in somebody else's browser would sign them in as her.
    let other = Browser::of("bob").open(url.as_str()).await;
    assert_eq!((other.status.as_u16(), other.token()), (401, None));
    assert!(other.text.contains("was not begun here"), "{}", other.text);
    // Another state than the browser began with, or a cookie that somebody made.
    let sealed = ada.cookies(url.as_str())["giga_sign_in"].clone();
    let mut tampered = url.clone();
    tampered.set_query(Some(&url.query().unwrap().replace("state=", "state=x")));
    assert_eq!(ada.open(tampered.as_str()).await.status.as_u16(), 401);
    let forged = format!("x{}", &sealed[1..]);
    ada.cookies(url.as_str()).insert("giga_sign_in".to_owned(), forged);
    assert_eq!(ada.open(url.as_str()).await.status.as_u16(), 401);
    url.set_query(Some(&format!("{}&session_state=1&client_info=2", url.query().unwrap())));
    // The truth works, once: the cookie is gone, and with it the code is no longer good.
    ada.cookies(url.as_str()).insert("giga_sign_in".to_owned(), sealed.clone());
    assert!(ada.open(url.as_str()).await.token().is_some());
    assert!(!ada.cookies(url.as_str()).contains_key("giga_sign_in"));
    assert_eq!(ada.open(url.as_str()).await.status.as_u16(), 401);
    ada.cookies(url.as_str()).insert("giga_sign_in".to_owned(), sealed);
    let again = ada.open(url.as_str()).await;
    assert_eq!(again.status.as_u16(), 401);
    assert!(again.text.contains("the identity provider refused"), "{}", again.text);
    // What the provider says instead of a code is shown as text.
    let mut eve = Browser::of("eve");
    let begun = eve.step(&Url::parse(&scene.login_url()).unwrap(), None).await;
    let asked = Url::parse(begun.headers()["location"].to_str().unwrap()).unwrap();
    let state = asked.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let words = "error=access_denied&error_description=%3Cscript%3Ealert(1)%3C/script%3E";
    let denied = eve.open(&format!("{}/auth/callback?{words}&state={state}", scene.server.url)).await;
    assert_eq!(denied.status.as_u16(), 401);
    assert!(
        denied.text.contains("did not sign you in") && !denied.text.contains("<script>"),
        "{}",
        denied.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_is_said_to_be() {
    let scene = Scene::start();
    scene.provider.stop();
    let away = scene.sign_in("ada").await;
    assert_eq!(away.status.as_u16(), 503);
    assert!(away.text.contains("cannot be reached just now"), "{}", away.text);
    let login = scene.home.giga(&["login"]).fails(1);
    assert!(login.contains("the identity provider 127.0.0.1 cannot be reached"), "{login}");
    scene.home.giga(&["job", "list"]).ok();
    scene.provider.start_again();
    scene.token_of("ada").await;
    // Whoever asks too often waits.
    let http = reqwest::Client::new();
    let device = || http.post(format!("{}/api/fleet/sign-in/device", scene.server.url)).send();
    let mut slowed = None;
    for _ in 0..400 {
        let answer = device().await.unwrap();
        if answer.status().as_u16() == 429 {
            slowed = Some(answer.headers()["retry-after"].clone());
            break;
        }
    }
    assert!(slowed.is_some(), "an address can ask without end");
}

/// `giga login` of somebody with a home of their own, up to the address that it shows.
fn begin_login(
    home: &Home,
    server: &Server,
) -> (std::process::Child, String, BufReader<std::process::ChildStderr>) {
    let mut command = giga(home.path());
    command.args(["login", "--url", &server.url]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = command.spawn().unwrap();
    let mut said = BufReader::new(login.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.split_whitespace().find(|word| word.starts_with("http")).map(str::to_owned);
    (login, address.unwrap_or_else(|| panic!("no address: {line}")), said)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_signs_in_with_a_code_and_signs_out() {
    let scene = Scene::start();
    let laptop = Home::new();
    let url = scene.server.url.as_str();
    let with_url = |args: &[&str]| run(giga(laptop.path()).args(args).args(["--url", url]));
    assert!(with_url(&["whoami"]).fails(4).contains("no token"));

    let (mut login, address, mut said) = begin_login(&laptop, &scene.server);
    let confirmed = Browser::of("ada").open(&address).await;
    assert!(confirmed.status.is_success(), "{confirmed:?}");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(login.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("as ada@example.com until"), "{rest}");

    let file = laptop.path().join(".config/gigafactory/sign-ins.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let me = with_url(&["whoami"]).ok();
    for word in ["ada@example.com", "operator", "api, web", "signed in", "in 1"] {
        assert!(me.contains(word), "{word}: {me}");
    }
    with_url(&["job", "list", "--product", "web"]).ok();
    assert!(with_url(&["config", "show"]).ok().contains("signed in"));
    // It goes to that coordinator only, and what is named goes before it.
    let (other, elsewhere) = (Home::new(), Home::new());
    let stranger = other.start();
    run(giga(laptop.path()).args(["whoami", "--url", &stranger.url])).fails(4);
    let viewer = scene.home.giga(&["token", "create", "--role", "viewer", "--label", "named"]).ok();
    let named = run(giga(laptop.path()).args(["whoami", "--url", url]).env("GIGA_TOKEN", viewer.trim())).ok();
    assert!(named.contains("named"), "{named}");

    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let token = kept[url]["token"].as_str().unwrap().to_owned();
    assert_eq!(scene.identity(&token)["role"], "operator");
    let left = with_url(&["logout"]);
    assert!(left.err.contains("was revoked"), "{left:?}");
    scene.whoami(&token).fails(4);
    assert!(!std::fs::read_to_string(&file).unwrap().contains(&token));
    assert!(with_url(&["logout"]).err.contains("not signed in"));
    with_url(&["whoami"]).fails(4);

    // Without a provider there is nothing to sign in with.
    let none = run(giga(elsewhere.path()).args(["login", "--url", &stranger.url])).fails(1);
    assert!(none.contains("offers no sign-in") && none.contains("--oidc-issuer"), "{none}");
    // The token would come back in the open.
    let plain = run(giga(elsewhere.path()).args(["login", "--url", "http://giga.example.com"])).fails(2);
    assert!(plain.contains("https://"), "{plain}");
}

/// As the standard wants it: five seconds, and five more after it was told so.
#[test]
fn the_terminal_asks_less_often_when_it_is_told_to() {
    let scene = Scene::start();
    let laptop = Home::new();
    let (mut login, _, _said) = begin_login(&laptop, &scene.server);
    let pause = scene.provider.pause_after_slow_down();
    login.kill().unwrap();
    login.wait().unwrap();
    assert!(pause >= Duration::from_millis(9_900), "{pause:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_refuses_whoever_is_in_no_group_and_knows_when_it_is_over() {
    let scene = Scene::start_with(&["--oidc-session", "1s"], None);
    let laptop = Home::new();
    let (mut login, address, mut said) = begin_login(&laptop, &scene.server);
    Browser::of("bob").open(&address).await;
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(login.wait().unwrap().code(), Some(4), "{rest}");
    assert!(rest.contains("sales") && rest.contains("--oidc-grant"), "{rest}");

    let (mut login, address, mut said) = begin_login(&laptop, &scene.server);
    Browser::of("ada").open(&address).await;
    said.read_to_string(&mut rest).unwrap();
    assert!(login.wait().unwrap().success(), "{rest}");
    loop {
        let asked = run(giga(laptop.path()).args(["whoami", "--url", &scene.server.url]));
        if asked.code != Some(0) {
            let over = asked.fails(4);
            assert!(over.contains("you were signed in") && over.contains("giga login"), "{over}");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_did_what_is_known_by_name() {
    let scene = Scene::start();
    let (ada, root) = (scene.token_of("ada").await, scene.token_of("root").await);
    let as_of = |token: &str, args: &[&str]| run(giga(scene.home.path()).args(args).env("GIGA_TOKEN", token));
    let job = scene.home.write("job.md", "---\nname: fix-it\nproduct: web\n---\nFix it.\n");
    as_of(&ada, &["job", "submit", job.to_str().unwrap()]).ok();
    as_of(&ada, &["job", "cancel", "fix-it"]).ok();
    as_of(&root, &["flags", "set", "strict", "true"]).ok();
    as_of(&root, &["token", "create", "--role", "viewer", "--label", "for a screen"]).ok();

    let audit = |token: &str, args: &[&str]| -> Vec<(String, String)> {
        let listed = as_of(token, &[&["audit", "-o", "jsonl"], args].concat()).ok();
        let entries = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        entries.map(|entry| (text(&entry["actor"]), text(&entry["type"]))).collect()
    };
    let said = |who: &str, what: &[&str]| -> Vec<(String, String)> {
        what.iter().map(|what| (format!("{who}@example.com"), (*what).to_owned())).collect()
    };
    // Newest first, by label.
    let of_ada = ["job.cancelled", "job.submitted", "token.signed_in", "token.issued"];
    assert_eq!(audit(&root, &["--actor", "ada"]), said("ada", &of_ada));
    let of_root = ["token.issued", "flag.changed", "token.signed_in", "token.issued"];
    assert_eq!(audit(&root, &["--actor", "root@example.com"]), said("root", &of_root));
    assert_eq!(audit(&root, &["--actor", "root@", "--kind", "flag.changed"]), said("root", &of_root[1..2]));
    assert_eq!(audit(&root, &["--job", "fix-it"]), said("ada", &of_ada[..2]));
    assert_eq!(audit(&root, &["--actor", "ada", "--since", "1h", "--limit", "1"]), said("ada", &of_ada[..1]));
    assert_eq!(audit(&root, &["--actor", "ada", "--until", "1h"]), []);
    assert_eq!(audit(&root, &["--product", "web"]), said("ada", &of_ada[..2]));
    let everybody = audit(&root, &["--kind", "token.issued"]);
    assert!(everybody.contains(&("bootstrap".to_owned(), "token.issued".to_owned())), "{everybody:?}");
    // What is about no product is not for somebody with two of them.
    assert_eq!(audit(&ada, &[]), said("ada", &of_ada[..2]));
    assert_eq!(audit(&ada, &["--actor", "root"]), []);
    let shown = as_of(&root, &["audit", "--actor", "ada"]).ok();
    assert!(shown.contains("ada@example.com") && !shown.contains("tok-"), "{shown}");
    as_of(&root, &["audit", "--kind", "flag.changde"]).fails(1);
    as_of(&root, &["audit", "--since", "yesterday"]).fails(2);
}

#[test]
fn settings_that_do_not_fit_are_refused_at_the_start() {
    let home = Home::new();
    let serve = |args: &[&str]| home.giga(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()).fails(2);
    let whole = ["--oidc-issuer", "https://login.example.com", "--oidc-client-id", "giga"];
    for (args, why) in [
        (vec!["--oidc-issuer", "https://login.example.com"], "--oidc-client-id"),
        (vec!["--oidc-client-id", "giga"], "--oidc-issuer"),
        (whole.to_vec(), "--oidc-grant"),
        ([&whole[..], &["--oidc-grant", "eng=boss"]].concat(), "eng=operator:web"),
        ([&whole[..], &["--oidc-grant", "eng=viewer", "--oidc-session", "soon"]].concat(), "not a lifetime"),
        ([&whole[..], &["--oidc-grant", "eng=viewer", "--oidc-scopes", "email"]].concat(), "include openid"),
        (
            [&whole[..], &["--oidc-grant", "eng=viewer", "--public-url", "giga.example"]].concat(),
            "https://giga",
        ),
        (
            vec![
                "--oidc-issuer",
                "http://login.example.com",
                "--oidc-client-id",
                "a",
                "--oidc-grant",
                "a=viewer",
            ],
            "use https://",
        ),
    ] {
        let said = serve(&args);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    // A repository that somebody cloned does not choose who gets in.
    home.write("clone/giga.toml", "oidc-grants = [\"everybody=admin\"]\n");
    let mut command = giga(home.path());
    let refused = run(command.current_dir(home.path().join("clone")).args(["serve"])).fails(2);
    assert!(refused.contains("a project's giga.toml may not set `oidc-grants`"), "{refused}");
}
