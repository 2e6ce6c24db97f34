//! Which engines this machine really has: every one is asked, all at once, each for a limited time.
//!
//! An engine that does not answer is not offered: a job that is sent to it would only fail later.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Capability, CapabilitySet};

use super::engine::{Engine, Preflight};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub name: String,
    pub preflight: Preflight,
}

/// In the order of `engines`.
pub async fn detect(engines: &[Arc<dyn Engine>], patience: Duration) -> Vec<Detected> {
    futures::future::join_all(engines.iter().map(|engine| async move {
        let preflight = match tokio::time::timeout(patience, engine.preflight()).await {
            Ok(preflight) if Capability::engine(engine.name()).is_ok() => preflight,
            Ok(_) => Preflight::Broken {
                detail: "its name cannot be a capability".to_owned(),
                remedy: "name it with letters, digits, `.`, `_`, `-` and `+` only".to_owned(),
            },
            Err(_) => Preflight::Broken {
                detail: format!("it did not answer within {patience:?}"),
                remedy: "run it by hand and see what it waits for".to_owned(),
            },
        };
        Detected { name: engine.name().to_owned(), preflight }
    }))
    .await
}

/// `engine:<name>` for each that is ready.
pub fn capabilities(detected: &[Detected]) -> CapabilitySet {
    let ready = detected.iter().filter(|engine| engine.preflight.is_ready());
    ready.filter_map(|engine| Capability::engine(&engine.name).ok()).collect()
}
