//! `giga flags …`

use giga_api::wire::Flag;
use serde_json::Value;

use super::Done;
use super::context::Context;
use crate::args::FlagsCommand;
use crate::output::{Columns, printable};

pub(crate) async fn run(command: FlagsCommand, context: &Context) -> Done {
    let client = context.client()?;
    match command {
        FlagsCommand::List => {
            let answer = client.flags().await?;
            context.output.list(&answer.json, ("/flags", "/name"), "no flags", || table(&answer.flags))
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

fn table(flags: &[Flag]) -> String {
    let mut table = Columns::new(&["FLAG", "VALUE", "DEFAULT", "TAKES~", "MEANING~"]);
    for flag in flags {
        let value = if flag.is_default { flag.value.to_string() } else { format!("{} (set)", flag.value) };
        let cells = [&flag.name, &value, &flag.default.to_string(), &flag.takes, &flag.about];
        table.row(cells.map(|text| printable(text)));
    }
    table.render()
}
