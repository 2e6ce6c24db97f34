//! The accounts that this machine's engines use: which are open, which have to wait, and how much of their windows is
//! left, as their engines report it.
//!
//! Nothing here asks a provider. An account that failed is left alone until its provider's time, or for longer and longer
//! where none was named. What is closed is kept for the next start. Which engines are signed out is for the roster to know.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use giga_api::wire::{AccountReport, AccountState, WindowReport};
use giga_domain::{Access, AccountId, EngineHere, FailReason, Timestamp};
use parking_lot::Mutex;

use super::closed::{Closed, ClosedAccount, ClosedFile};
use crate::engines::{Engine, EngineFailure, Login, QuotaWindow};

/// How long an account is left alone that is out of quota and does not say until when; doubled each time in a row.
const FIRST_WAIT: Duration = Duration::from_mins(5);
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// A provider that lets an account in again "in 0 seconds" means a moment later.
const SHORTEST_WAIT: Duration = Duration::from_secs(10);
/// The coordinator is told to wait a little longer than this machine does, so that what it sends here is taken.
const MARGIN: Duration = Duration::from_secs(5);
/// Used windows are told in steps, so that a busy account is not news with every heartbeat.
const PERCENT_STEP: u8 = 5;

pub(super) struct Accounts {
    known: Mutex<KnownAccounts>,
    /// For logins that nothing names: they are of this machine alone.
    instance: String,
}

struct KnownAccounts {
    by_engine: BTreeMap<String, Account>,
    file: ClosedFile,
}

/// An engine, and whether its account was refused.
type Known = (Arc<dyn Engine>, bool);

#[derive(Debug)]
struct Account {
    id: AccountId,
    closed: Option<Closed>,
    /// How often it was out of quota since its last success.
    strikes: u32,
    windows: Vec<QuotaWindow>,
}

/// By this machine's clock; only lengths leave it.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl KnownAccounts {
    fn keep(&mut self) {
        let closed = |(engine, account): (&String, &Account)| {
            Some(ClosedAccount {
                engine: engine.clone(),
                account: account.id.clone(),
                closed: account.closed?,
                strikes: account.strikes,
            })
        };
        self.file.keep(self.by_engine.iter().filter_map(closed).collect());
    }
}

impl Accounts {
    /// `base`: the factory's folder.
    pub(super) fn open(base: &Path, instance: &str, now: Timestamp) -> Self {
        let (file, kept) = ClosedFile::open(base, now);
        let account = |kept: ClosedAccount| {
            let mut account = Account::new(kept.account);
            (account.closed, account.strikes) = (Some(kept.closed), kept.strikes);
            (kept.engine, account)
        };
        let by_engine = kept.into_iter().map(account).collect();
        Self { known: Mutex::new(KnownAccounts { by_engine, file }), instance: instance.to_owned() }
    }

    /// Who is signed in may have changed: another account is not closed because the last one was. The clock may have, too.
    fn look_again(&self, engines: &[Known], now: Timestamp) {
        let mut known = self.known.lock();
        for (engine, _) in engines {
            let id = match engine.login() {
                Login::Unneeded => continue,
                Login::Known(id) => id,
                Login::Unnamed => {
                    AccountId::fingerprint(engine.name(), format!("machine {}", self.instance).as_bytes())
                }
            };
            match known.by_engine.get_mut(engine.name()).filter(|account| account.id == id) {
                Some(account) => account.open_when_over(now),
                None => {
                    known.by_engine.insert(engine.name().to_owned(), Account::new(id));
                }
            }
        }
        known.keep();
    }

    /// The engines in their order, and whether each can be given work.
    pub(super) fn here<'a>(&self, engines: &'a [Known], now: Timestamp) -> Vec<EngineHere<'a>> {
        self.look_again(engines, now);
        let known = self.known.lock();
        let here = |(engine, refused): &'a Known| {
            let open = Access::Open;
            let access =
                known.by_engine.get(engine.name()).map_or(open, |account| account.access(*refused, now));
            EngineHere { name: engine.name(), access }
        };
        engines.iter().map(here).collect()
    }

    /// A run failed. Whether its account is why is in the reason.
    pub(super) fn failed(&self, engine: &str, failure: &EngineFailure, now: Timestamp) {
        let mut known = self.known.lock();
        let Some(account) = known.by_engine.get_mut(engine) else { return };
        if failure.reason != FailReason::OutOfQuota {
            return;
        }
        // Runs that were under way when it closed say nothing new, but for a later time.
        account.open_when_over(now);
        let was_open = account.closed.is_none();
        if !was_open && failure.resets_in.is_none() {
            return;
        }
        let wait = failure.resets_in.unwrap_or_else(|| doubled(FIRST_WAIT, account.strikes, LONGEST_WAIT));
        let mut closed = Closed::for_length(wait.max(SHORTEST_WAIT), now);
        tracing::warn!(
            engine,
            until = closed.until(now).map(tracing::field::display),
            "the account is out of quota"
        );
        account.closed = Some(closed);
        if was_open {
            account.strikes = account.strikes.saturating_add(1);
        }
        known.keep();
    }

    /// A run succeeded. One that was under way when its account closed does not open it.
    pub(super) fn succeeded(&self, engine: &str, now: Timestamp) {
        let mut known = self.known.lock();
        if let Some(account) = known.by_engine.get_mut(engine) {
            account.open_when_over(now);
            if account.closed.is_none() {
                account.strikes = 0;
            }
            known.keep();
        }
    }

    /// How much of them is used, as the engine reports while it runs.
    pub(super) fn used(&self, engine: &str, windows: Vec<QuotaWindow>) {
        let mut known = self.known.lock();
        let Some(account) = known.by_engine.get_mut(engine) else { return };
        for window in windows {
            match account.windows.iter_mut().find(|known| known.name == window.name) {
                Some(known) => *known = window,
                None => account.windows.push(window),
            }
        }
        account.windows.truncate(giga_domain::limits::ACCOUNT_WINDOWS);
    }

    /// For the coordinator.
    pub(super) fn reports(&self, engines: &[Known], now: Timestamp) -> Vec<AccountReport> {
        self.look_again(engines, now);
        let known = self.known.lock();
        let report = |(engine, refused): &Known| {
            Some(known.by_engine.get(engine.name())?.report(engine.name(), *refused, now))
        };
        engines.iter().filter_map(report).collect()
    }
}

impl Account {
    fn new(id: AccountId) -> Self {
        Self { id, closed: None, strikes: 0, windows: Vec::new() }
    }

    fn open_when_over(&mut self, now: Timestamp) {
        if self.closed.as_mut().is_some_and(|closed| closed.until(now).is_none()) {
            self.closed = None;
        }
    }

    fn access(&self, refused: bool, now: Timestamp) -> Access {
        match self.closed.and_then(|mut closed| closed.until(now)) {
            _ if refused => Access::SignedOut,
            Some(until) => Access::OutOfQuota { until },
            None => Access::Open,
        }
    }

    fn report(&self, engine: &str, refused: bool, now: Timestamp) -> AccountReport {
        let (state, opens_in) = match self.access(refused, now) {
            Access::Open => (AccountState::Open, None),
            Access::OutOfQuota { until } => (AccountState::OutOfQuota, Some(until.since(now) + MARGIN)),
            Access::SignedOut => (AccountState::SignedOut, None),
        };
        let window = |window: &QuotaWindow| WindowReport {
            name: window.name.clone(),
            used_percent: window.used_percent.map(|percent| percent.min(100) / PERCENT_STEP * PERCENT_STEP),
            resets_in_ms: window.resets_at.filter(|at| *at > now).map(|at| millis(at.since(now))),
        };
        AccountReport {
            engine: engine.to_owned(),
            account: self.id.to_string(),
            state,
            opens_in_ms: opens_in.map(millis),
            // One whose window is over says nothing about the next.
            windows: self
                .windows
                .iter()
                .filter(|w| w.resets_at.is_none_or(|at| at > now))
                .map(window)
                .collect(),
        }
    }
}

fn doubled(first: Duration, times: u32, most: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(most)
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use giga_domain::EngineChoice;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::engines::{EngineEvent, EngineReport, EngineRequest, Inbox, Preflight};

    #[derive(Debug)]
    struct Named(&'static str, Login);

    #[async_trait]
    impl Engine for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn login(&self) -> Login {
            self.1.clone()
        }

        async fn preflight(&self) -> Preflight {
            Preflight::Ready { version: None }
        }

        async fn run(
            &self,
            _: EngineRequest,
            _: mpsc::Sender<EngineEvent>,
            _: Inbox,
            _: CancellationToken,
        ) -> EngineReport {
            unreachable!("nobody runs it here")
        }
    }

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn engines() -> Vec<Known> {
        let login = |key: &[u8]| Login::Known(AccountId::fingerprint("anthropic", key));
        vec![
            (Arc::new(Named("shell", Login::Unneeded)), false),
            (Arc::new(Named("claude", login(b"key"))), false),
            (Arc::new(Named("codex", Login::Unnamed)), false),
        ]
    }

    /// In a folder that goes at once: what is kept there is of no interest.
    fn of(engines: &[Known], instance: &str) -> Accounts {
        let base = tempfile::tempdir().unwrap();
        let accounts = Accounts::open(base.path(), instance, NOW);
        accounts.look_again(engines, NOW);
        accounts
    }

    fn out(resets_in: Option<u64>) -> EngineFailure {
        let failure = EngineFailure::passing(FailReason::OutOfQuota, "used up");
        EngineFailure { resets_in: resets_in.map(Duration::from_secs), ..failure }
    }

    fn after(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    #[test]
    fn an_account_is_left_alone_until_its_provider_lets_it_in_again() {
        let engines = engines();
        let accounts = of(&engines, "i-1");
        accounts.failed("claude", &out(Some(600)), NOW);
        let reports = accounts.reports(&engines, after(10));
        let said: Vec<_> = reports.iter().map(|r| (r.engine.as_str(), r.state, r.opens_in_ms)).collect();
        assert_eq!(
            said,
            [("claude", AccountState::OutOfQuota, Some(595_000)), ("codex", AccountState::Open, None)]
        );
        assert_eq!(reports[0].account, AccountId::fingerprint("anthropic", b"key").to_string());
        let taken = |at| {
            let here = accounts.here(&engines, at);
            EngineChoice::ANY.choose(&here).map(|chosen| chosen.engine.to_owned())
        };
        assert_eq!(taken(after(599)).unwrap(), "codex");
        assert_eq!(taken(after(600)).unwrap(), "claude");
    }

    #[test]
    fn a_restart_remembers_what_is_closed_and_how_often_it_was() {
        let (engines, base) = (engines(), tempfile::tempdir().unwrap());
        let restarted = |at| {
            let accounts = Accounts::open(base.path(), "i-1", at);
            accounts.look_again(&engines, at);
            accounts
        };
        let opens_in = |accounts: &Accounts, at| accounts.reports(&engines, at)[0].opens_in_ms;
        let first = restarted(NOW);
        first.failed("claude", &out(Some(600)), NOW);
        let second = restarted(after(100));
        assert_eq!(opens_in(&second, after(100)), Some(505_000));
        assert_eq!(opens_in(&second, after(600)), None);
        second.failed("claude", &out(None), after(700));
        let third = restarted(after(701));
        assert_eq!(opens_in(&third, after(701)), Some((600 - 1 + 5) * 1000), "the second time in a row");
        let mut others = engines.clone();
        others[1].0 = Arc::new(Named("claude", Login::Known(AccountId::fingerprint("anthropic", b"other"))));
        assert_eq!(third.reports(&others, after(702))[0].state, AccountState::Open);
        assert_eq!(opens_in(&restarted(after(703)), after(703)), None, "another login was there meanwhile");
        third.failed("claude", &out(Some(600)), after(704));
        third.succeeded("claude", after(2_000));
        assert_eq!(opens_in(&restarted(NOW), NOW), None, "it has opened");
    }

    #[test]
    fn without_a_time_it_waits_longer_each_time_and_a_success_forgets_that() {
        let engines = engines();
        let accounts = of(&engines, "i-1");
        // A day later each time, when it is open again.
        let wait = |day: u64| {
            let now = after(day * 86_400);
            accounts.failed("claude", &out(None), now);
            accounts.failed("claude", &out(None), now);
            accounts.reports(&engines, now)[0].opens_in_ms.unwrap() / 60_000
        };
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(wait),
            [5, 10, 20, 40, 60, 60],
            "two runs that fail together count once"
        );
        accounts.succeeded("claude", after(5 * 86_400));
        assert_eq!(accounts.reports(&engines, after(5 * 86_400))[0].state, AccountState::OutOfQuota);
        accounts.succeeded("claude", after(6 * 86_400));
        assert_eq!(wait(6), 5);
    }

    #[test]
    fn one_that_was_refused_is_signed_out_whatever_its_quota() {
        let mut engines = engines();
        let accounts = of(&engines, "i-1");
        accounts.failed("claude", &out(Some(600)), NOW);
        engines[1].1 = true;
        assert_eq!(accounts.here(&engines, NOW)[1].access, Access::SignedOut);
        let report = &accounts.reports(&engines, NOW)[0];
        assert_eq!((report.state, report.opens_in_ms), (AccountState::SignedOut, None));
    }

    #[test]
    fn another_login_is_another_account() {
        let mut engines = engines();
        let accounts = of(&engines, "i-1");
        accounts.failed("claude", &out(Some(600)), NOW);
        let other = AccountId::fingerprint("anthropic", b"another");
        engines[1].0 = Arc::new(Named("claude", Login::Known(other.clone())));
        let report = &accounts.reports(&engines, NOW)[0];
        assert_eq!((report.account.as_str(), report.state), (other.as_str(), AccountState::Open));
        let unnamed = |instance| of(&engines, instance).reports(&engines, NOW)[1].account.clone();
        assert_ne!(unnamed("i-1"), unnamed("i-2"), "nobody knows whether they are the same");
    }

    #[test]
    fn windows_are_told_in_steps_and_forgotten_when_they_are_over() {
        let engines = engines();
        let accounts = of(&engines, "i-1");
        let window = |percent, resets_at| QuotaWindow {
            name: "five_hour".to_owned(),
            used_percent: Some(percent),
            resets_at: Some(resets_at),
        };
        accounts.used("claude", vec![window(41, after(100))]);
        accounts.used("claude", vec![window(44, after(100))]);
        let told = &accounts.reports(&engines, NOW)[0].windows;
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].used_percent, told[0].resets_in_ms), (Some(40), Some(100_000)));
        assert!(accounts.reports(&engines, after(100))[0].windows.is_empty());
    }
}
