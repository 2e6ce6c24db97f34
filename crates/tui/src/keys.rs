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
            Self::Moving => "Moving",
            Self::Lists => "In lists",
            Self::Board => "Board",
            Self::Factories => "Factories",
            Self::Factory => "One factory",
            Self::Alerts => "Alerts",
            Self::Jobs => "Jobs",
            Self::Job => "One job",
            Self::Log => "A job's log",
            Self::Budgets => "Budgets",
            Self::Topics => "Topics",
            Self::Typing => "While something is typed",
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
    key(Everywhere, "Tab Shift-Tab", "", "next or previous tab (of a job: its pages)"),
    key(Everywhere, ":", "jump", "jump to a tab, a job or a factory; Tab completes"),
    key(Everywhere, "p", "", "cycle the product that is shown"),
    key(Everywhere, "Ctrl-R", "", "ask the coordinator for everything anew"),
    key(Everywhere, "Ctrl-Z", "", "to the shell; fg comes back"),
    key(Everywhere, "?", "help", "the keys that work here"),
    key(Everywhere, "q Ctrl-C", "quit", "quit (while something is typed: leave that)"),
    key(Moving, "j k ↓ ↑", "", "one down or up"),
    key(Moving, "PgDn PgUp Space", "", "a page down or up; Space: down"),
    key(Moving, "g G Home End", "", "to the first or the last"),
    key(Lists, "/", "filter", "show what contains the text; Esc clears it"),
    key(Moving, "Esc Backspace", "", "back"),
    key(Board, "Enter", "open", "open the job"),
    key(Board, "h l ← →", "", "the column to the left or right"),
    key(Factories, "Enter", "open", "open the factory"),
    act(Factories, "d", "drain", "drain it: it finishes what it holds; again to end that"),
    key(Factory, "Enter", "open", "open the job that runs there"),
    act(Factory, "d", "drain", "drain it, or end that"),
    key(Alerts, "Enter", "open", "go to the job, factory or product that it is about"),
    key(Jobs, "Enter", "open", "open the job"),
    key(Jobs, "s", "stages", "cycle all, live, waiting, running, review, ended, failed"),
    act(Jobs, "r", "requeue", "requeue the selected job: another chance, attempts start over"),
    act(Jobs, "S", "ship", "ship what was tested"),
    act(Jobs, "x", "cancel", "cancel it, and what is below it"),
    key(Job, "e l w u", "", "its pages: events, log, why (explain), runs"),
    act(Job, "r", "requeue", "requeue: another chance, attempts start over"),
    act(Job, "S", "ship", "ship what was tested"),
    act(Job, "x", "cancel", "cancel it, and what is below it"),
    act(Job, "A", "approve", "approve, in review"),
    act(Job, "C", "changes", "ask for changes, in review; asks for a comment"),
    act(Job, "X", "reject", "reject, in review"),
    key(Log, "f", "follow", "follow the end, or stop following"),
    key(Log, "/ n N", "search", "search the log; to the next or previous place that matches"),
    key(Log, "← →", "", "the left or right of long lines"),
    key(Budgets, "Enter", "jobs", "show the product's jobs, and only its"),
    act(Budgets, "P", "pause", "pause: nothing of the product is started; asks first"),
    act(Budgets, "R", "resume", "resume"),
    act(Topics, "P", "pause", "pause the topic: nothing is handed out"),
    act(Topics, "R", "resume", "resume the topic"),
    act(Topics, "t", "retry dead", "give the dead jobs of the topic another chance"),
    key(Typing, "Enter", "", "keep, go or send it"),
    key(Typing, "Esc Ctrl-C", "", "leave it; a filter or a search is cleared"),
    key(Typing, "Tab", "", "complete it, after `:`"),
    key(Typing, "Backspace Ctrl-W Ctrl-U", "", "take away a letter, a word, everything"),
    key(Typing, "Ctrl-Z", "", "to the shell; it is still there after fg"),
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
