//! `giga flags …`

use giga_api::wire::{Flag, Shadow};
use serde_json::Value;

use super::Done;
use super::context::Context;
use crate::args::FlagsCommand;
use crate::output::{Columns, printable, say};

pub(crate) async fn run(command: FlagsCommand, context: &Context) -> Done {
    let client = context.client()?;
    match command {
        FlagsCommand::List => {
            let answer = client.flags().await?;
            context.output.list(&answer.json, ("/flags", "/name"), "no flags", || table(&answer.flags))?;
            if answer.flags.iter().any(is_shadow) {
                say(&divergence(&*client.shadow().await?));
            }
            Ok(())
        }
        FlagsCommand::Set { name, value } => {
            // What is not JSON is a word; whether either fits, the coordinator knows.
            let value = serde_json::from_str(&value).unwrap_or(Value::String(value));
            let flag = client.set_flag(&name, value).await?;
            context
                .output
                .one(&flag.json, "/name", || printable(&format!("{} = {}", flag.name, flag.value.value)))
        }
    }
}

fn is_shadow(flag: &Flag) -> bool {
    flag.name.starts_with("delivery") && flag.value == "shadow"
}

/// How far the plans and the polling are apart, in a line.
fn divergence(shadow: &Shadow) -> String {
    let counts = format!(
        "shadow: {} jobs claimed where the dispatcher would have sent them, {} elsewhere",
        shadow.agreements, shadow.divergences
    );
    match shadow.recent.first() {
        None => counts,
        Some(last) => printable(&format!(
            "{counts}; the latest of those: {} for {}, claimed by {}",
            last.job_id, last.routed_to, last.claimed_by
        )),
    }
}

fn table(flags: &[Flag]) -> String {
    let mut table = Columns::new(&["FLAG", "VALUE", "DEFAULT", "ACCEPTS~", "MEANING~"]);
    for flag in flags {
        let value = if flag.is_default { flag.value.to_string() } else { format!("{} (set)", flag.value) };
        let cells = [&flag.name, &value, &flag.default.to_string(), &flag.takes, &flag.about];
        table.row(cells.map(|text| printable(text)));
    }
    table.render()
}
