//! The accounts that engines are signed in with, and how much of their windows is left.
//!
//! A provider closes an account, not a machine: the same login on two factories is one account, known by a fingerprint
//! that says nothing about the credential. Deadlines are the coordinator's: a factory says how long something takes.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::AccountId;
use crate::word::words;
use crate::{Access, Factory, Timestamp};

words! {
    "account state",
    #[derive(Default)]
    pub enum AccountState {
        #[default]
        Open,
        /// A window of its provider is used up; it opens again by itself.
        OutOfQuota,
        /// Somebody has to sign in, or to renew its key.
        SignedOut,
    }
}

impl AccountState {
    /// What people read for it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::OutOfQuota => "out of quota",
            Self::SignedOut => "signed out",
        }
    }
}

/// What a provider counts by, such as five hours or a week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountWindow {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

/// The login of one engine on one factory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    pub engine: String,
    pub account: AccountId,
    #[serde(default)]
    pub state: AccountState,
    /// Of one that is out of quota: when it opens again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<AccountWindow>,
}

/// Two reports of the same deadline differ by the time that they took to arrive.
const SAME_DEADLINE: Duration = Duration::from_secs(2);

impl Account {
    /// Keeps the deadlines of `known` where this says the same again: what says nothing new is not written.
    #[must_use]
    pub fn or_as_known(mut self, known: Option<&Self>) -> Self {
        let Some(known) = known else { return self };
        if self.state == known.state {
            keep(&mut self.until, known.until);
        }
        for window in &mut self.windows {
            if let Some(before) = known.windows.iter().find(|before| before.name == window.name) {
                keep(&mut window.resets_at, before.resets_at);
            }
        }
        self
    }

    /// Closed at `now` by what its own factory says.
    pub fn closed_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.until.filter(|until| self.state == AccountState::OutOfQuota && *until > now)
    }
}

fn keep(new: &mut Option<Timestamp>, known: Option<Timestamp>) {
    if let (Some(at), Some(before)) = (*new, known)
        && at.since(before).max(before.since(at)) <= SAME_DEADLINE
    {
        *new = known;
    }
}

/// Which accounts of a fleet are used up at a moment, and until when: closed by one factory, closed for all.
#[derive(Debug, Clone, Default)]
pub struct ClosedAccounts<'a>(HashMap<&'a AccountId, Timestamp>);

impl<'a> ClosedAccounts<'a> {
    pub fn at(factories: impl IntoIterator<Item = &'a Factory>, now: Timestamp) -> Self {
        let mut closed: HashMap<&AccountId, Timestamp> = HashMap::new();
        for account in factories.into_iter().flat_map(|factory| &factory.advertised.accounts) {
            if let Some(until) = account.closed_until(now) {
                let known = closed.entry(&account.account).or_insert(until);
                *known = until.max(*known);
            }
        }
        Self(closed)
    }

    /// Whether the account can be given work.
    pub fn access(&self, account: &Account) -> Access {
        match (account.state, self.0.get(&account.account)) {
            (AccountState::SignedOut, _) => Access::SignedOut,
            (_, Some(&until)) => Access::OutOfQuota { until },
            // Its deadline has passed, or it was never closed.
            (_, None) => Access::Open,
        }
    }

    /// The engines of a factory that can be given nothing now.
    pub fn closed_on(&self, factory: &Factory) -> Vec<ClosedEngine> {
        let closed = |account: &Account| {
            let access = self.access(account);
            (access != Access::Open).then(|| ClosedEngine {
                engine: account.engine.clone(),
                account: account.account.clone(),
                access,
            })
        };
        factory.advertised.accounts.iter().filter_map(closed).collect()
    }

    /// When the next one opens by itself.
    pub fn next_opening(&self) -> Option<Timestamp> {
        self.0.values().min().copied()
    }
}

/// An engine of a factory whose account takes no work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEngine {
    pub engine: String,
    pub account: AccountId,
    pub access: Access,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn account(state: AccountState, until: Option<i64>) -> Account {
        Account {
            engine: "claude".to_owned(),
            account: "0123456789ab".parse().unwrap(),
            state,
            until: until.map(at),
            windows: vec![AccountWindow {
                name: "five_hour".to_owned(),
                used_percent: Some(100),
                resets_at: until.map(at),
            }],
        }
    }

    #[test]
    fn a_deadline_that_is_reported_again_is_the_same_one() {
        let known = account(AccountState::OutOfQuota, Some(100));
        assert_eq!(account(AccountState::OutOfQuota, Some(101)).or_as_known(Some(&known)), known);
        let later = account(AccountState::OutOfQuota, Some(160));
        assert_eq!(later.clone().or_as_known(Some(&known)), later);
        let open = account(AccountState::Open, None);
        assert_eq!(open.clone().or_as_known(Some(&known)), open);
    }

    #[test]
    fn one_that_is_out_of_quota_opens_by_the_clock() {
        let closed = account(AccountState::OutOfQuota, Some(100));
        assert_eq!(closed.closed_until(at(99)), Some(at(100)));
        assert_eq!(closed.closed_until(at(100)), None);
        assert_eq!(account(AccountState::Open, Some(100)).closed_until(at(1)), None);
    }
}
