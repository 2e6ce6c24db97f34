//! A certified OpenID provider in a process of its own, whose people and groups a test decides, and which can be told to
//! lie in its tokens.
//!
//! It ends with the test process, however that ends; a missing program fails the test, it does not skip it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::supervisor::Supervisor;

/// What a coordinator is called there.
pub const CLIENT: &str = "giga-tests";

#[derive(Debug)]
pub struct OpenIdProvider {
    supervisor: Mutex<Supervisor>,
    pub issuer: String,
}

impl OpenIdProvider {
    pub fn start() -> Self {
        let mut command = Command::new("node");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/oidc/provider.mjs");
        command.arg("--no-warnings").arg(script).arg(home());
        let (mut supervisor, _) = Supervisor::launch(command);
        let issuer =
            supervisor.order("start").unwrap_or_else(|why| panic!("the provider did not start: {why}"));
        Self { supervisor: Mutex::new(supervisor), issuer }
    }

    #[track_caller]
    fn order(&self, order: &str, what: &Value) -> String {
        let answer = self.supervisor.lock().order(&format!("{order} {what}"));
        answer.unwrap_or_else(|why| panic!("the provider did not {order}: {why}"))
    }

    /// Makes a coordinator known to it. Without a secret it is a public client.
    pub fn client(&self, coordinator: &str, secret: Option<&str>) {
        let redirect = format!("{coordinator}/auth/callback");
        self.order("client", &json!({"id": CLIENT, "redirect": redirect, "secret": secret}));
    }

    pub fn groups(&self, of: &str, are: &[&str]) {
        self.order("groups", &json!({"of": of, "are": are}));
    }

    /// In the ID token itself, and not only where it is asked about somebody.
    pub fn put_groups_into_tokens(&self) {
        self.order("groupsIn", &json!({"where": "token"}));
    }

    /// From now on its ID tokens say this; `{}`: the truth again.
    pub fn forge(&self, claims: &Value) {
        self.order("forge", claims);
    }

    /// Whoever asks next whether somebody has signed in is told to ask less often. Says how long they waited until they asked
    /// again.
    pub fn pause_after_slow_down(&self) -> Duration {
        self.order("slowDown", &json!({}));
        Duration::from_millis(self.order("pause", &json!({})).parse().unwrap())
    }

    pub fn rotate_keys(&self) {
        self.order("rotate", &json!({}));
    }

    pub fn stop(&self) {
        self.order("stop", &json!({}));
    }

    /// At the same address.
    pub fn start_again(&self) {
        self.order("start", &json!({}));
    }
}

/// Where `cargo xtask setup` puts it.
fn home() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/oidc-provider");
    assert!(
        home.join("node_modules/oidc-provider").exists(),
        "there is no OpenID provider: run `cargo xtask setup`, which installs one"
    );
    home
}
