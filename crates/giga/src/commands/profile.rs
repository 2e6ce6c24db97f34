//! `giga profile …`

use std::fmt::Write;
use std::io::Read;

use giga_api::client::ClientError;
use giga_api::wire::{ProblemCode, Profile};
use giga_domain::limits;
use serde_json::Value;

use super::Done;
use super::context::Context;
use crate::args::ProfileCommand;
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, printable};

pub(crate) async fn run(command: ProfileCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        ProfileCommand::Add { name, file } => {
            let markdown = read(&file).await?;
            let profile = match client.add_profile(&name, markdown).await {
                Err(ClientError::Problem(problem)) if problem.code == ProblemCode::InvalidManifest => {
                    return Err(CliError::Profile { file, problem });
                }
                answer => answer?,
            };
            output.one(&profile.json, "/name", || printable(&format!("{}@{}", profile.name, profile.version)))
        }
        ProfileCommand::List => {
            let answer = client.profiles().await?;
            let none = "no profiles; `giga profile add NAME FILE.md` makes one";
            output.list(&answer.json, ("/profiles", "/name"), none, || list(&answer.profiles, output))
        }
        ProfileCommand::Show { profile } => {
            let (name, version) = match profile.split_once('@') {
                Some((name, version)) => (name, Some(version)),
                None => (profile.as_str(), None),
            };
            let profile = client.profile(name, version).await?;
            output.one(&profile.json, "/name", || text(&profile, output))
        }
    }
}

async fn read(file: &str) -> Result<Vec<u8>, CliError> {
    let given = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        // Enough to be refused, not enough to fill the memory.
        let limit = limits::REQUEST_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        if given == "-" {
            std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
        } else {
            std::fs::File::open(given)?.take(limit).read_to_end(&mut bytes)?;
        }
        Ok::<_, std::io::Error>(bytes)
    });
    let read = read.await.map_err(|_| CliError::Interrupted)?;
    read.map_err(|error| CliError::failed(format!("cannot read the profile {file}: {error}")))
}

fn list(profiles: &[Profile], output: &Output) -> String {
    let mut table = Columns::new(&["PROFILE", "MADE", "BY", "FILLS IN~"]);
    for profile in profiles {
        let keys: Vec<&str> = profile.defaults.keys().map(String::as_str).collect();
        table.row([
            printable(&format!("{}@{}", profile.name, profile.version)),
            ago(&profile.created_at, output.now),
            printable(&profile.created_by),
            printable(&if keys.is_empty() { "-".to_owned() } else { keys.join(", ") }),
        ]);
    }
    table.render()
}

fn text(profile: &Profile, output: &Output) -> String {
    let mut text = format!("\x1b[1m{}@{}\x1b[0m\n", printable(&profile.name), profile.version);
    let made = format!("{} by {}", ago(&profile.created_at, output.now), profile.created_by);
    let _ = writeln!(text, "  {:<12}  {}", "made", printable(&made));
    for (key, value) in &profile.defaults {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let _ = writeln!(text, "  {:<12}  {}", printable(key), printable(&value));
    }
    if !profile.persona_md.trim().is_empty() {
        text.push_str("\nPersona\n");
        for line in printable(&profile.persona_md).trim_end().lines() {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}
