//! The one table of keys: the hints at the bottom, the help overlay and `docs/top.md` are made from it.

use std::fmt::Write;

/// Where a key works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Everywhere,
    Moving,
    Lists,
    Board,
    Factories,
    Factory,
    Alerts,
    Jobs,
    Job,
    Log,
    Budgets,
    Topics,
    Typing,
}

impl Place {
    pub const ALL: [Self; 13] = [
        Self::Everywhere,
        Self::Moving,
        Self::Lists,
        Self::Board,
        Self::Factories,
        Self::Factory,
        Self::Alerts,
        Self::Jobs,
        Self::Job,
        Self::Log,
        Self::Budgets,
        Self::Topics,
        Self::Typing,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Everywhere => "Everywhere",
            Self::Moving => "Moving around",
            Self::Lists => "Lists",
            Self::Board => "Board",
            Self::Factories => "Factories",
            Self::Factory => "Factory page",
            Self::Alerts => "Alerts",
            Self::Jobs => "Jobs",
            Self::Job => "Job page",
            Self::Log => "Job log",
            Self::Budgets => "Budgets",
            Self::Topics => "Topics",
            Self::Typing => "While typing",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub place: Place,
    pub keys: &'static str,
    pub about: &'static str,
    /// Two words for the line at the bottom; empty: only in the help.
    pub hint: &'static str,
    /// It changes something, so the token has to be an operator's.
    pub acts: bool,
}

const fn key(place: Place, keys: &'static str, hint: &'static str, about: &'static str) -> Key {
    Key { place, keys, about, hint, acts: false }
}

const fn act(place: Place, keys: &'static str, hint: &'static str, about: &'static str) -> Key {
    Key { place, keys, about, hint, acts: true }
}

use Place::{
    Alerts, Board, Budgets, Everywhere, Factories, Factory, Job, Jobs, Lists, Log, Moving, Topics, Typing,
};

pub const KEYS: &[Key] = &[
    key(Everywhere, "1-6", "", "go to a tab"),
    key(Everywhere, "Tab Shift-Tab", "", "next or previous tab; on a job, next or previous page"),
    key(Everywhere, ":", "jump", "jump to a tab, a job or a factory; Tab completes"),
    key(Everywhere, "p", "", "switch to the next product"),
    key(Everywhere, "Ctrl-R", "", "reload everything"),
    key(Everywhere, "Ctrl-Z", "", "suspend to the shell; fg resumes"),
    key(Everywhere, "?", "help", "show the keys that work here"),
    key(Everywhere, "q Ctrl-C", "quit", "quit; while typing, cancel"),
    key(Moving, "j k ↓ ↑", "", "down or up by one"),
    key(Moving, "PgDn PgUp Space", "", "down or up by a page; Space goes down"),
    key(Moving, "g G Home End", "", "first or last"),
    key(Lists, "/", "filter", "filter by text; Esc clears the filter"),
    key(Moving, "Esc Backspace", "", "back"),
    key(Board, "Enter", "open", "open the job"),
    key(Board, "h l ← →", "", "column to the left or right"),
    key(Factories, "Enter", "open", "open the factory"),
    act(Factories, "d", "drain", "drain: finish its jobs and take no new ones; again to undo"),
    key(Factory, "Enter", "open", "open the running job"),
    act(Factory, "d", "drain", "drain, or undo"),
    key(Alerts, "Enter", "open", "go to the job, factory or product"),
    key(Jobs, "Enter", "open", "open the job"),
    key(Jobs, "s", "stages", "cycle all, live, waiting, running, review, ended, failed"),
    act(Jobs, "r", "requeue", "requeue the job; its attempts start over"),
    act(Jobs, "S", "ship", "ship a job that is ready to ship"),
    act(Jobs, "x", "cancel", "cancel it and everything below it"),
    key(Job, "e l w u", "", "pages: events, log, explain, runs"),
    act(Job, "r", "requeue", "requeue; its attempts start over"),
    act(Job, "S", "ship", "ship a job that is ready to ship"),
    act(Job, "x", "cancel", "cancel it and everything below it"),
    act(Job, "i", "answer", "answer the question that it asks"),
    act(Job, "m", "", "say something to its engine"),
    act(Job, "A", "approve", "approve (in review)"),
    act(Job, "C", "changes", "request changes with a comment (in review)"),
    act(Job, "X", "reject", "reject (in review)"),
    key(Log, "f", "follow", "follow the end, or stop following"),
    key(Log, "/ n N", "search", "search the log; next or previous match"),
    key(Log, "← →", "", "scroll long lines left or right"),
    key(Budgets, "Enter", "jobs", "show only this product's jobs"),
    act(Budgets, "P", "pause", "pause: start no new jobs of the product"),
    act(Budgets, "R", "resume", "resume"),
    act(Topics, "P", "pause", "pause the topic: hand out no jobs"),
    act(Topics, "R", "resume", "resume the topic"),
    act(Topics, "t", "retry dead", "retry the dead jobs of the topic"),
    key(Typing, "Enter", "", "apply, go or send"),
    key(Typing, "Esc Ctrl-C", "", "cancel; clears a filter or a search"),
    key(Typing, "Tab", "", "complete (after `:`)"),
    key(Typing, "Backspace Ctrl-W Ctrl-U", "", "delete a character, a word, everything"),
    key(Typing, "Ctrl-Z", "", "suspend to the shell; your text is kept"),
];

/// Keys of these places, in their order; those that act only for who may.
pub fn of(places: &[Place], may_act: bool) -> impl Iterator<Item = &'static Key> {
    let of_one = move |place: &Place| {
        let place = *place;
        KEYS.iter().filter(move |key| key.place == place && (may_act || !key.acts))
    };
    places.iter().flat_map(of_one)
}

/// The tables of `docs/top.md`.
pub fn markdown() -> String {
    let mut page = String::new();
    for place in Place::ALL {
        let _ = writeln!(page, "### {}\n\n| key | does |\n| --- | --- |", place.title());
        for key in of(&[place], true) {
            let keys: Vec<String> = key.keys.split(' ').map(|key| format!("`{key}`")).collect();
            let role = if key.acts { " (operators)" } else { "" };
            let _ = writeln!(page, "| {} | {}{role} |", keys.join(" "), key.about);
        }
        page.push('\n');
    }
    page
}
