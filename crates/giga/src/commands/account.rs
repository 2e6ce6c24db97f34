//! `giga account …`

use std::fmt::Write;

use comfy_table::{Cell, Color};
use giga_api::wire::{Account, AccountState, AccountWindow};

use super::Done;
use super::context::Context;
use crate::args::AccountCommand;
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, joined, or_dash, printable};

pub(crate) async fn run(command: AccountCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    let answer = client.accounts().await?;
    match command {
        AccountCommand::List => {
            let none =
                "no accounts; they come with the engines of factories (`giga doctor` on their machines)";
            output.list(&answer.json, ("/accounts", "/account"), none, || table(&answer.accounts, output))
        }
        AccountCommand::Show { account } => {
            let at = answer.accounts.iter().position(|known| known.account == account);
            let at = at.ok_or(CliError::NoSuchAccount(account))?;
            let json = answer.json.pointer(&format!("/accounts/{at}")).cloned().unwrap_or_default();
            output.one(&json, "/account", || text(&answer.accounts[at], output))
        }
    }
}

fn state(account: &Account) -> Cell {
    let color = match account.state {
        AccountState::Open => Color::Green,
        AccountState::OutOfQuota => Color::Yellow,
        AccountState::SignedOut => Color::Red,
    };
    Cell::new(account.state.label()).fg(color)
}

fn table(accounts: &[Account], output: &Output) -> String {
    let mut table =
        Columns::new(&["ACCOUNT", "ENGINE", "STATE", "UNTIL", "WAITING", "WINDOWS~", "FACTORIES~"]);
    for account in accounts {
        let windows: Vec<String> = account.windows.iter().map(|window| used(window, output)).collect();
        table.row([
            Cell::new(printable(&account.account)),
            Cell::new(printable(&joined(&account.engines))),
            state(account),
            Cell::new(account.until.as_deref().map_or("-".to_owned(), |at| ago(at, output.now))),
            Cell::new(or_dash((account.waiting > 0).then_some(account.waiting))),
            Cell::new(printable(&joined(&windows))),
            Cell::new(printable(&joined(&account.factories))),
        ]);
    }
    table.render()
}

/// `five_hour 80 %, resets in 2 h`.
fn used(window: &AccountWindow, output: &Output) -> String {
    let mut text = window.name.clone();
    if let Some(percent) = window.used_percent {
        let _ = write!(text, " {percent} %");
    }
    if let Some(at) = &window.resets_at {
        let _ = write!(text, ", resets {}", ago(at, output.now));
    }
    text
}

fn text(account: &Account, output: &Output) -> String {
    let until = account.until.as_deref().map(|at| format!(" until {at} ({})", ago(at, output.now)));
    let word = match account.state {
        AccountState::SignedOut => "signed out: sign in on its machines (`giga doctor` says how)",
        state => state.label(),
    };
    let windows: Vec<String> = account.windows.iter().map(|window| used(window, output)).collect();
    let waiting = match account.waiting {
        0 => "no jobs".to_owned(),
        count => format!("{count}, such as {}", joined(&account.waiting_jobs)),
    };
    let facts = [
        ("state", format!("{word}{}", until.unwrap_or_default())),
        ("engine", joined(&account.engines)),
        ("factories", joined(&account.factories)),
        ("windows", if windows.is_empty() { "-".to_owned() } else { windows.join("; ") }),
        ("waiting for it", waiting),
    ];
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(&account.account));
    for (name, value) in facts {
        let _ = writeln!(text, "  {name:<15}  {}", printable(&value));
    }
    text
}
