//! One job, opened: where it stands, what happened, what it prints, why it is where it is, and its runs.

use std::collections::VecDeque;

use giga_api::wire::{Event, Explanation, Job, LogPiece, Run};

use crate::text::log_line;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Events,
    Log,
    Explain,
    Runs,
}

impl Part {
    pub const ALL: [Self; 4] = [Self::Events, Self::Log, Self::Explain, Self::Runs];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Log => "log",
            Self::Explain => "explain",
            Self::Runs => "runs",
        }
    }

    #[must_use]
    pub fn next(self, back: bool) -> Self {
        let at = Self::ALL.iter().position(|part| *part == self).unwrap_or(0);
        Self::ALL[(at + if back { 3 } else { 1 }) % 4]
    }
}

#[derive(Debug, Clone)]
pub struct JobPage {
    pub id: String,
    pub job: Option<Job>,
    /// Why it cannot be shown.
    pub error: Option<String>,
    pub part: Part,
    /// Oldest first.
    pub events: Vec<Event>,
    pub runs: Option<Vec<Run>>,
    pub explain: Option<Explanation>,
    pub log: Log,
    /// The first line on the screen, of everything but the log.
    pub top: usize,
}

impl JobPage {
    pub fn new(id: &str, job: Option<Job>) -> Self {
        Self {
            id: id.to_owned(),
            job,
            error: None,
            part: Part::Events,
            events: Vec::new(),
            runs: None,
            explain: None,
            log: Log::default(),
            top: 0,
        }
    }

    pub fn last_seq(&self) -> u64 {
        self.events.last().and_then(|event| event.seq).unwrap_or(0)
    }

    pub fn append_events(&mut self, events: Vec<Event>) {
        for event in events {
            if event.seq.unwrap_or(0) > self.last_seq() {
                self.events.push(event);
            }
        }
    }
}

/// Lines that are kept; older ones go.
const KEPT: usize = 5_000;
/// A line without an end is shown in pieces of this size.
const LONGEST: usize = 4_000;
/// Of a log that is longer than this only the end is fetched.
pub(super) const FETCHED: u64 = 256 * 1024;

/// The end of a run's log.
#[derive(Debug, Clone)]
pub struct Log {
    /// The run that it is of, once that is known.
    pub epoch: Option<u64>,
    pub next_offset: u64,
    pub total: u64,
    pub complete: bool,
    /// Something was answered.
    pub loaded: bool,
    /// The beginning is not here.
    pub skipped: bool,
    pub lines: VecDeque<String>,
    /// What came after the last line break.
    partial: String,
    pub follow: bool,
    /// The first line on the screen while nobody follows.
    pub top: usize,
    /// The first column on the screen.
    pub left: usize,
    pub search: String,
    /// The line that `n` went to last.
    pub found: Option<usize>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            epoch: None,
            next_offset: 0,
            total: 0,
            complete: false,
            loaded: false,
            skipped: false,
            lines: VecDeque::new(),
            partial: String::new(),
            follow: true,
            top: 0,
            left: 0,
            search: String::new(),
            found: None,
        }
    }
}

impl Log {
    /// Another run: everything but how somebody looks at it starts over.
    pub fn start_over(&mut self) {
        *self = Self { follow: self.follow, search: std::mem::take(&mut self.search), ..Self::default() };
    }

    /// Takes a piece in, where it goes on.
    pub fn add(&mut self, piece: &LogPiece) {
        match self.epoch {
            // Waited for since before the run that is shown began.
            Some(epoch) if epoch > piece.lease_epoch => return,
            Some(epoch) if epoch < piece.lease_epoch => self.start_over(),
            _ => {}
        }
        // Neither one that is here already nor one that was waited for by who looked before.
        if piece.offset != self.next_offset {
            return;
        }
        let first = !std::mem::replace(&mut self.loaded, true);
        self.epoch = Some(piece.lease_epoch);
        self.total = piece.total;
        self.complete = piece.complete;
        if first && piece.total > FETCHED && piece.next_offset < piece.total - FETCHED {
            // The beginning of a long log: go on where its end begins.
            self.next_offset = piece.total - FETCHED;
            self.skipped = true;
            self.complete = false;
            return;
        }
        self.next_offset = piece.next_offset;
        if self.skipped && self.is_empty() && piece.offset > 0 {
            // It begins somewhere in a line.
            let text = piece.text.split_once('\n').map_or("", |(_, rest)| rest);
            self.push(text);
        } else {
            self.push(&piece.text);
        }
    }

    fn push(&mut self, text: &str) {
        for (at, piece) in text.split('\n').enumerate() {
            if at > 0 {
                let line = std::mem::take(&mut self.partial);
                self.lines.push_back(log_line(&line));
            }
            self.partial.push_str(piece);
            self.break_up();
        }
        while self.lines.len() > KEPT {
            self.lines.pop_front();
            self.skipped = true;
            self.top = self.top.saturating_sub(1);
            self.found = self.found.and_then(|line| line.checked_sub(1));
        }
    }

    /// Leaves at most so much of the unfinished line; what is before it becomes lines.
    fn break_up(&mut self) {
        if self.partial.len() <= LONGEST {
            return;
        }
        // What was drawn over is not shown anyway.
        if let Some(over) = self.partial.trim_end_matches('\r').rfind('\r') {
            self.partial.drain(..=over);
        }
        let mut rest = self.partial.as_str();
        while rest.len() > LONGEST {
            let (head, tail) = rest.split_at(rest.floor_char_boundary(LONGEST));
            self.lines.push_back(log_line(head));
            rest = tail;
        }
        self.partial = rest.to_owned();
    }

    /// Every line, the unfinished one included.
    pub fn all(&self) -> impl Iterator<Item = String> + '_ {
        let partial = Some(log_line(&self.partial)).filter(|line| !line.is_empty());
        self.lines.iter().cloned().chain(partial)
    }

    pub fn len(&self) -> usize {
        self.lines.len() + usize::from(!self.partial.is_empty())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first line on the screen.
    pub fn first_shown(&self, height: usize) -> usize {
        let last = self.len().saturating_sub(height);
        if self.follow { last } else { self.top.min(last) }
    }

    pub fn scroll(&mut self, by: isize, height: usize) {
        let last = self.len().saturating_sub(height);
        self.top = self.first_shown(height).saturating_add_signed(by).min(last);
        // Whoever is at the end again wants to stay there, as long as there is more to come.
        self.follow = by > 0 && self.top == last;
    }

    /// Goes to the next line with what is searched for, or to the one before; whether there is one.
    pub fn find(&mut self, back: bool, height: usize) -> bool {
        if self.search.is_empty() {
            return false;
        }
        let wanted = self.search.to_lowercase();
        let hits: Vec<usize> = self
            .all()
            .enumerate()
            .filter(|(_, line)| line.to_lowercase().contains(&wanted))
            .map(|(at, _)| at)
            .collect();
        let here = self.found;
        let next = match (here, back) {
            (Some(here), false) => hits.iter().find(|at| **at > here).or(hits.first()),
            (Some(here), true) => hits.iter().rev().find(|at| **at < here).or(hits.last()),
            // The newest first: that is what somebody looks for in a log.
            (None, _) => hits.last(),
        };
        let Some(next) = next.copied() else { return false };
        self.found = Some(next);
        self.follow = false;
        self.top = next.saturating_sub(height / 2).min(self.len().saturating_sub(height));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, text: &str, total: u64) -> LogPiece {
        let next_offset = offset + text.len() as u64;
        LogPiece { lease_epoch: 1, offset, next_offset, total, complete: false, text: text.to_owned() }
    }

    #[test]
    fn pieces_become_lines_once() {
        let mut log = Log::default();
        log.add(&piece(0, "one\ntw", 6));
        log.add(&piece(0, "one\ntw", 6));
        log.add(&piece(6, "o\nthree", 13));
        assert_eq!(log.all().collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn of_a_long_log_only_the_end_is_fetched() {
        let mut log = Log::default();
        let total = 10 * FETCHED;
        log.add(&piece(0, "start\n", total));
        assert_eq!((log.next_offset, log.len()), (total - FETCHED, 0));
        log.add(&piece(total, "late\n", total + 5));
        assert_eq!((log.next_offset, log.len()), (total - FETCHED, 0), "what is between is not passed over");
        log.add(&piece(log.next_offset, "alf a line\nwhole\n", total));
        assert_eq!(log.all().collect::<Vec<_>>(), ["whole"]);
        assert!(log.skipped);
    }

    #[test]
    fn memory_is_bounded_and_the_place_stays() {
        let mut log = Log::default();
        log.push(&"x\n".repeat(KEPT));
        log.follow = false;
        log.top = 100;
        log.push(&"y\n".repeat(10));
        assert_eq!((log.len(), log.top, log.skipped), (KEPT, 90, true));
    }

    #[test]
    fn a_line_without_an_end_comes_in_pieces() {
        for end in ["", "\n"] {
            let mut log = Log::default();
            log.push(&format!("{}{end}", "é".repeat(5 * LONGEST)));
            let lengths: Vec<usize> = log.all().map(|line| line.len()).collect();
            assert_eq!(lengths, [LONGEST; 10], "{end:?}");
            // The same in two parts that break it elsewhere.
            let mut log = Log::default();
            log.push(&"x".repeat(LONGEST + 10));
            log.push(&format!("{}{end}", "x".repeat(LONGEST - 10)));
            assert_eq!(log.all().map(|line| line.len()).collect::<Vec<_>>(), [LONGEST; 2], "{end:?}");
        }
        // A line that was drawn over and over is its last state, however long that took.
        let mut log = Log::default();
        log.push(&format!("{}done\n", "50%\r".repeat(LONGEST)));
        assert_eq!(log.all().collect::<Vec<_>>(), ["done"]);
    }

    #[test]
    fn a_late_piece_of_the_run_before_changes_nothing() {
        let mut log = Log::default();
        log.add(&LogPiece { lease_epoch: 2, ..piece(0, "two\n", 4) });
        log.add(&piece(0, "one\n", 4));
        assert_eq!((log.all().collect::<Vec<_>>(), log.epoch), (vec!["two".to_owned()], Some(2)));
    }

    #[test]
    fn search_goes_round() {
        let mut log = Log { search: "ERR".to_owned(), ..Log::default() };
        log.push("err 1\nfine\nerr 2\nfine\n");
        assert!(log.find(false, 2));
        assert_eq!((log.found, log.follow), (Some(2), false));
        assert!(log.find(false, 2));
        assert_eq!(log.found, Some(0));
        assert!(log.find(true, 2));
        assert_eq!(log.found, Some(2));
        log.search = "nowhere".to_owned();
        assert!(!log.find(false, 2));
    }

    #[test]
    fn another_run_starts_over() {
        let mut log = Log::default();
        log.add(&piece(0, "one\n", 4));
        log.add(&LogPiece { lease_epoch: 2, ..piece(0, "two\n", 4) });
        assert_eq!((log.all().collect::<Vec<_>>(), log.epoch), (vec!["two".to_owned()], Some(2)));
    }
}
