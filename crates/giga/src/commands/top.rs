//! `giga top`: the fleet in a terminal.

use std::io::{self, IsTerminal};

use giga_domain::Timestamp;
use giga_ports::Clock;
use giga_tui::{Options, TopError};

use super::Done;
use super::context::Context;
use crate::exit::CliError;
use crate::system::SystemClock;

pub(crate) async fn top(context: &Context) -> Done {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(CliError::Usage(
            "`giga top` needs a terminal; `giga job list`, `giga factory list` and `giga metrics` print the same \
             information"
                .to_owned(),
        ));
    }
    // Which product is shown changes while it runs, so the client names none.
    let client = context.client_in(None)?;
    let product = context.settings.product().map(|product| product.value);
    // https://no-color.org: set to anything but nothing.
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let options = Options { product: product.as_deref(), colour, clock: now };
    match giga_tui::run(client, options).await {
        Ok(()) => Ok(()),
        Err(TopError::Client(error)) => Err(error.into()),
        Err(TopError::Interrupted) => Err(CliError::Interrupted),
        Err(TopError::Terminal(error)) => Err(CliError::failed(format!("cannot use the terminal: {error}"))),
        Err(error @ TopError::MayNotLook(_)) => Err(CliError::failed_but(
            error.to_string(),
            "an admin can create one: giga token create --role viewer",
        )),
    }
}

fn now() -> Timestamp {
    SystemClock.now()
}
