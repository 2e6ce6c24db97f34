//! Which token is sent, and where it may be sent to.
//!
//! Anything that is not a token of this system is never sent: a wrong path must not leak the file behind it. The token
//! that a coordinator left in its folder is sent to the address that the same coordinator left there, and to no other:
//! whoever names another address has to name a token for it.

use std::path::PathBuf;

use giga_api::client::ClientError;
use giga_domain::JobToken;
use giga_domain::token::TokenSecret;
use giga_ports::Clock as _;
use giga_ports::pool_driver::CREDENTIAL_VARIABLE;

use super::{Key, Origin, Setting, Settings};
use crate::exit::CliError;
use crate::system::SystemClock;

#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: TokenSecret,
    pub(crate) origin: Origin,
}

impl Token {
    /// Enough to tell tokens apart, too little to use.
    pub(crate) fn masked(&self) -> String {
        let shown: String = self.secret.reveal().chars().take(16).collect();
        format!("{shown}…")
    }
}

impl Settings {
    pub(crate) fn admin_token_path(&self) -> PathBuf {
        self.data().value.join("admin.token")
    }

    /// The flag goes before the variables, then comes whom somebody signed in as; the file that the coordinator on this machine
    /// wrote comes last.
    pub(crate) fn token(&self) -> Result<Option<Token>, CliError> {
        self.token_at(&self.url().value)
    }

    fn token_at(&self, url: &str) -> Result<Option<Token>, CliError> {
        let named = self.get(Key::TokenFile);
        let flagged = matches!(&named, Some(Setting { origin: Origin::Flag(_), .. }));
        if !flagged && let Some(text) = self.surroundings.variable(Key::TOKEN_VARIABLE) {
            let origin = Origin::Environment(Key::TOKEN_VARIABLE);
            return parse(&text, origin.to_string()).map(|secret| Some(Token { secret, origin }));
        }
        if let Some(Setting { value, origin }) = named {
            let text = std::fs::read_to_string(&value).map_err(|error| {
                CliError::Config(format!("cannot read the token in {value} ({origin}): {error}"))
            })?;
            return parse(&text, value).map(|secret| Some(Token { secret, origin }));
        }
        if let Some(signed_in) = self.signed_in(url)? {
            if signed_in.is_over(SystemClock.now()) {
                return Err(CliError::SignInEnded {
                    url: url.to_owned(),
                    at: signed_in.expires_at.unwrap_or_default(),
                });
            }
            if let Some(secret) = signed_in.secret() {
                return Ok(Some(Token { secret, origin: Origin::SignedIn(self.signed_in_path()) }));
            }
        }
        let path = self.admin_token_path();
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let secret = parse(&text, path.display().to_string())?;
                Ok(Some(Token { secret, origin: Origin::DataFolder(path) }))
            }
            Err(_) => Ok(None),
        }
    }

    /// The token for this address, unless sending it there would give it away.
    pub(crate) fn token_for(&self, url: &Setting<String>) -> Result<Option<Token>, CliError> {
        let Some(token) = self.token_at(&url.value)? else { return Ok(None) };
        let Origin::DataFolder(path) = &token.origin else { return Ok(Some(token)) };
        if giga_api::client::origin(&url.value).is_none() {
            let reason = "it must begin with http:// or https:// and name a host".to_owned();
            return Err(ClientError::BadUrl { url: url.value.clone(), reason }.into());
        }
        match self.local_url() {
            Some(local) if is_same_place(&local.value, &url.value) => Ok(Some(token)),
            None if url.origin == Origin::Default => Err(CliError::NotRunning { data: self.data().value }),
            _ => Err(CliError::NotItsToken { token: path.clone(), url: url.value.clone() }),
        }
    }

    /// What a factory of a pool joins it with: from a file that is named on the command line, or from its variable. Other
    /// tokens are none of its business.
    pub(crate) fn pool_credential(&self) -> Result<Option<String>, CliError> {
        if matches!(self.get(Key::TokenFile), Some(Setting { origin: Origin::Flag(_), .. })) {
            return Ok(self.token()?.map(|token| token.secret.reveal().to_owned()));
        }
        let Some(text) = self.surroundings.variable(CREDENTIAL_VARIABLE) else { return Ok(None) };
        let origin = Origin::Environment(CREDENTIAL_VARIABLE);
        parse(&text, origin.to_string()).map(|secret| Some(secret.reveal().to_owned()))
    }

    /// Where a token was looked for, for somebody who has none.
    pub(crate) fn token_places(&self) -> String {
        format!("--token-file, GIGA_TOKEN, GIGA_TOKEN_FILE, giga.toml, {}", self.admin_token_path().display())
    }
}

/// The same scheme, host and port.
fn is_same_place(one: &str, other: &str) -> bool {
    giga_api::client::origin(one)
        .is_some_and(|one| giga_api::client::origin(other).is_some_and(|other| one == other))
}

fn parse(text: &str, place: String) -> Result<TokenSecret, CliError> {
    let text = text.trim();
    // What runs inside a job has a token of its own kind.
    let parsed = if JobToken::looks_like(text) {
        JobToken::parse(text).map(|token| token.secret())
    } else {
        TokenSecret::parse(text)
    };
    parsed.map_err(|error| CliError::Config(format!("{place}: {error}")))
}
