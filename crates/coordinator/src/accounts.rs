//! The accounts of engines over the whole fleet: one login on several factories is one account.
//!
//! What factories report is kept with each of them; what is closed, and until when, is worked out from all of it whenever
//! somebody asks. Nothing is opened by hand: a deadline passes, or the factory that closed it says otherwise.

use std::collections::BTreeMap;

use giga_domain::{
    Access, Account, AccountId, AccountState, AccountWindow, ClosedAccounts, Factory, FactoryId, JobId,
    Timestamp,
};
use giga_ports::store::Advertise;
use giga_scheduler::{Snapshot, runs_but_for};

use crate::view::{ViewState, Whom};
use crate::{Coordinator, Error, Sight};

/// How many of the jobs that wait for an account are named.
const WAITING_SHOWN: usize = 20;

/// An account as the fleet has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountView {
    pub account: AccountId,
    pub engines: Vec<String>,
    pub state: AccountState,
    pub until: Option<Timestamp>,
    pub windows: Vec<AccountWindow>,
    pub factories: Vec<FactoryId>,
    /// Queued jobs that could run if it were open.
    pub waiting: usize,
    /// The first of them.
    pub waiting_jobs: Vec<JobId>,
}

impl ViewState {
    pub(crate) fn closed_accounts(&self, now: Timestamp) -> ClosedAccounts<'_> {
        ClosedAccounts::at(self.factories.values(), now)
    }
}

impl Coordinator {
    /// The time by which deadlines are judged.
    pub fn store_time(&self) -> Timestamp {
        self.core.store_now()
    }

    /// What the factory says of its accounts, beside its heartbeats: with a run that one of them ended. Written before the
    /// job goes back to the queue, so that nobody is sent there again.
    pub async fn report_accounts(&self, id: &FactoryId, accounts: Vec<Account>) -> Result<(), Error> {
        let Some(known) = self.fleet.view.lock().factories.get(id).cloned() else { return Ok(()) };
        let accounts = as_known(accounts, &known);
        if accounts == known.advertised.accounts {
            return Ok(());
        }
        let mut advertised = known.advertised;
        advertised.accounts = accounts;
        self.core.store.advertise(Advertise { factory: id.clone(), advertised }).await?;
        Ok(self.fleet.refresh().await?)
    }

    /// Whether the account of a factory's engine takes work, by what the whole fleet knows.
    pub fn access(&self, account: &Account) -> Access {
        let now = self.core.store_now();
        self.fleet.view.lock().closed_accounts(now).access(account)
    }

    /// By id, from what a caller may see.
    pub async fn accounts_for(&self, sight: &Sight) -> Result<Vec<AccountView>, Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        state.queue.settle(now);
        let closed = state.closed_accounts(now);
        let mut accounts: BTreeMap<AccountId, AccountView> = BTreeMap::new();
        for factory in state.factories.values().filter(|factory| sight.meets(&factory.scope.products)) {
            for account in &factory.advertised.accounts {
                let view =
                    accounts.entry(account.account.clone()).or_insert_with(|| AccountView::new(account));
                view.add(factory, account, closed.access(account));
            }
        }
        let mut snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
        sight.cut(&mut snapshot, &state.tenants, None);
        for view in accounts.values_mut().filter(|view| view.state != AccountState::Open) {
            view.count_waiting(&state, &snapshot, sight);
        }
        Ok(accounts.into_values().collect())
    }
}

/// Deadlines that were reported before stay as they are.
pub(crate) fn as_known(accounts: Vec<Account>, known: &Factory) -> Vec<Account> {
    let settle = |account: Account| {
        let before = &known.advertised.accounts;
        let before = before.iter().find(|b| (&b.engine, &b.account) == (&account.engine, &account.account));
        account.or_as_known(before)
    };
    accounts.into_iter().map(settle).collect()
}

impl AccountView {
    fn new(account: &Account) -> Self {
        Self {
            account: account.account.clone(),
            engines: Vec::new(),
            state: AccountState::Open,
            until: None,
            windows: Vec::new(),
            factories: Vec::new(),
            waiting: 0,
            waiting_jobs: Vec::new(),
        }
    }

    fn add(&mut self, factory: &Factory, account: &Account, access: Access) {
        if !self.engines.contains(&account.engine) {
            self.engines.push(account.engine.clone());
        }
        if !self.factories.contains(&factory.id) {
            self.factories.push(factory.id.clone());
        }
        for window in &account.windows {
            match self.windows.iter_mut().find(|known| known.name == window.name) {
                // Whoever used it last knows most.
                Some(known) if known.used_percent < window.used_percent => *known = window.clone(),
                Some(_) => {}
                None => self.windows.push(window.clone()),
            }
        }
        match access {
            Access::OutOfQuota { until } => {
                self.state = AccountState::OutOfQuota;
                self.until = Some(until);
            }
            Access::SignedOut if self.state == AccountState::Open => self.state = AccountState::SignedOut,
            Access::SignedOut | Access::Open => {}
        }
    }

    fn count_waiting(&mut self, state: &ViewState, snapshot: &Snapshot, sight: &Sight) {
        for shape in state.queue.summaries().filter(|shape| sight.allows(&shape.representative.product)) {
            if runs_but_for(shape.representative, snapshot, &self.account) {
                self.waiting += shape.count;
                self.waiting_jobs.push(shape.representative.id);
            }
        }
        self.waiting_jobs.sort_unstable();
        self.waiting_jobs.truncate(WAITING_SHOWN);
    }
}
