//! The accounts of engines: what factories report of them, and what people see.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use giga_api::wire;
use giga_coordinator::AccountView;
use giga_domain::{Account, AccountWindow, Capability, EngineUse, NotUsed, PassedOver, Timestamp, limits};

use super::Answer;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::request::check;

/// No window of a provider is longer.
const MOST_WAIT: Duration = Duration::from_hours(24 * 92);

pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer<Json<wire::AccountList>> {
    let accounts = app.coordinator.accounts_for(&caller.sight()).await?;
    Ok(Json(wire::AccountList { accounts: accounts.into_iter().map(shown).collect() }))
}

fn shown(view: AccountView) -> wire::Account {
    let window = |window: AccountWindow| wire::AccountWindow {
        name: window.name,
        used_percent: window.used_percent,
        resets_at: window.resets_at.map(|at| at.to_string()),
    };
    wire::Account {
        account: view.account.to_string(),
        engines: view.engines,
        state: view.state.into(),
        until: view.until.map(|at| at.to_string()),
        windows: view.windows.into_iter().map(window).collect(),
        factories: view.factories.iter().map(ToString::to_string).collect(),
        waiting: view.waiting as u64,
        waiting_jobs: view.waiting_jobs.iter().map(ToString::to_string).collect(),
    }
}

/// What a factory says of its logins at `now`.
pub(super) fn reported(given: Vec<wire::AccountReport>, now: Timestamp) -> Answer<Vec<Account>> {
    check::at_most("accounts", given.len(), limits::ACCOUNTS)?;
    given.into_iter().enumerate().map(|(index, report)| account(index, report, now)).collect()
}

fn account(index: usize, report: wire::AccountReport, now: Timestamp) -> Answer<Account> {
    let field = |name: &str| format!("accounts[{index}].{name}");
    engine(&field("engine"), &report.engine)?;
    check::at_most(&field("windows"), report.windows.len(), limits::ACCOUNT_WINDOWS)?;
    let is_out = report.state == wire::AccountState::OutOfQuota;
    if is_out != report.opens_in_ms.is_some() {
        let message = "it goes with the state out_of_quota, and that state with it";
        return Err(Problem::field(field("opensInMs"), message));
    }
    let windows = report.windows.into_iter().map(|window| {
        check::name(&field("windows.name"), &window.name, limits::NAME_CHARS)?;
        check::in_range(&field("windows.usedPercent"), window.used_percent.unwrap_or(0), 0, 100)?;
        Ok(AccountWindow {
            name: window.name,
            used_percent: window.used_percent,
            resets_at: later(&field("windows.resetsInMs"), window.resets_in_ms, now)?,
        })
    });
    Ok(Account {
        windows: windows.collect::<Answer<_>>()?,
        account: check::id(&field("account"), &report.account)?,
        until: later(&field("opensInMs"), report.opens_in_ms, now)?,
        state: report.state.into(),
        engine: report.engine,
    })
}

/// What the holder says of the engine that it starts the run with.
pub(super) fn engine_use(request: &wire::PatchRequest, now: Timestamp) -> Answer<Option<EngineUse>> {
    let Some(name) = &request.engine else {
        let alone = [("model", request.model.is_some()), ("passedOver", !request.passed_over.is_empty())];
        return match alone.into_iter().find(|(_, is_set)| *is_set) {
            Some((field, _)) => Err(Problem::field(field, "it goes with `engine`")),
            None => Ok(None),
        };
    };
    if request.stage != Some(wire::Stage::Building) {
        return Err(Problem::field("engine", "it goes with the stage building, which starts the run"));
    }
    engine("engine", name)?;
    check::optional_text("model", request.model.as_ref(), limits::NAME_CHARS)?;
    check::at_most("passedOver", request.passed_over.len(), limits::JOB_ENGINES.max(limits::ACCOUNTS))?;
    let passed_over = request.passed_over.iter().enumerate().map(|(index, passed)| {
        engine(&format!("passedOver[{index}].engine"), &passed.engine)?;
        let until = later(&format!("passedOver[{index}].opensInMs"), passed.opens_in_ms, now)?;
        let why = match passed.reason {
            wire::EngineNotUsed::Missing => NotUsed::Missing,
            wire::EngineNotUsed::SignedOut => NotUsed::SignedOut,
            wire::EngineNotUsed::OutOfQuota => NotUsed::OutOfQuota { until },
        };
        Ok(PassedOver::new(&passed.engine, why))
    });
    let passed_over = passed_over.collect::<Answer<_>>()?;
    Ok(Some(EngineUse { engine: name.clone(), model: request.model.clone(), passed_over }))
}

fn engine(field: &str, name: &str) -> Answer<()> {
    let legal = name != Capability::ANY_ENGINE && Capability::engine(name).is_ok();
    if legal {
        Ok(())
    } else {
        Err(Problem::field(field, "it must be the name of an engine, such as claude"))
    }
}

fn later(field: &str, in_ms: Option<u64>, now: Timestamp) -> Answer<Option<Timestamp>> {
    let most = u64::try_from(MOST_WAIT.as_millis()).unwrap_or(u64::MAX);
    check::in_range(field, in_ms.unwrap_or(0), 0, most)?;
    Ok(in_ms.map(|ms| now.plus(Duration::from_millis(ms))))
}
