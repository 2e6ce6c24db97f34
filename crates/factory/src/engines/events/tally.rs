//! What the events of one run add up to: session, usage, final reply, and how it ended.
//!
//! Never trusts an exit status over events: an engine that reports failure has failed, and one that reports nothing has
//! not succeeded.

use std::collections::{BTreeMap, HashMap};
use std::ops::Sub;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use giga_domain::{FailReason, Usd};

use super::super::config::EventFormat;
use super::super::engine::{EngineEvent, EngineFailure, Usage};
use super::super::prices::{PriceTable, Tokens};
use super::{LineEvent, classify, is_account_refusal, names_an_unknown_session};

/// Of a model that ended its turn without a word or an act.
const DECLINED: &str = "the model ended its turn without saying or doing anything";

/// An engine may cut a conversation that is too long down and go on. One that does so again and again never gets anywhere.
const MOST_TOO_LONG: u32 = 3;

/// How the process went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Exit {
    /// `None` when a signal ended it.
    pub(in super::super) code: Option<i32>,
    /// `exited with code 3`, for people.
    pub(in super::super) text: String,
}

#[derive(Debug)]
pub(in super::super) struct Tally {
    format: EventFormat,
    prices: PriceTable,
    before: Usage,
    model: Option<String>,
    session: Option<String>,
    reply: Option<String>,
    messages: HashMap<String, Tokens>,
    /// Answers of the model, by what names them; the model of each where it is known.
    responses: HashMap<String, (Option<String>, Tokens)>,
    of_responses: Usage,
    /// What the session had used before this run, in its own words.
    session_before: Option<Tokens>,
    /// What it had used at its last word, this run included, where it named no dollars.
    session_total: Option<Tokens>,
    steps: Option<Usage>,
    total: Option<Usage>,
    usage: Usage,
    /// More work was begun after the last total, or none was named yet.
    open: bool,
    answered: bool,
    /// The model has said or done something.
    acted: bool,
    /// Something that the engine printed was understood: what it does not say, it did not do.
    understood: bool,
    resets_at: Option<u64>,
    error: Option<EngineFailure>,
    hopeless: Option<EngineFailure>,
    /// How often the conversation was too long.
    too_long: u32,
    ended: Option<Result<(), EngineFailure>>,
    spoiled: Option<EngineFailure>,
    priced_by_guess: bool,
}

impl Tally {
    pub(in super::super) fn new(
        format: EventFormat,
        prices: PriceTable,
        before: Usage,
        model: Option<String>,
    ) -> Self {
        Self {
            format,
            prices,
            before,
            model,
            session: None,
            reply: None,
            messages: HashMap::new(),
            responses: HashMap::new(),
            of_responses: Usage::default(),
            session_before: None,
            session_total: None,
            steps: None,
            total: None,
            usage: Usage::default(),
            open: true,
            answered: false,
            acted: false,
            understood: false,
            resets_at: None,
            error: None,
            hopeless: None,
            too_long: 0,
            ended: None,
            spoiled: None,
            priced_by_guess: false,
        }
    }

    /// Whether the log can do without the line.
    pub(in super::super) fn is_progress(&self, line: &str) -> bool {
        self.format.is_progress(line)
    }

    /// Reads a line and returns what has changed by it.
    pub(in super::super) fn line(&mut self, line: &str) -> Vec<EngineEvent> {
        self.take(self.format.read(line))
    }

    /// The same for a line of the session's own file.
    pub(in super::super) fn journal_line(&mut self, line: &str) -> Vec<EngineEvent> {
        self.take(self.format.read_journal(line))
    }

    /// What the program said of a session when it was asked.
    pub(in super::super) fn stored(&mut self, events: Vec<LineEvent>) {
        let _changes = self.take(events);
    }

    /// The same for one of standard error.
    pub(in super::super) fn stderr_line(&mut self, line: &str) -> Vec<EngineEvent> {
        self.take(self.format.read_stderr(line))
    }

    /// Why the run had better be ended.
    pub(in super::super) const fn hopeless(&self) -> Option<&EngineFailure> {
        self.hopeless.as_ref()
    }

    /// What the engine last complained of and had not got over: why it has been silent.
    pub(in super::super) fn trouble(&self) -> Option<&EngineFailure> {
        self.error.as_ref().filter(|_| self.ended.is_none())
    }

    fn take(&mut self, events: Vec<LineEvent>) -> Vec<EngineEvent> {
        let mut changes = Vec::new();
        for event in events {
            self.understood = true;
            self.apply(event, &mut changes);
        }
        if let (Some(sum), Some(before)) = (self.session_total, self.session_before) {
            let (tokens, model) = (sum.less(before), self.model.clone());
            let cost = self.priced(model.as_deref(), tokens, &mut changes);
            self.total = Some(Usage { tokens: tokens.sum(), cost: Some(cost) });
        }
        let reported = match self.total.or(self.steps) {
            None => self.of_messages(),
            Some(sum) if self.messages.is_empty() => sum,
            // Those that came after the sum.
            Some(sum) => sum.plus(self.of_messages()),
        };
        self.of_responses = self.sum_of_responses(&mut changes);
        let usage = larger(reported, self.of_responses);
        if usage != self.usage {
            self.usage = usage;
            changes.push(EngineEvent::Usage(usage));
        }
        changes
    }

    fn apply(&mut self, event: LineEvent, changes: &mut Vec<EngineEvent>) {
        match event {
            LineEvent::Session(id) => {
                if self.session.as_ref() != Some(&id) {
                    changes.push(EngineEvent::Session { id: id.clone(), used_before: self.before });
                    self.session = Some(id);
                }
            }
            LineEvent::Model(model) => {
                changes.push(EngineEvent::Model(model.clone()));
                self.model = Some(model);
            }
            LineEvent::Window(window) => changes.push(EngineEvent::Windows(vec![window])),
            LineEvent::Began => (self.ended, self.open) = (None, true),
            LineEvent::Answered => {
                self.answered = true;
                // Whatever it was, the engine got over it.
                self.error = None;
            }
            LineEvent::Acted => {
                (self.answered, self.acted) = (true, true);
                self.error = None;
            }
            LineEvent::Message { id, tokens } => {
                let known = self.messages.entry(id).or_default();
                *known = known.at_least(tokens);
            }
            LineEvent::Step { tokens, usd } => {
                let model = self.model.clone();
                let cost = usd.unwrap_or_else(|| self.priced(model.as_deref(), tokens, changes));
                let step = Usage { tokens: tokens.sum(), cost: Some(cost) };
                self.steps = Some(self.steps.map_or(step, |before| before.plus(step)));
            }
            LineEvent::Response { id, model, tokens } => {
                self.answered = true;
                let (known_model, known) = self.responses.entry(id).or_default();
                *known_model = model.or(known_model.take());
                if tokens.sum() > known.sum() {
                    *known = tokens;
                }
            }
            LineEvent::SessionBefore(tokens) => {
                self.session_before.get_or_insert(tokens);
            }
            LineEvent::ResetsAt(seconds) => self.resets_at = self.resets_at.max(Some(seconds)),
            LineEvent::SessionTotal { tokens, usd } => {
                self.session_total = Some(tokens).filter(|_| usd.is_none());
                let model = self.model.clone();
                let cost = usd.unwrap_or_else(|| self.priced(model.as_deref(), tokens, changes));
                let before = self.contained_in(tokens);
                self.answered |= tokens.sum() > 0;
                // The messages so far are in it.
                self.messages.clear();
                self.open = false;
                self.total = Some(Usage {
                    tokens: without(tokens.sum(), before.tokens),
                    cost: Some(without(cost, before.cost.unwrap_or_default())),
                });
            }
            LineEvent::RunPart { tokens, usd } => {
                let model = self.model.clone();
                let cost = usd.unwrap_or_else(|| self.priced(model.as_deref(), tokens, changes));
                // The messages so far are in it.
                self.messages.clear();
                self.open = false;
                let part = Usage { tokens: tokens.sum(), cost: Some(cost) };
                self.total = Some(self.total.map_or(part, |before| before.plus(part)));
            }
            LineEvent::RunTotal(models) => {
                let mut total = Usage { tokens: 0, cost: Some(Usd::ZERO) };
                for (model, tokens) in models {
                    let cost = self.priced(Some(&model), tokens, changes);
                    total.tokens = total.tokens.saturating_add(tokens.sum());
                    total.cost = total.cost.map(|sum| sum + cost);
                }
                self.answered |= total.tokens > 0;
                self.open = false;
                self.total = Some(total);
            }
            LineEvent::Reply(text) => {
                self.answered = true;
                self.acted |= !text.is_empty();
                self.reply = Some(text).filter(|text| !text.is_empty());
            }
            LineEvent::ReplyPart(text) => {
                self.answered = true;
                self.acted |= !text.is_empty();
                self.reply.get_or_insert_default().push_str(&text);
            }
            LineEvent::Note(note) => changes.push(EngineEvent::Note(note)),
            LineEvent::Error(failure) => self.error = Some(failure),
            LineEvent::Hopeless(failure) => self.hopeless = Some(failure),
            LineEvent::Ended(how) => {
                if let Err(failure) = &how
                    && failure.reason == FailReason::ContextTooLong
                {
                    self.too_long += 1;
                    if self.too_long == MOST_TOO_LONG {
                        self.hopeless = Some(failure.clone());
                    }
                }
                self.ended = Some(how);
            }
            LineEvent::Spoiled(failure) => self.spoiled = Some(failure),
            LineEvent::Completed => {
                let declined = || EngineFailure::lasting(FailReason::Refused, DECLINED);
                self.ended = Some(if self.acted { Ok(()) } else { Err(declined()) });
            }
            LineEvent::Idle => {
                self.ended.get_or_insert(Ok(()));
            }
        }
    }

    /// What of a sum was used up before this run. An engine that counts each run by itself names less than both
    /// together; taking the earlier runs off that would make this one cheaper than it was.
    fn contained_in(&self, sum: Tokens) -> Usage {
        let seen = self.messages.values().fold(0, |seen: u64, tokens| seen.saturating_add(tokens.sum()));
        if sum.sum() >= self.before.tokens.saturating_add(seen) { self.before } else { Usage::default() }
    }

    fn priced(&mut self, model: Option<&str>, tokens: Tokens, changes: &mut Vec<EngineEvent>) -> Usd {
        if let Some(price) = model.and_then(|model| self.prices.known(model)) {
            return price.cost(tokens);
        }
        if tokens.sum() > 0 && !self.priced_by_guess {
            self.priced_by_guess = true;
            let model = model.map_or("the engine did not name its model".to_owned(), |model| {
                format!("no price is known for the model {model}")
            });
            changes.push(EngineEvent::Note(format!(
                "{model}: its tokens are counted at the default price; set `prices` to correct that"
            )));
        }
        self.prices.fallback().cost(tokens)
    }

    /// An estimate while the engine runs, for engines that name the sum only at the end.
    fn of_messages(&self) -> Usage {
        if self.messages.is_empty() {
            return Usage::default();
        }
        let tokens = self.messages.values().fold(Tokens::default(), |sum, tokens| sum.plus(*tokens));
        let price = self.model.as_deref().and_then(|model| self.prices.known(model));
        let price = price.unwrap_or_else(|| self.prices.fallback());
        Usage { tokens: tokens.sum(), cost: Some(price.cost(tokens)) }
    }

    /// Each answer at the price of its own model.
    fn sum_of_responses(&mut self, changes: &mut Vec<EngineEvent>) -> Usage {
        if self.responses.is_empty() {
            return Usage::default();
        }
        let mut by_model: BTreeMap<Option<String>, Tokens> = BTreeMap::new();
        for (model, tokens) in self.responses.values() {
            let sum = by_model.entry(model.clone().or_else(|| self.model.clone())).or_default();
            *sum = sum.plus(*tokens);
        }
        let mut usage = Usage { tokens: 0, cost: Some(Usd::ZERO) };
        for (model, tokens) in by_model {
            let cost = self.priced(model.as_deref(), tokens, changes);
            usage.tokens = usage.tokens.saturating_add(tokens.sum());
            usage.cost = usage.cost.map(|sum| sum + cost);
        }
        usage
    }

    /// How many answers of the model its session's file has named so far, and what they cost together.
    pub(in super::super) fn responses(&self) -> (usize, Usage) {
        (self.responses.len(), self.of_responses)
    }

    pub(in super::super) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Whether the usage covers a run that ended so: its sum was named and nothing came after, the engine counts as it
    /// goes, or it never had an answer. Like the answer that an engine was in the middle of, one that never came costs nothing
    /// here.
    pub(in super::super) fn is_metered(&self, failure: Option<&EngineFailure>) -> bool {
        let counts = self.steps.is_some() || !self.messages.is_empty() || !self.responses.is_empty();
        let unanswered = !self.answered && self.ended != Some(Ok(()));
        let is_known = self.understood || self.format.shows_answers();
        !self.open || counts || (unanswered && (is_known || failure.is_some_and(is_account_refusal)))
    }

    pub(in super::super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub(in super::super) fn reply(&self) -> Option<&str> {
        self.reply.as_deref().map(str::trim).filter(|text| !text.is_empty())
    }

    /// Whether the engine has reported success.
    pub(in super::super) const fn ended_well(&self) -> bool {
        self.spoiled.is_none() && matches!(self.ended, Some(Ok(())))
    }

    /// Whether the run came to nothing because the session to resume is not on this machine.
    pub(in super::super) fn session_is_unknown(&self, stderr_tail: &str) -> bool {
        let text = match (&self.ended, &self.error) {
            (Some(Ok(())), _) => return false,
            (Some(Err(failure)), _) | (None, Some(failure)) => failure.detail.as_str(),
            (None, None) => "",
        };
        names_an_unknown_session(text) || names_an_unknown_session(stderr_tail)
    }

    /// `stderr_tail` are the last lines of standard error.
    pub(in super::super) fn verdict(&self, exit: &Exit, stderr_tail: &str) -> Result<(), EngineFailure> {
        self.judged(exit, stderr_tail).map_err(|failure| match failure.reason {
            FailReason::OutOfQuota => {
                let resets_in = failure.resets_in.or_else(|| resets_in(self.resets_at?));
                EngineFailure { resets_in, ..failure }
            }
            _ => failure,
        })
    }

    fn judged(&self, exit: &Exit, stderr_tail: &str) -> Result<(), EngineFailure> {
        let by_status = exit.code.and_then(|code| self.format.exit_failure(code));
        if let Some(failure) = &self.spoiled {
            return Err(failure.clone());
        }
        match &self.ended {
            Some(Ok(())) => Ok(()),
            Some(Err(failure)) if failure.reason == FailReason::Crash => {
                // The closing message is often vague; what came before it, or the status, may name the cause.
                let cause = self.error.clone().filter(|error| error.reason != FailReason::Crash);
                Err(cause.or(by_status).unwrap_or_else(|| failure.clone()))
            }
            Some(Err(failure)) => Err(failure.clone()),
            None if self.format.exit_decides() => match exit.code {
                Some(0) => Ok(()),
                Some(_) => Err(EngineFailure::lasting(FailReason::Crash, with(&exit.text, stderr_tail))),
                None => Err(EngineFailure::passing(FailReason::Crash, with(&exit.text, stderr_tail))),
            },
            None => Err(by_status
                .map(|failure| EngineFailure { detail: with(&failure.detail, stderr_tail), ..failure })
                .or_else(|| self.error.clone())
                .unwrap_or_else(|| unexplained(exit, stderr_tail))),
        }
    }
}

/// The engine did not report how it ended: its stderr may name the cause; otherwise it crashed, and may not do so again.
fn unexplained(exit: &Exit, stderr_tail: &str) -> EngineFailure {
    let detail = with(&format!("the engine {} without saying that it was done", exit.text), stderr_tail);
    let cause = classify(stderr_tail);
    match cause.reason {
        FailReason::Crash => EngineFailure::passing(FailReason::Crash, detail),
        _ => EngineFailure { detail, ..cause },
    }
}

fn with(what: &str, stderr_tail: &str) -> String {
    if stderr_tail.is_empty() { what.to_owned() } else { format!("{what}: {stderr_tail}") }
}

/// Nothing for a moment that is over.
fn resets_in(unix_seconds: u64) -> Option<Duration> {
    let at = UNIX_EPOCH.checked_add(Duration::from_secs(unix_seconds))?;
    at.duration_since(SystemTime::now()).ok()
}

fn larger(one: Usage, other: Usage) -> Usage {
    Usage { tokens: one.tokens.max(other.tokens), cost: one.cost.max(other.cost) }
}

/// Takes `before` off a sum, unless the sum cannot contain it: then the engine has begun to count anew.
fn without<T: PartialOrd + Sub<Output = T>>(sum: T, before: T) -> T {
    if sum >= before { sum - before } else { sum }
}
