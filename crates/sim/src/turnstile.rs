//! The turnstile: every call to a port waits here until the conductor lets it through.
//!
//! So the order in which coordinators get at the store and the broker is the seed's choice alone, at every single call. A
//! node that is paused waits at its next call; one that is dead waits there for ever, with whatever it was about to do.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::prng::Prng;
use crate::scenario::Rates;

/// One life of one coordinator. A restart is another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node(pub usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    /// It never reaches the other side, and the caller is told so.
    FailBefore,
    /// It takes effect, and the caller is told that it did not answer.
    FailAfter,
    /// It takes effect, and the answer waits at the turnstile once more.
    GoAndWait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Broker,
    /// An answer on its way back.
    Answer,
}

#[derive(Debug, Default)]
pub(crate) struct Turnstile {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<Waiting>,
    nodes: Vec<Life>,
}

#[derive(Debug)]
struct Waiting {
    node: Node,
    kind: Kind,
    what: &'static str,
    go: oneshot::Sender<Verdict>,
    /// Stuck on the way until then, while the rest of its node goes on.
    stuck_until: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    PausedUntil(Instant),
    Dead,
}

/// What the conductor did.
#[derive(Debug)]
pub(crate) enum Released {
    One {
        node: Node,
        what: &'static str,
        verdict: Verdict,
    },
    Stuck {
        node: Node,
        what: &'static str,
        time: Duration,
    },
    /// Nobody may go; the first that is paused or stuck comes back then.
    Nobody {
        until: Option<Instant>,
    },
}

impl Turnstile {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn new_node(&self) -> Node {
        let mut state = self.lock();
        state.nodes.push(Life::Running);
        Node(state.nodes.len() - 1)
    }

    /// Whatever it was about to do never happens; whatever has happened stays.
    pub(crate) fn kill(&self, node: Node) {
        let mut state = self.lock();
        state.nodes[node.0] = Life::Dead;
        state.waiting.retain(|waiting| waiting.node != node);
    }

    pub(crate) fn pause(&self, node: Node, time: Duration) {
        let mut state = self.lock();
        if state.nodes[node.0] != Life::Dead {
            state.nodes[node.0] = Life::PausedUntil(Instant::now() + time);
        }
    }

    pub(crate) fn resume_all(&self) {
        let mut state = self.lock();
        for life in &mut state.nodes {
            if *life != Life::Dead {
                *life = Life::Running;
            }
        }
        state.waiting.iter_mut().for_each(|waiting| waiting.stuck_until = None);
        drop(state);
        self.arrived.notify_one();
    }

    /// Waits to be let through.
    pub(crate) async fn pass(&self, node: Node, kind: Kind, what: &'static str) -> Verdict {
        let (go, may_go) = oneshot::channel();
        let alive = {
            let mut state = self.lock();
            let alive = state.nodes[node.0] != Life::Dead;
            if alive {
                state.waiting.push(Waiting { node, kind, what, go, stuck_until: None });
            }
            alive
        };
        if alive {
            self.arrived.notify_one();
            if let Ok(verdict) = may_go.await {
                return verdict;
            }
        }
        std::future::pending().await
    }

    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Lets one of those that wait through, with what becomes of it.
    pub(crate) fn release(&self, prng: &mut Prng, rates: &Rates) -> Released {
        let now = Instant::now();
        let mut state = self.lock();
        for life in &mut state.nodes {
            if matches!(life, Life::PausedUntil(end) if *end <= now) {
                *life = Life::Running;
            }
        }
        // Callers that gave up have left.
        state.waiting.retain(|waiting| !waiting.go.is_closed());
        let State { waiting, nodes } = &mut *state;
        let may_go = |waiting: &Waiting| {
            nodes[waiting.node.0] == Life::Running && waiting.stuck_until.is_none_or(|end| end <= now)
        };
        let eligible: Vec<usize> = (0..waiting.len()).filter(|at| may_go(&waiting[*at])).collect();
        if eligible.is_empty() {
            let paused = nodes.iter().filter_map(|life| match life {
                Life::PausedUntil(end) => Some(*end),
                _ => None,
            });
            let stuck = waiting.iter().filter_map(|waiting| waiting.stuck_until);
            return Released::Nobody { until: paused.chain(stuck.filter(|end| *end > now)).min() };
        }
        let chosen = *prng.pick(&eligible);
        if prng.chance(rates.stuck) && waiting[chosen].stuck_until.is_none() {
            let time = Duration::from_millis(prng.between(50, 4_000));
            let Waiting { node, what, stuck_until, .. } = &mut waiting[chosen];
            *stuck_until = Some(now + time);
            return Released::Stuck { node: *node, what, time };
        }
        let Waiting { node, kind, what, go, .. } = waiting.remove(chosen);
        let verdict = rates.verdict(kind, prng);
        let _ = go.send(verdict);
        Released::One { node, what, verdict }
    }
}
