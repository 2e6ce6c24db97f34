//! `giga token …`

use giga_api::wire::{IssueTokenRequest, Token};

use super::Done;
use super::context::Context;
use crate::args::TokenCommand;
use crate::config::{Key, Origin};
use crate::output::{Columns, Output, ago, dash, printable, say};

pub(crate) async fn run(command: TokenCommand, context: &Context) -> Done {
    let output = &context.output;
    match command {
        TokenCommand::Create { role, label } => {
            // Only a flag narrows the token: a product that happens to be set in the environment must not.
            let flag = context.settings.get(Key::Product).filter(|set| matches!(set.origin, Origin::Flag(_)));
            let products =
                flag.map(|set| set.value.split(',').map(str::to_owned).collect()).unwrap_or_default();
            let request = IssueTokenRequest { role, products, label };
            let answer = context.client_in(None)?.issue_token(&request).await?;
            output.one(&answer.json, "/id", || answer.token.clone())?;
            say(&format!(
                "token {} is shown this once; `giga token revoke {}` ends it",
                answer.id, answer.id
            ));
            Ok(())
        }
        TokenCommand::List => {
            let answer = context.client()?.tokens().await?;
            output.list(&answer.json, ("/tokens", "/id"), "no tokens", || table(&answer.tokens, output))
        }
        TokenCommand::Revoke { id } => {
            context.client()?.revoke_token(&id).await?;
            say(&format!("token {id} is revoked"));
            Ok(())
        }
    }
}

fn table(tokens: &[Token], output: &Output) -> String {
    let mut table = Columns::new(&["TOKEN", "ROLE", "FOR~", "LABEL~", "MADE", "STATE"]);
    for token in tokens {
        let products =
            if token.products.is_empty() { "every product".to_owned() } else { token.products.join(", ") };
        let state = match (&token.revoked_at, &token.expires_at) {
            (Some(at), _) => format!("revoked {}", ago(at, output.now)),
            (None, Some(at)) => format!("ends {}", ago(at, output.now)),
            (None, None) => "live".to_owned(),
        };
        table.row([
            printable(&token.id),
            token.role.to_string(),
            printable(token.factory_id.as_deref().unwrap_or(&products)),
            printable(dash(Some(&token.label))),
            ago(&token.created_at, output.now),
            state,
        ]);
    }
    table.render()
}
