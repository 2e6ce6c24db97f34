//! `giga capability …`

use std::fmt::Write;

use comfy_table::{Cell, Color};
use giga_api::wire::{CapabilityHolder, CapabilityUse};

use super::Done;
use super::context::Context;
use crate::args::CapabilityCommand;
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, joined, or_dash, printable};

pub(crate) async fn run(command: CapabilityCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    let answer = client.capabilities().await?;
    match command {
        CapabilityCommand::List => {
            let none = "no capabilities; they come with factories (`giga factory run`)";
            let keys = ("/capabilities", "/capability");
            output.list(&answer.json, keys, none, || table(&answer.capabilities, output))
        }
        CapabilityCommand::Show { capability } => {
            let at = answer.capabilities.iter().position(|known| known.capability == capability);
            let at = at.ok_or(CliError::NoSuchCapability(capability))?;
            let json = answer.json.pointer(&format!("/capabilities/{at}")).cloned().unwrap_or_default();
            output.one(&json, "/capability", || text(&answer.capabilities[at], output))
        }
    }
}

/// `2 of 4`, or how many factories have it where nobody counts.
fn in_use(known: &CapabilityUse) -> Cell {
    let used: u32 = known.factories.iter().map(|holder| holder.used).sum();
    match known.units {
        Some(units) if used >= units => Cell::new(format!("{used} of {units}")).fg(Color::Yellow),
        Some(units) => Cell::new(format!("{used} of {units}")),
        None => Cell::new("-"),
    }
}

fn table(capabilities: &[CapabilityUse], output: &Output) -> String {
    let mut table =
        Columns::new(&["CAPABILITY", "WAITING", "SINCE", "RUNNING", "IN USE", "ASKED FOR BY~", "FACTORIES~"]);
    for known in capabilities {
        let factories: Vec<String> = known.factories.iter().map(|holder| holder.factory_id.clone()).collect();
        let products: Vec<String> = known.products.iter().map(|demand| demand.product_id.clone()).collect();
        let nobody = known.queued > 0 && !known.factories.iter().any(|holder| holder.available);
        let waiting = Cell::new(or_dash((known.queued > 0).then_some(known.queued)));
        table.row([
            Cell::new(printable(&known.capability)),
            if nobody { waiting.fg(Color::Red) } else { waiting },
            Cell::new(known.oldest_enqueued_at.as_deref().map_or("-".to_owned(), |at| ago(at, output.now))),
            Cell::new(or_dash((known.running > 0).then_some(known.running))),
            in_use(known),
            Cell::new(printable(&joined(&products))),
            Cell::new(printable(&joined(&factories))),
        ]);
    }
    table.render()
}

fn text(known: &CapabilityUse, output: &Output) -> String {
    let waiting = match known.oldest_enqueued_at.as_deref() {
        Some(at) => format!("{}, the first since {at} ({})", known.queued, ago(at, output.now)),
        None => "no jobs".to_owned(),
    };
    let holder = |holder: &CapabilityHolder| {
        let offline = if holder.available { "" } else { ", takes no jobs now" };
        match holder.units {
            Some(units) => format!("{} ({} of {units} in use{offline})", holder.factory_id, holder.used),
            None => format!("{}{offline}", holder.factory_id),
        }
    };
    let factories: Vec<String> = known.factories.iter().map(holder).collect();
    let products: Vec<String> = known
        .products
        .iter()
        .map(|demand| format!("{} ({} running, {} queued)", demand.product_id, demand.running, demand.queued))
        .collect();
    let facts = [
        ("waiting", waiting),
        ("running", known.running.to_string()),
        ("factories", if factories.is_empty() { "none has it".to_owned() } else { factories.join("; ") }),
        ("asked for by", if products.is_empty() { "-".to_owned() } else { products.join("; ") }),
    ];
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(&known.capability));
    for (name, value) in facts {
        let _ = writeln!(text, "  {name:<12}  {}", printable(&value));
    }
    text
}
