//! Reconcilers: each takes no arguments, finds its own work, and runs on a hint and on a timer.
//!
//! None of them asks the store anything while there is nothing to do: an idle fleet costs nothing.

mod follower;
mod presence;
mod reaper;
mod reconsider;
mod reopening;
mod retention;

use std::sync::Arc;

use crate::{Coordinator, Inbox};

impl Coordinator {
    pub(crate) fn spawn_reconcilers(self: &Arc<Self>, inbox: Inbox) {
        self.tasks.spawn(self.clone().serve_claims(inbox.asked));
        self.tasks.spawn(self.clone().watch_commits());
        self.tasks.spawn(self.clone().tell_hints(inbox.hints_to_tell));
        self.tasks.spawn(self.clone().hear_hints());
        self.tasks.spawn(self.clone().follow());
        self.tasks.spawn(self.clone().reap());
        self.tasks.spawn(self.clone().reconsider());
        self.tasks.spawn(self.clone().keep_presence());
        self.tasks.spawn(self.clone().watch_periods());
        self.tasks.spawn(self.clone().retain());
        self.spawn_topics();
        self.spawn_dispatch();
        self.spawn_effects();
    }
}
