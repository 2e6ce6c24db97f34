//! `giga factory …`

use std::fmt::Write;

use comfy_table::{Cell, Color};
use giga_api::wire::{EnrollRequest, Factory, FactoryAccount, FactoryState, Health};

use super::Done;
use super::context::Context;
use crate::args::{FactoryArg, FactoryCommand};
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, joined, millis, printable, say};

pub(crate) async fn run(command: FactoryCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        FactoryCommand::List => {
            let answer = client.factories().await?;
            let none = "no factories; `giga factory run` turns this machine into one";
            output.list(&answer.json, ("/factories", "/id"), none, || table(&answer.factories, output))
        }
        FactoryCommand::Show(FactoryArg { id }) => {
            let factory = client.factory(&id).await?;
            output.one(&factory.json, "/id", || text(&factory, output))
        }
        FactoryCommand::Enroll { id, products, capabilities } => {
            let answer = client.enroll(&EnrollRequest { factory_id: id, products, capabilities }).await?;
            output.one(&answer.json, "/factory/id", || answer.token.clone())?;
            say(&format!(
                "factory {} is enrolled; its token is shown only this once: on that machine, put it into GIGA_TOKEN or \
                 into a file for --token-file",
                answer.factory.id
            ));
            Ok(())
        }
        FactoryCommand::Drain { id, undo } => {
            let factory = client.drain(&id, undo).await?;
            output.one(&factory.json, "/id", || {
                let holds = match factory.running.len() {
                    _ if undo => String::new(),
                    0 => "; no running jobs".to_owned(),
                    1 => "; finishing 1 job".to_owned(),
                    count => format!("; finishing {count} jobs"),
                };
                format!("{}  {}{holds}", printable(&factory.id), factory.state)
            })
        }
        FactoryCommand::Deregister(FactoryArg { id }) => {
            client.deregister(&id).await?;
            say(&format!(
                "factory {id} was removed and its tokens were revoked; its running jobs are requeued when their leases end"
            ));
            Ok(())
        }
        FactoryCommand::Prune { idle } => {
            let answer = client.prune(&idle).await?;
            output.list(&answer.json, ("/pruned", ""), "no factory has been offline for that long", || {
                answer.pruned.iter().map(|id| printable(id) + "\n").collect()
            })
        }
        FactoryCommand::RotateToken(FactoryArg { id }) => {
            let answer = client.rotate_factory_token(&id).await?;
            output.one(&answer.json, "/token", || answer.token.clone())?;
            say(&format!(
                "the new token is shown only this once; the old one works for another {}",
                millis(answer.old_valid_for_ms)
            ));
            Ok(())
        }
        FactoryCommand::Run(_) => Err(CliError::failed("`factory run` is not a client command")),
        FactoryCommand::RevokeToken(FactoryArg { id }) => {
            client.revoke_factory_tokens(&id).await?;
            say(&format!(
                "all tokens of factory {id} are revoked; `giga factory rotate-token {id}` issues a new one"
            ));
            Ok(())
        }
    }
}

/// One word for what matters most about it.
fn condition(factory: &Factory) -> Cell {
    match (factory.live, factory.state, factory.health) {
        _ if factory.last_seen_at.is_none() => Cell::new("never seen").fg(Color::Yellow),
        (false, ..) => Cell::new("offline").fg(Color::Red),
        (true, FactoryState::Draining, _) => Cell::new(factory.state).fg(Color::Yellow),
        (true, FactoryState::Active, Health::Ok) => Cell::new("online").fg(Color::Green),
        (true, FactoryState::Active, Health::Degraded | Health::Down) => {
            Cell::new(factory.health).fg(Color::Red)
        }
    }
}

/// How jobs reach it, and how they should where that is another way.
fn delivery(factory: &Factory) -> String {
    if factory.delivery == factory.actual_delivery {
        factory.delivery.to_string()
    } else {
        format!("{} (configured: {})", factory.actual_delivery, factory.delivery)
    }
}

fn table(factories: &[Factory], output: &Output) -> String {
    let mut table =
        Columns::new(&["FACTORY", "STATE", "SEATS", "LOAD", "DELIVERY", "CAPABILITIES~", "REPOS~", "SEEN"]);
    for factory in factories {
        let repos: Vec<String> = factory.repos.iter().map(|repo| repo.name.clone()).collect();
        table.row([
            Cell::new(printable(&factory.id)),
            condition(factory),
            Cell::new(format!("{}/{}", factory.seats_used, factory.seat_limit)),
            Cell::new(format!("{:.2}", factory.load)),
            Cell::new(printable(&delivery(factory))),
            Cell::new(printable(&joined(&factory.capabilities))),
            Cell::new(printable(&joined(&repos))),
            Cell::new(factory.last_seen_at.as_deref().map_or("-".to_owned(), |at| ago(at, output.now))),
        ]);
    }
    table.render()
}

/// How far its jobs are shut in, in a line; nothing for a factory that does not say.
fn isolation(advertised: &[String]) -> Option<&'static str> {
    let has = |word: &str| advertised.iter().any(|has| has == word);
    match () {
        () if has("sandbox:none") => Some("not sandboxed: jobs have the rights of the agent"),
        () if !has("sandbox:bwrap") => None,
        () if has("network:none") => Some("sandboxed, no network"),
        () if has("network:list") => Some("sandboxed, listed hosts only"),
        () => Some("sandboxed, open network"),
    }
}

/// `claude open, codex out of quota (opens in 2 h)`.
fn accounts(factory: &Factory, output: &Output) -> String {
    let shown = |account: &FactoryAccount| {
        let opens = account.until.as_deref().map(|at| format!(" (opens {})", ago(at, output.now)));
        format!("{} {}{}", account.engine, account.state.label(), opens.unwrap_or_default())
    };
    factory.accounts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn text(factory: &Factory, output: &Output) -> String {
    let everything =
        |words: &[String]| if words.is_empty() { "every product".to_owned() } else { joined(words) };
    let withheld: Vec<String> =
        factory.advertised.iter().filter(|word| !factory.capabilities.contains(word)).cloned().collect();
    let repos: Vec<String> = factory.repos.iter().map(|repo| repo.name.clone()).collect();
    let seen = match factory.last_seen_at.as_deref().map(|at| ago(at, output.now)) {
        None => "never".to_owned(),
        Some(seen) if factory.live => seen,
        Some(seen) => format!("{seen} (offline)"),
    };
    let facts = [
        ("state", Some(factory.state.to_string())),
        ("health", Some(factory.health.to_string())),
        ("seen", Some(seen)),
        ("seats", Some(format!("{} of {} used", factory.seats_used, factory.seat_limit))),
        ("load", Some(format!("{:.2}", factory.load))),
        ("delivery", Some(delivery(factory))),
        ("products", Some(everything(&factory.products))),
        ("isolation", isolation(&factory.advertised).map(str::to_owned)),
        ("has", Some(joined(&factory.capabilities))),
        (
            "withheld",
            (!withheld.is_empty()).then(|| format!("{} (not allowed by its token)", joined(&withheld))),
        ),
        ("accounts", (!factory.accounts.is_empty()).then(|| accounts(factory, output))),
        ("repos", Some(joined(&repos))),
        ("can clone", Some(if factory.can_clone { "yes" } else { "no" }.to_owned())),
        ("running", Some(joined(&factory.running))),
        ("enrolled", Some(ago(&factory.enrolled_at, output.now))),
    ];
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(&factory.id));
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<9}  {}", printable(&value));
        }
    }
    text
}
