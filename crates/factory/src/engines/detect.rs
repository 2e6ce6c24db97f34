//! Which engines this machine really has: every one is asked, a few at a time, each for a limited time.
//!
//! An engine that does not answer is not offered: a job that is sent to it would only fail later.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use giga_domain::{Capability, CapabilitySet};

use super::engine::{Engine, Preflight};

/// Each starts programs that take seconds of a processor.
const AT_ONCE: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    pub name: String,
    pub preflight: Preflight,
}

/// In the order of `engines`.
pub async fn detect(engines: &[Arc<dyn Engine>], patience: Duration) -> Vec<Detected> {
    let asked: Vec<_> = engines.iter().cloned().map(|engine| ask(engine, patience)).collect();
    futures::stream::iter(asked).buffered(AT_ONCE).collect().await
}

/// The same, told one by one as they answer.
pub async fn detect_each(
    engines: &[Arc<dyn Engine>],
    patience: Duration,
    mut tell: impl FnMut(Detected) + Send,
) {
    let asked: Vec<_> = engines.iter().cloned().map(|engine| ask(engine, patience)).collect();
    let mut answers = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
    while let Some(detected) = answers.next().await {
        tell(detected);
    }
}

async fn ask(engine: Arc<dyn Engine>, patience: Duration) -> Detected {
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
}

/// `engine:<name>` for each that is ready.
pub fn capabilities(detected: &[Detected]) -> CapabilitySet {
    let ready = detected.iter().filter(|engine| engine.preflight.is_ready());
    ready.filter_map(|engine| Capability::engine(&engine.name).ok()).collect()
}
