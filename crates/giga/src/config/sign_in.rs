//! Settings of a coordinator: with whom people sign in, and what that gives them.

use std::time::Duration;

use giga_domain::sign_in::GroupGrant;
use giga_domain::token::Lifetime;
use giga_oidc::{ClientSecret, Config, Provider};

use super::{Key, Setting, Settings};
use crate::exit::CliError;

const SCOPES: &str = "openid profile email groups";
const GROUPS_CLAIM: &str = "groups";
const SESSION: &str = "12h";
/// Somebody waits in front of a browser.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between grants, which have commas in them.
pub(super) const BETWEEN_GRANTS: &str = ";";

/// What `giga serve` was told about signing in.
pub(crate) struct SignInSettings {
    pub(crate) provider: Provider,
    pub(crate) grants: Vec<GroupGrant>,
    pub(crate) lifetime: Lifetime,
    /// None: the address that the coordinator prints.
    pub(crate) public_url: Option<String>,
}

impl Settings {
    /// None where nobody set an issuer.
    pub(crate) fn sign_in(&self) -> Result<Option<SignInSettings>, CliError> {
        let issuer = self.get(Key::OidcIssuer);
        let Some(issuer) = issuer else {
            let lonely = [Key::OidcClientId, Key::OidcClientSecretFile, Key::OidcGrants];
            return match lonely.into_iter().find_map(|key| Some((key, self.get(key)?))) {
                Some((key, set)) => Err(needs(&set, key, Key::OidcIssuer)),
                None => Ok(None),
            };
        };
        let wrong = |set: &Setting<String>, text: String| CliError::Config(format!("{}: {text}", set.origin));
        let client_id =
            self.get(Key::OidcClientId).ok_or_else(|| needs(&issuer, Key::OidcIssuer, Key::OidcClientId))?;
        let client_secret = self.get(Key::OidcClientSecretFile).map(secret).transpose()?;
        let scopes: Vec<String> = self.oidc_scopes().value.split_whitespace().map(str::to_owned).collect();
        if !scopes.iter().any(|scope| scope == "openid") {
            return Err(wrong(&self.oidc_scopes(), "the scopes must include openid".to_owned()));
        }
        let grants =
            self.get(Key::OidcGrants).ok_or_else(|| needs(&issuer, Key::OidcIssuer, Key::OidcGrants))?;
        let texts = grants.value.split(BETWEEN_GRANTS).map(str::trim).filter(|text| !text.is_empty());
        let read = texts.map(str::parse).collect::<Result<Vec<GroupGrant>, _>>();
        let read = read.map_err(|error| wrong(&grants, error.to_string()))?;
        let session = self.oidc_session();
        let lifetime = session.value.parse().map_err(|error| wrong(&session, format!("{error}")))?;
        let public_url = self.get(Key::PublicUrl);
        if let Some(set) = &public_url
            && giga_api::client::origin(&set.value).as_deref() != Some(set.value.trim_end_matches('/'))
        {
            return Err(wrong(
                set,
                format!("`{}` is not an address such as https://giga.example.com", set.value),
            ));
        }
        let config = Config {
            issuer: issuer.value.clone(),
            client_id: client_id.value,
            client_secret,
            scopes,
            groups_claim: self.oidc_groups_claim().value,
            timeout: PATIENCE,
            allow_plain_http: self.allow_plain_http()?.value,
        };
        let provider = Provider::new(config).map_err(|error| wrong(&issuer, error.to_string()))?;
        Ok(Some(SignInSettings {
            provider,
            grants: read,
            lifetime,
            public_url: public_url.map(|set| set.value),
        }))
    }

    pub(crate) fn oidc_scopes(&self) -> Setting<String> {
        self.get_or(Key::OidcScopes, SCOPES)
    }

    pub(crate) fn oidc_groups_claim(&self) -> Setting<String> {
        self.get_or(Key::OidcGroupsClaim, GROUPS_CLAIM)
    }

    pub(crate) fn oidc_session(&self) -> Setting<String> {
        self.get_or(Key::OidcSession, SESSION)
    }
}

fn needs(set: &Setting<String>, has: Key, other: Key) -> CliError {
    let text = format!("`{}` needs `{}` too ({})", has.name(), other.name(), other.flag());
    CliError::Config(format!("{}: {text}", set.origin))
}

fn secret(named: Setting<String>) -> Result<ClientSecret, CliError> {
    let Setting { value, origin } = named;
    let wrong = |text: String| CliError::Config(format!("{origin}: {text}"));
    let text =
        std::fs::read_to_string(&value).map_err(|error| wrong(format!("cannot read {value}: {error}")))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(wrong(format!("{value} is empty")));
    }
    Ok(ClientSecret(text.to_owned()))
}
