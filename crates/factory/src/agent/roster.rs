//! The engines of this machine and which of them are ready, looked at again for as long as the agent runs.
//!
//! Few at a time: each look starts programs, and on a busy machine many at once would all be too slow. One whose account was
//! refused in a run is out until a look passes, and looks wait longer after each refusal: some programs can only be asked whether
//! a key is there, not whether it is accepted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Capability, CapabilitySet};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::engines::{self, Detected, Engine, Preflight};

/// How long one engine may take to say whether it is ready.
const PREFLIGHT: Duration = Duration::from_mins(2);
/// How long the start of the agent waits; those that take longer come later.
const FIRST_LOOK: Duration = Duration::from_secs(20);
/// How often those are looked at that are there and not ready, and how often all of them.
const AGAIN: Duration = Duration::from_mins(2);
const ALL_AGAIN: Duration = Duration::from_mins(15);
/// How long an engine is left alone after its account was refused; twice as long after each further time.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(30);

#[derive(Debug)]
pub(super) struct Roster {
    all: Vec<Arc<dyn Engine>>,
    found: Mutex<HashMap<String, Preflight>>,
    refused: Mutex<HashMap<String, Refusal>>,
    look: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Refusal {
    until: Instant,
    pause: Duration,
}

impl Roster {
    pub(super) fn new(all: Vec<Arc<dyn Engine>>) -> Self {
        Self { all, found: Mutex::default(), refused: Mutex::default(), look: Notify::new() }
    }

    /// In the order of preference.
    pub(super) fn ready(&self) -> Vec<Arc<dyn Engine>> {
        let found = self.found.lock();
        let is_ready = |engine: &&Arc<dyn Engine>| found.get(engine.name()).is_some_and(Preflight::is_ready);
        self.all.iter().filter(is_ready).cloned().collect()
    }

    /// Those that are ready, and those that would be if their account had not been refused in a run: each with whether it was.
    pub(super) fn known(&self) -> Vec<(Arc<dyn Engine>, bool)> {
        let (found, refused) = (self.found.lock(), self.refused.lock());
        let known = |engine: &Arc<dyn Engine>| match found.get(engine.name())? {
            Preflight::Ready { .. } => Some((engine.clone(), false)),
            Preflight::NotSignedIn { .. } => {
                refused.contains_key(engine.name()).then(|| (engine.clone(), true))
            }
            Preflight::NotInstalled { .. } | Preflight::Broken { .. } => None,
        };
        self.all.iter().filter_map(known).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<dyn Engine>> {
        self.ready().into_iter().find(|engine| engine.name() == name)
    }

    /// Ready or not: what it left behind can be read all the same.
    pub(super) fn named(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        self.all.iter().find(|engine| engine.name() == name)
    }

    /// `engine:<name>` for each that is ready.
    pub(super) fn capabilities(&self) -> CapabilitySet {
        self.ready().iter().filter_map(|engine| Capability::engine(engine.name()).ok()).collect()
    }

    /// Its account was refused in a run.
    pub(super) fn refused(&self, name: &str, detail: &str) {
        let mut refused = self.refused.lock();
        let pause = refused.get(name).map_or(FIRST_PAUSE, |last| (last.pause * 2).min(LONGEST_PAUSE));
        refused.insert(name.to_owned(), Refusal { until: Instant::now() + pause, pause });
        drop(refused);
        let remedy = format!("its account was refused: {}", detail.lines().next().unwrap_or_default());
        self.record(name, Preflight::NotSignedIn { remedy });
    }

    /// A run of it came to an end that its account did not stand in the way of.
    pub(super) fn accepted(&self, name: &str) {
        self.refused.lock().remove(name);
    }

    /// Something about an engine failed: look again soon.
    pub(super) fn look_again(&self) {
        self.look.notify_one();
    }

    /// Answers whether readiness changed, and says so in the log.
    fn record(&self, name: &str, now: Preflight) -> bool {
        let before = self.found.lock().insert(name.to_owned(), now.clone());
        let was_ready = before.as_ref().is_some_and(Preflight::is_ready);
        match &now {
            Preflight::Ready { version } if !was_ready => {
                tracing::info!(engine = name, version = version.as_deref().unwrap_or("-"), "engine ready");
            }
            Preflight::NotSignedIn { remedy } if was_ready || before.is_none() => {
                tracing::warn!(engine = name, remedy, "engine not ready: not signed in");
            }
            Preflight::Broken { detail, remedy } if was_ready || before.is_none() => {
                tracing::warn!(engine = name, detail, remedy, "engine not ready");
            }
            Preflight::NotInstalled { .. } if was_ready => {
                tracing::warn!(engine = name, "engine not ready: it is not installed any more");
            }
            _ => {}
        }
        was_ready != now.is_ready()
    }

    fn is_left_alone(&self, name: &str) -> bool {
        self.refused.lock().get(name).is_some_and(|refusal| refusal.until > Instant::now())
    }

    /// Asks those that `wanted` picks, and answers whether anything changed.
    async fn look(&self, wanted: impl Fn(Option<&Preflight>) -> bool) -> bool {
        let picked: Vec<_> = {
            let found = self.found.lock();
            let is_wanted = |engine: &&Arc<dyn Engine>| {
                wanted(found.get(engine.name())) && !self.is_left_alone(engine.name())
            };
            self.all.iter().filter(is_wanted).cloned().collect()
        };
        let mut changed = false;
        engines::detect_each(&picked, PREFLIGHT, |Detected { name, preflight }| {
            // Refused meanwhile: what was seen before that does not count.
            if !self.is_left_alone(&name) {
                changed |= self.record(&name, preflight);
            }
        })
        .await;
        changed
    }

    /// Before the first heartbeat.
    pub(super) async fn first_look(&self) {
        if tokio::time::timeout(FIRST_LOOK, self.look(|_| true)).await.is_err() {
            let found = self.found.lock();
            let late: Vec<&str> = self
                .all
                .iter()
                .map(|engine| engine.name())
                .filter(|name| !found.contains_key(*name))
                .collect();
            tracing::warn!(
                engines = late.join(", "),
                "these engines have not answered yet; they may come later"
            );
            self.look_again();
        }
    }
}

/// Until `stop`.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let roster = &shared.engines;
    let mut all_at = Instant::now() + ALL_AGAIN;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
            () = roster.look.notified() => {}
        }
        let all = Instant::now() >= all_at;
        if all {
            all_at = Instant::now() + ALL_AGAIN;
        }
        let wanted = |found: Option<&Preflight>| {
            all || matches!(found, None | Some(Preflight::NotSignedIn { .. } | Preflight::Broken { .. }))
        };
        let looked = async {
            let tools = all && shared.machine.look_again().await;
            roster.look(wanted).await || tools
        };
        let changed = tokio::select! {
            () = stop.cancelled() => return,
            changed = looked => changed,
        };
        if changed {
            shared.heartbeat_hint.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tokio::sync::mpsc;

    use super::*;
    use crate::engines::{EngineEvent, EngineReport, EngineRequest, Inbox};

    /// Says what it is told to.
    #[derive(Debug)]
    struct Told(Mutex<Preflight>);

    #[async_trait]
    impl Engine for Told {
        fn name(&self) -> &'static str {
            "told"
        }

        async fn preflight(&self) -> Preflight {
            self.0.lock().clone()
        }

        async fn run(
            &self,
            _request: EngineRequest,
            _events: mpsc::Sender<EngineEvent>,
            _inbox: Inbox,
            _stop: CancellationToken,
        ) -> EngineReport {
            unreachable!("nothing here runs")
        }
    }

    fn ready() -> Preflight {
        Preflight::Ready { version: None }
    }

    #[tokio::test(start_paused = true)]
    async fn engines_come_and_go() {
        let told = Arc::new(Told(Mutex::new(Preflight::Broken { detail: "x".into(), remedy: "y".into() })));
        let roster = Roster::new(vec![told.clone()]);
        roster.first_look().await;
        assert!(roster.ready().is_empty());
        *told.0.lock() = ready();
        assert!(roster.look(|found| !found.is_some_and(Preflight::is_ready)).await);
        assert_eq!(roster.capabilities(), CapabilitySet::parse(["engine:told"]).unwrap());
        assert!(!roster.look(|_| true).await, "nothing new");
    }

    #[tokio::test(start_paused = true)]
    async fn one_whose_account_is_refused_is_out_and_looked_at_later_each_time() {
        let roster = Roster::new(vec![Arc::new(Told(Mutex::new(ready())))]);
        roster.first_look().await;
        assert!(roster.find("told").is_some());
        for pause in [FIRST_PAUSE, FIRST_PAUSE * 2] {
            roster.refused("told", "401 Unauthorized");
            assert!(roster.find("told").is_none());
            assert!(matches!(roster.known().as_slice(), [(_, true)]), "it is known to be signed out");
            tokio::time::advance(pause.saturating_sub(Duration::from_secs(1))).await;
            assert!(!roster.look(|_| true).await, "its preflight would pass, and proves nothing yet");
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(roster.look(|_| true).await);
            assert!(roster.find("told").is_some());
        }
        roster.accepted("told");
        roster.refused("told", "401 Unauthorized");
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(roster.look(|_| true).await, "a run that worked makes it begin anew");
    }
}
