//! `giga web`: where the page is, and the way in.
//!
//! The token goes behind the `#`, which a browser keeps to itself: it is sent to no server and stands in no log. The page
//! takes it out of the address before it does anything else.

use giga_api::client::{Client, ClientOptions};
use serde_json::json;

use super::Done;
use super::context::Context;
use crate::args::WebArgs;
use crate::exit::CliError;
use crate::output::progress;

pub(crate) async fn web(args: WebArgs, context: &Context) -> Done {
    let client = if args.no_token { without_token(context)? } else { context.client()? };
    if !args.no_token {
        // Whoever opens the address is to get in.
        client.whoami().await?;
    }
    if !client.has_page().await? {
        return Err(CliError::failed_but(
            format!("the coordinator at {} was built without its web page", client.url()),
            "build giga again with Node 20.19 or newer and npm installed: GIGA_WEB=require cargo build \
             --release -p giga; `giga top` shows the same in a terminal",
        ));
    }
    let mut url = format!("{}/", client.url());
    if !args.no_token {
        let token = context.settings.token_for(&context.settings.url())?;
        let token = token.ok_or_else(|| CliError::NoToken { places: context.settings.token_places() })?;
        progress("The address contains your token; keep it to yourself.");
        url = format!("{url}#token={}", token.secret.reveal());
    }
    context.output.one(&json!({ "url": url }), "/url", || url.clone())
}

fn without_token(context: &Context) -> Result<Client, CliError> {
    let options = ClientOptions {
        url: context.settings.url().value,
        agent: concat!("giga/", env!("CARGO_PKG_VERSION")).to_owned(),
        trust: context.settings.trust()?,
        ..ClientOptions::default()
    };
    Ok(Client::new(options)?)
}
