//! What the operator's `config.toml` of Codex says about where it goes and with which key.
//!
//! `codex login status` knows of neither: it says "Not logged in" to whoever has a key in CODEX_API_KEY, which `codex exec`
//! takes, or a provider of their own (seen with 0.169).

use std::path::{Path, PathBuf};

use crate::engines::process::HostEnvironment;

/// Of the settings, what matters here. Anything that cannot be read says nothing.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// The variable with the key of the provider in use, where it is not OpenAI.
    key_variable: Option<String>,
    /// It is not OpenAI.
    is_own: bool,
    /// Where requests go, if the settings say so.
    pub(super) address: Option<String>,
}

impl Settings {
    pub(super) fn of(host: &HostEnvironment) -> Self {
        let folder = host.get("CODEX_HOME").map(PathBuf::from);
        let folder = folder.or_else(|| Some(Path::new(host.get("HOME")?).join(".codex")));
        let text = folder.and_then(|folder| std::fs::read_to_string(folder.join("config.toml")).ok());
        text.map(|text| Self::parse(&text)).unwrap_or_default()
    }

    fn parse(text: &str) -> Self {
        let Ok(table) = text.parse::<toml::Table>() else { return Self::default() };
        let word = |table: &toml::Table, key: &str| table.get(key)?.as_str().map(str::to_owned);
        let named = word(&table, "model_provider").filter(|name| name != "openai");
        let providers = table.get("model_providers").and_then(toml::Value::as_table);
        let provider = named.as_ref().and_then(|name| providers?.get(name)?.as_table());
        Self {
            key_variable: provider.and_then(|provider| word(provider, "env_key")),
            is_own: named.is_some(),
            address: provider
                .and_then(|provider| word(provider, "base_url"))
                .or_else(|| word(&table, "openai_base_url")),
        }
    }

    /// `None`: only the program itself knows.
    pub(super) fn is_signed_in(&self, host: &HostEnvironment) -> Option<Result<(), String>> {
        match &self.key_variable {
            Some(name) if host.get(name).is_none() => {
                Some(Err(format!("its provider takes a key from {name}, which is not set for the factory")))
            }
            // One without a key needs none.
            Some(_) => Some(Ok(())),
            None if self.is_own => Some(Ok(())),
            None => host.get("CODEX_API_KEY").map(|_| Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "model_provider = \"own\"\n[model_providers.own]\nbase_url = \"http://host:1/v1\"\nenv_key = \"OWN_KEY\"\n";

    fn host(variables: &[(&str, &str)]) -> HostEnvironment {
        variables.iter().copied().collect()
    }

    #[test]
    fn a_key_or_a_provider_of_ones_own_signs_in() {
        let none = Settings::parse("model = \"gpt-6-sol\"");
        assert_eq!(none.is_signed_in(&host(&[])), None);
        assert_eq!(none.is_signed_in(&host(&[("OPENAI_API_KEY", "k")])), None, "exec does not take that one");
        assert_eq!(none.is_signed_in(&host(&[("CODEX_API_KEY", "k")])), Some(Ok(())));
        let own = Settings::parse(OWN);
        assert_eq!(own.address.as_deref(), Some("http://host:1/v1"));
        assert!(own.is_signed_in(&host(&[("CODEX_API_KEY", "k")])).unwrap().unwrap_err().contains("OWN_KEY"));
        assert_eq!(own.is_signed_in(&host(&[("OWN_KEY", "k")])), Some(Ok(())));
        assert_eq!(Settings::parse("not = = toml").is_signed_in(&host(&[])), None);
    }
}
