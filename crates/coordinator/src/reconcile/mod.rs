//! Reconcilers: each takes no arguments, finds its own work, and runs on a hint and on a timer.
//!
//! None of them asks the store anything while there is nothing to do: an idle fleet costs nothing.

mod follower;
mod presence;
mod questions;
mod reaper;
mod reconsider;
mod retention;

use std::sync::Arc;

use crate::{Coordinator, Inbox};

impl Coordinator {
    pub(crate) fn spawn_reconcilers(self: &Arc<Self>, inbox: Inbox) {
        let tasks = &self.core.tasks;
        tasks.spawn(self.claims.clone().serve_claims(inbox.asked));
        tasks.spawn(self.hints.clone().watch_commits());
        tasks.spawn(self.hints.clone().publish_hints(inbox.hints));
        tasks.spawn(self.clone().receive_hints());
        tasks.spawn(self.fleet.clone().follow(self.head()));
        tasks.spawn(self.clone().reap());
        tasks.spawn(self.clone().reconsider());
        tasks.spawn(self.clone().close_questions());
        tasks.spawn(self.fleet.clone().keep_presence());
        tasks.spawn(self.dispatch.clone().watch_periods());
        tasks.spawn(self.clone().retain());
        self.topics.spawn();
        self.dispatch.spawn();
        self.effects.spawn();
        tasks.spawn(self.pools.clone().keep_scaling());
    }
}
