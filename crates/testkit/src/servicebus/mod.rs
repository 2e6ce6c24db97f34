//! A stand-in for Azure Service Bus in a process of its own: real AMQP 1.0, checked signatures, and faults on order.
//!
//! Nobody gives out an emulator. What it may be wrong about is looked at with the official client for Python, in a test of
//! its own. It ends with the test process, however that ends; a missing program fails the test, it does not skip it.

use std::path::{Path, PathBuf};
use std::process::Command;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::supervisor::Supervisor;

/// A rule that may do everything, and its key.
pub const RULE: &str = "root";
pub const KEY: &str = "c2VjcmV0IG9mIHRoZSB0ZXN0cw==";

#[derive(Debug)]
pub struct ServiceBusPeer {
    supervisor: Mutex<Supervisor>,
    address: String,
}

impl ServiceBusPeer {
    pub fn start() -> Self {
        let mut command = Command::new("node");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/servicebus-peer/peer.mjs");
        command.arg("--no-warnings").arg(script).arg(home());
        let (mut supervisor, _) = Supervisor::launch(command);
        let address =
            supervisor.order("start").unwrap_or_else(|why| panic!("the stand-in did not start: {why}"));
        let peer = Self { supervisor: Mutex::new(supervisor), address };
        peer.rule(RULE, KEY, &["Manage", "Send", "Listen"]);
        peer
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// For a topic of the test's own.
    pub fn url(&self) -> String {
        format!("servicebus://{}/fleet", self.address)
    }

    pub fn connection_string(&self) -> String {
        Self::connection_string_of(&self.address, RULE, KEY)
    }

    pub fn connection_string_of(address: &str, rule: &str, key: &str) -> String {
        format!("Endpoint=sb://{address}/;SharedAccessKeyName={rule};SharedAccessKey={key}")
    }

    #[track_caller]
    pub fn order(&self, order: &str, what: &Value) -> String {
        let answer = self.supervisor.lock().order(&format!("{order} {what}"));
        answer.unwrap_or_else(|why| panic!("the stand-in did not {order}: {why}"))
    }

    /// Whoever has the key of this rule may do that.
    pub fn rule(&self, name: &str, key: &str, claims: &[&str]) {
        self.order("rule", &json!({"name": name, "key": key, "claims": claims}));
    }

    /// From now on it takes nothing but TLS, with this certificate.
    pub fn encrypt(&self, issued: &crate::certificates::Issued) {
        self.order("tls", &json!({"cert": issued.cert, "key": issued.key}));
    }

    /// As when it loses its power: connections break, entities stay.
    pub fn stop(&self) {
        self.order("stop", &json!({}));
    }

    /// On the same port.
    pub fn start_again(&self) {
        self.order("start", &json!({}));
    }

    /// Every entity is gone.
    pub fn wipe(&self) {
        self.order("wipe", &json!({}));
    }

    pub fn disconnect(&self) {
        self.order("disconnect", &json!({}));
    }

    /// The next ones fail: `send`, `attach`, `token` and `http` are throttled, `completion` finds its lock lost.
    pub fn fail(&self, what: &str, times: u32) {
        self.order("fail", &json!({"what": what, "times": times}));
    }

    /// How many of those are still to come.
    pub fn failures_left(&self, what: &str) -> u32 {
        self.order("due", &json!({"what": what})).parse().unwrap()
    }

    /// Topics and subscriptions, their rules, and how many messages they hold.
    pub fn state(&self) -> Value {
        serde_json::from_str(&self.order("state", &json!({}))).unwrap()
    }

    pub fn subscription(&self, topic: &str, name: &str) -> Value {
        self.state()[topic]["subscriptions"][name].clone()
    }
}

/// Where `cargo xtask setup` puts it.
fn home() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/servicebus-peer");
    assert!(
        home.join("node_modules/rhea").exists(),
        "there is no AMQP for the stand-in of Service Bus: run `cargo xtask setup`, which installs it"
    );
    home
}
