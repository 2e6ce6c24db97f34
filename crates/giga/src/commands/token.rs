//! `giga token …`, `giga key …`

use giga_api::wire::{IssueTokenRequest, RenewTokenRequest, Token};
use giga_domain::token::TokenSecret;

use super::Done;
use super::context::Context;
use crate::args::{KeyCommand, TokenCommand};
use crate::config::{Key, Origin};
use crate::output::{Columns, Output, ago, dash, printable, say};

pub(crate) async fn run(command: TokenCommand, context: &Context) -> Done {
    let output = &context.output;
    match command {
        TokenCommand::Create { role, label, expires } => {
            // Only a flag narrows the token: a product that happens to be set in the environment must not.
            let flag = context.settings.get(Key::Product).filter(|set| matches!(set.origin, Origin::Flag(_)));
            let products =
                flag.map(|set| set.value.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let request = IssueTokenRequest { role, products, label, expires };
            let answer = context.client_in(None)?.issue_token(&request).await?;
            output.one(&answer.json, "/id", || answer.token.clone())?;
            let id = &answer.id;
            let end = match &answer.expires_at {
                Some(at) => format!("works until {at}; renew it with `giga token renew {id}`"),
                None => "never expires".to_owned(),
            };
            say(&format!(
                "token {id} is shown only this once and {end}; revoke it with `giga token revoke {id}`"
            ));
            Ok(())
        }
        TokenCommand::List => {
            let answer = context.client()?.tokens().await?;
            let local = local_token(context);
            output.list(&answer.json, ("/tokens", "/id"), "no tokens", || {
                table(&answer.tokens, local.as_deref(), output)
            })
        }
        TokenCommand::Renew { id, expires } => {
            let answer = context.client()?.renew_token(&id, &RenewTokenRequest { expires }).await?;
            output.one(&answer.json, "/id", || match &answer.expires_at {
                Some(at) => format!("token {id} works until {at}"),
                None => format!("token {id} never expires"),
            })
        }
        TokenCommand::Revoke { id } => {
            context.client()?.revoke_token(&id).await?;
            say(&format!("token {id} was revoked"));
            Ok(())
        }
    }
}

pub(crate) async fn key(command: KeyCommand, context: &Context) -> Done {
    match command {
        KeyCommand::Rotate => {
            let answer = context.client_in(None)?.rotate_keys().await?;
            context.output.one(&answer.json, "/keys", || format!("rotated {}", answer.keys.join(", ")))
        }
    }
}

/// The id of the token that the coordinator on this machine keeps in its folder.
fn local_token(context: &Context) -> Option<String> {
    let text = std::fs::read_to_string(context.settings.admin_token_path()).ok()?;
    Some(TokenSecret::parse(text.trim()).ok()?.hash().token_id().to_string())
}

fn table(tokens: &[Token], local: Option<&str>, output: &Output) -> String {
    let mut table = Columns::new(&["TOKEN", "ROLE", "FOR~", "LABEL~", "CREATED", "EXPIRES", "STATE"]);
    for token in tokens {
        let products =
            if token.products.is_empty() { "every product".to_owned() } else { token.products.join(", ") };
        let expired = token.expires_at.as_ref().is_some_and(|at| is_past(at, output));
        let state = match &token.revoked_at {
            Some(at) => format!("revoked {}", ago(at, output.now)),
            None if expired => "expired".to_owned(),
            None if local == Some(&token.id) => "live, of this machine".to_owned(),
            None => "live".to_owned(),
        };
        table.row([
            printable(&token.id),
            token.role.to_string(),
            printable(token.factory_id.as_deref().unwrap_or(&products)),
            printable(dash(Some(&token.label))),
            ago(&token.created_at, output.now),
            token.expires_at.as_ref().map_or_else(|| "never".to_owned(), |at| ago(at, output.now)),
            state,
        ]);
    }
    table.render()
}

fn is_past(at: &str, output: &Output) -> bool {
    at.parse::<giga_domain::Timestamp>().is_ok_and(|at| at <= output.now)
}
