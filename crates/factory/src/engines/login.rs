//! Whose account an engine uses, as a fingerprint: told apart, never told.
//!
//! A key in the environment is stronger than a login in the operator's home, as it is for the engines themselves.

use std::path::PathBuf;

use giga_domain::AccountId;
use serde_json::Value;

use super::config::EventFormat;
use super::process::HostEnvironment;
use super::programs::{Program, Recipe, holds_a_secret};
use crate::sandbox::HomeFile;

/// The account that an engine is signed in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// It costs nothing beyond this machine.
    Unneeded,
    /// It has one, and nothing here says which.
    Unnamed,
    Known(AccountId),
}

/// Where logins are kept in the operator's home, and what tells one from another there.
const LOGIN_FILES: [(&str, &[&str]); 4] = [
    (".claude.json", &["/oauthAccount/accountUuid", "/oauthAccount/emailAddress"]),
    ("auth.json", &["/tokens/account_id", "/OPENAI_API_KEY", ""]),
    ("google_accounts.json", &["/active"]),
    ("oauth_creds.json", &["/refresh_token"]),
];

pub(super) fn of(recipe: &dyn Recipe, host: &HostEnvironment) -> Login {
    if !recipe.has_account() {
        return Login::Unneeded;
    }
    let identity = by_keys(recipe, host).or_else(|| by_files(recipe.home_files(), host));
    match identity {
        Some(identity) => Login::Known(AccountId::fingerprint(vendor(recipe), identity.as_bytes())),
        None => Login::Unnamed,
    }
}

fn vendor(recipe: &dyn Recipe) -> &str {
    match recipe.format() {
        EventFormat::Program(Program::Claude) => "anthropic",
        EventFormat::Program(Program::Codex) => "openai",
        EventFormat::Program(Program::Gemini) => "google",
        EventFormat::Program(Program::Opencode) | EventFormat::Text => recipe.name(),
    }
}

/// Keys, and the address of another server where one is set: the same key means another account there.
fn by_keys(recipe: &dyn Recipe, host: &HostEnvironment) -> Option<String> {
    let variables = recipe.variables();
    let value = |name: &&str| Some(host.get(name)?.to_str()?.to_owned());
    let mut keys: Vec<&str> = variables.into_iter().filter(|name| holds_a_secret(name)).collect();
    keys.sort_unstable();
    keys.dedup();
    let values: Vec<String> = keys.iter().filter_map(value).collect();
    let addresses = recipe.address_variables().iter().filter_map(value);
    (!values.is_empty()).then(|| values.into_iter().chain(addresses).collect::<Vec<_>>().join("\n"))
}

fn by_files(homes: &[HomeFile], host: &HostEnvironment) -> Option<String> {
    homes.iter().find_map(|home| {
        let folder = folder(home, host)?;
        home.copied.iter().find_map(|name| {
            let (_, pointers) = LOGIN_FILES.iter().find(|(file, _)| file == name)?;
            let content: Value = serde_json::from_slice(&std::fs::read(folder.join(name)).ok()?).ok()?;
            let found =
                pointers.iter().find_map(|pointer| content.pointer(pointer).filter(|v| !v.is_null()))?;
            Some(found.to_string())
        })
    })
}

fn folder(home: &HomeFile, host: &HostEnvironment) -> Option<PathBuf> {
    let own =
        home.variable.and_then(|(variable, below)| Some(PathBuf::from(host.get(variable)?).join(below)));
    own.or_else(|| Some(PathBuf::from(host.get("HOME")?).join(home.folder)))
}
