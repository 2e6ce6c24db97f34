//! `giga webhook …`, `giga effects …`, `giga tracker …`

use std::path::Path;
use std::time::Duration;

use comfy_table::{Cell, Color};
use giga_api::client::{Client, EffectQuery};
use giga_api::wire::{AddWebhookRequest, Effect, EffectState, IngestRequest, Webhook};
use giga_domain::limits;
use giga_domain::manifest::Draft;
use serde_json::Value;

use super::Done;
use super::context::Context;
use crate::args::{EffectsCommand, ListEffectsArgs, TrackerCommand, WebhookCommand};
use crate::exit::CliError;
use crate::output::{Columns, Format, Output, ago, append_page, dash, printable, progress, say, warn};

/// How long somebody waits for what comes of a test.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(crate) async fn webhook(command: WebhookCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        WebhookCommand::Add { address, types } => {
            let request = AddWebhookRequest { url: address, product_id: None, types };
            let answer = client.add_webhook(&request).await?;
            output.one(&answer.json, "/webhook/id", || {
                format!("webhook {}\nsecret  {}", answer.webhook.id, answer.secret)
            })?;
            if output.format == Format::Table {
                say(&format!(
                    "the secret is shown this once; `giga webhook test {}` tries it",
                    answer.webhook.id
                ));
            }
            Ok(())
        }
        WebhookCommand::List => {
            let answer = client.webhooks().await?;
            let none = "no webhooks; `giga webhook add URL` makes one";
            output.list(&answer.json, ("/webhooks", "/id"), none, || webhooks(&answer.webhooks, output))
        }
        WebhookCommand::Remove { webhook } => {
            client.remove_webhook(&webhook).await?;
            say(&format!("webhook {} is told nothing more", printable(&webhook)));
            Ok(())
        }
        WebhookCommand::Test { webhook } => test(&webhook, &client, output).await,
    }
}

/// Sends it, and waits for the first answer.
async fn test(webhook: &str, client: &Client, output: &Output) -> Done {
    let sent = client.test_webhook(webhook).await?;
    progress("waiting for its answer");
    let answered = async {
        loop {
            let effect = client.effect(&sent.id).await?;
            if effect.state != EffectState::Pending || effect.detail.is_some() {
                return Ok::<_, CliError>(effect);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let Ok(effect) = tokio::time::timeout(PATIENCE, answered).await else {
        return Err(CliError::failed(format!(
            "no answer yet; `giga effects list --webhook {webhook}` shows it"
        )));
    };
    let effect = effect?;
    output.one(&effect.json, "/id", || told(&effect))?;
    if effect.state == EffectState::Delivered {
        return Ok(());
    }
    Err(CliError::failed(format!(
        "it did not arrive: {}",
        printable(effect.detail.as_deref().unwrap_or("-"))
    )))
}

fn told(effect: &Effect) -> String {
    format!("{}: {}", effect.state, printable(effect.detail.as_deref().unwrap_or("-")))
}

fn webhooks(webhooks: &[Webhook], output: &Output) -> String {
    let mut table = Columns::new(&["WEBHOOK", "PRODUCT", "TYPES~", "MADE", "URL~"]);
    for webhook in webhooks {
        let types = if webhook.types.is_empty() {
            "all".to_owned()
        } else {
            webhook.types.iter().map(|of| of.as_str()).collect::<Vec<_>>().join(", ")
        };
        table.row([
            webhook.id.clone(),
            webhook.product_id.clone().unwrap_or_else(|| "all".to_owned()),
            types,
            ago(&webhook.created_at, output.now),
            printable(&webhook.url),
        ]);
    }
    table.render()
}

pub(crate) async fn effects(command: EffectsCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        EffectsCommand::List(args) => list(args, &client, context).await,
        EffectsCommand::Retry { effects } => {
            for id in effects {
                let effect = client.retry_effect(&id).await?;
                output.one(&effect.json, "/id", || format!("{} {}", effect.id, effect.state))?;
            }
            Ok(())
        }
    }
}

async fn list(args: ListEffectsArgs, client: &Client, context: &Context) -> Done {
    let output = &context.output;
    let job = match args.job {
        Some(job) => Some(context.job_id(client, &job).await?),
        None => None,
    };
    let wanted = args.limit.unwrap_or(limits::PAGE_DEFAULT);
    let mut query = EffectQuery {
        state: args.state,
        webhook: args.webhook,
        job,
        limit: Some(wanted.min(limits::PAGE_MAX)),
        cursor: None,
    };
    let mut all = client.effects(&query).await?;
    while all.effects.len() < wanted {
        query.cursor = all.value.next_cursor.take();
        if query.cursor.is_none() {
            break;
        }
        query.limit = Some((wanted - all.effects.len()).min(limits::PAGE_MAX));
        let next = client.effects(&query).await?;
        all.value.effects.extend(next.value.effects);
        all.value.next_cursor = next.value.next_cursor;
        append_page(&mut all.json, next.json, "effects", "nextCursor");
    }
    output.list(&all.json, ("/effects", "/id"), "nothing was told outside", || table(&all.effects, output))
}

fn table(effects: &[Effect], output: &Output) -> String {
    let mut table = Columns::new(&["EFFECT", "TYPE", "STATE", "TRIES", "MADE", "LAST ANSWER~"]);
    for effect in effects {
        let colour = match effect.state {
            EffectState::Dead => Color::Red,
            EffectState::Delivered => Color::Green,
            EffectState::Pending => Color::Reset,
        };
        let item = effect.item.as_deref().map(|item| format!("echo to {}", printable(item)));
        table.row([
            Cell::new(&effect.id),
            Cell::new(item.or_else(|| effect.kind.clone()).unwrap_or_else(|| "-".to_owned())),
            Cell::new(effect.state).fg(colour),
            Cell::new(effect.attempts),
            Cell::new(ago(&effect.created_at, output.now)),
            Cell::new(dash(effect.detail.as_deref().map(printable).as_deref())),
        ]);
    }
    table.render()
}

pub(crate) async fn tracker(command: TrackerCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        TrackerCommand::Ingest { tracker, item, manifest } => {
            let (manifest, body_md) = match manifest {
                Some(file) => front_and_body(&file)?,
                None => (None, String::new()),
            };
            let answer = client.ingest(&IngestRequest { tracker, item, manifest, body_md }).await?;
            answer.warnings.iter().for_each(|warning| warn(warning));
            output.one(&answer.json, "/job/id", || answer.job.id.clone())?;
            if output.format == Format::Table && answer.status == 200 {
                say("the item had its job already");
            }
            Ok(())
        }
        TrackerCommand::Echo { job } => {
            let job = context.job_id(&client, &job).await?;
            let effect = client.echo(&job).await?;
            output.one(&effect.json, "/id", || effect.id.clone())
        }
    }
}

/// The front matter as it stands; the coordinator judges it.
fn front_and_body(file: &Path) -> Result<(Option<Value>, String), CliError> {
    let text = std::fs::read(file)
        .map_err(|error| CliError::Usage(format!("cannot read {}: {error}", file.display())))?;
    let draft = Draft::from_markdown(&text)
        .map_err(|error| CliError::Usage(format!("{}: {error}", file.display())))?;
    let (manifest, body) = draft.into_json();
    Ok((Some(manifest), body))
}
