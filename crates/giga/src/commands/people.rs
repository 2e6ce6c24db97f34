//! `giga login`, `giga logout`, `giga whoami`, `giga audit`

use std::time::Duration;

use giga_api::client::{AuditQuery, Client, ClientError, ClientOptions};
use giga_api::wire::{AuditEntry, DeviceSignIn, PollSignInAnswer, SignInState, TokenKind, WhoAmI};
use giga_domain::Timestamp;
use giga_domain::token::TokenSecret;
use tokio::time::Instant;

use super::Done;
use super::context::Context;
use crate::args::AuditArgs;
use crate::config::{SignedIn, duration};
use crate::exit::CliError;
use crate::output::{Columns, ago, append_page, dash, printable, say};

/// What a provider that is asked too often wants to be left alone for in addition (RFC 8628, 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);
const PAGE: usize = 500;

pub(crate) async fn login(context: &Context) -> Done {
    let url = context.settings.url().value;
    // The token comes back the same way.
    context.settings.trust()?.check(&url)?;
    let client = client_with(context, None)?;
    if !client.sign_in_offer().await?.offered {
        return Err(CliError::failed_but(
            format!("the coordinator at {url} offers no sign-in"),
            "use a token (GIGA_TOKEN or --token-file); its operator can set up a provider with `giga serve --oidc-issuer`",
        ));
    }
    let device = client.start_device_sign_in().await?.value;
    let address = device.verification_uri_complete.as_deref().unwrap_or(&device.verification_uri);
    say(&format!(
        "Open \x1b[36m{}\x1b[0m in a browser and confirm the code \x1b[1m{}\x1b[0m",
        printable(address),
        printable(&device.user_code)
    ));
    let signed_in = wait_for_it(&client, &device).await?;
    let (Some(token), Some(label)) = (signed_in.token, signed_in.label) else {
        return Err(CliError::failed("the coordinator says that you are signed in, and sent no token"));
    };
    let secret = TokenSecret::parse(&token).map_err(|error| CliError::failed(error.to_string()))?;
    let until = signed_in.expires_at.as_ref().map_or_else(String::new, |at| format!(" until {at}"));
    context.settings.sign_in_at(&url, SignedIn::new(&secret, label.clone(), signed_in.expires_at))?;
    say(&format!("signed in to {url} as {}{until}", printable(&label)));
    Ok(())
}

/// Asks as often as the provider wants to be asked.
async fn wait_for_it(client: &Client, device: &DeviceSignIn) -> Result<PollSignInAnswer, CliError> {
    let deadline = Instant::now() + Duration::from_secs(device.expires_in_s);
    let mut interval = Duration::from_secs(device.interval_s.max(1));
    loop {
        tokio::time::sleep(interval).await;
        if Instant::now() >= deadline {
            return Err(CliError::failed_but(
                "nobody signed in before the code expired",
                "run `giga login` again",
            ));
        }
        match client.poll_device_sign_in(&device.device_code).await {
            Ok(answer) => match answer.state {
                SignInState::Done => return Ok(answer.value),
                SignInState::Pending => {}
                SignInState::SlowDown => interval += SLOWER_BY,
            },
            // What is away for a moment may be back for the next try.
            Err(ClientError::Unreachable { .. }) => {}
            Err(ClientError::Problem(problem)) if problem.status == 503 => {}
            Err(error) => return Err(error.into()),
        }
    }
}

pub(crate) async fn logout(context: &Context) -> Done {
    let url = context.settings.url().value;
    let Some(signed_in) = context.settings.signed_in(&url)? else {
        say(&format!("you are not signed in to {url}"));
        return Ok(());
    };
    if let Some(secret) = signed_in.secret() {
        match client_with(context, Some(secret))?.sign_out().await {
            // It was over already.
            Err(ClientError::Problem(problem)) if problem.status == 401 => {}
            ended => drop(ended?),
        }
    }
    context.settings.sign_out_at(&url)?;
    say(&format!("signed out of {url}; the token of {} was revoked", printable(&signed_in.label)));
    Ok(())
}

fn client_with(context: &Context, token: Option<TokenSecret>) -> Result<Client, CliError> {
    let options = ClientOptions {
        url: context.settings.url().value,
        token: token.map(|secret| secret.reveal().to_owned()),
        agent: concat!("giga/", env!("CARGO_PKG_VERSION")).to_owned(),
        trust: context.settings.trust()?,
        ..ClientOptions::default()
    };
    Ok(Client::new(options)?)
}

pub(crate) async fn whoami(context: &Context) -> Done {
    let url = context.settings.url();
    let client = context.client_in(None)?;
    let answer = client.whoami().await?;
    let origin = context.settings.token_for(&url)?.map(|token| token.origin.to_string()).unwrap_or_default();
    context.output.one(&answer.json, "/label", || identity(&answer, &url.value, &origin, context))
}

fn identity(me: &WhoAmI, url: &str, origin: &str, context: &Context) -> String {
    let role = match (me.kind, me.role) {
        (TokenKind::Factory, _) => format!("factory {}", dash(me.factory_id.as_deref())),
        (_, Some(role)) => role.to_string(),
        (_, None) => "-".to_owned(),
    };
    let products = if me.every_product { "every product".to_owned() } else { me.products.join(", ") };
    let expires = me
        .expires_at
        .as_ref()
        .map_or_else(|| "never".to_owned(), |at| format!("{} ({at})", ago(at, context.output.now)));
    let rows = [
        ("label", printable(dash(Some(&me.label)))),
        ("role", role),
        ("products", products),
        ("expires", expires),
        ("token", format!("{} ({})", printable(&me.token_id), printable(origin))),
        ("at", printable(url)),
    ];
    rows.map(|(name, value)| format!("{name:<9} {value}")).join("\n")
}

pub(crate) async fn audit(args: AuditArgs, context: &Context) -> Done {
    let client = context.client()?;
    let job = match &args.job {
        Some(job) => Some(context.job_id(&client, job).await?),
        None => None,
    };
    let now = context.output.now;
    let time = |name: &str, text: Option<String>| text.map(|text| time(name, &text, now)).transpose();
    let mut query = AuditQuery {
        actor: args.actor,
        kind: args.kind,
        job,
        since: time("--since", args.since)?,
        until: time("--until", args.until)?,
        before: None,
        limit: Some(args.limit.clamp(1, PAGE)),
    };
    let mut page = client.audit(&query).await?;
    while page.value.entries.len() < args.limit {
        // A page may hold little of what was looked through for it.
        let Some(before) = page.value.next_before else { break };
        query.before = Some(before);
        query.limit = Some((args.limit - page.value.entries.len()).min(PAGE));
        let next = client.audit(&query).await?;
        page.value.entries.extend(next.value.entries);
        page.value.next_before = next.value.next_before;
        append_page(&mut page.json, next.json, "entries", "nextBefore");
    }
    context.output.list(&page.json, ("/entries", "/pos"), "nothing found", || table(&page.value.entries))
}

fn time(name: &str, text: &str, now: Timestamp) -> Result<String, CliError> {
    if let Ok(ago) = duration(text) {
        return Ok(now.minus(ago).to_string());
    }
    let at = text.parse::<Timestamp>().map_err(|_| {
        CliError::Usage(format!(
            "{name}: `{text}` is neither a time ago such as 1d nor a time such as 2026-05-01T00:00:00Z"
        ))
    })?;
    Ok(at.to_string())
}

fn table(entries: &[AuditEntry]) -> String {
    let mut table = Columns::new(&["AT", "WHO~", "WHAT", "PRODUCT", "JOB", "DETAILS~"]);
    for entry in entries {
        table.row([
            entry.at.clone(),
            printable(&entry.actor),
            entry.kind.to_string(),
            printable(dash(entry.product_id.as_deref())),
            printable(dash(entry.job_id.as_deref())),
            printable(&entry.cause),
        ]);
    }
    table.render()
}
