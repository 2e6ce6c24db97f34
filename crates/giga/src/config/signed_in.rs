//! Where somebody is signed in: a token per coordinator, in a file of the user's own that nobody else can read.
//!
//! Each token goes to the coordinator that gave it, and to no other.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use giga_domain::Timestamp;
use giga_domain::token::TokenSecret;
use serde::{Deserialize, Serialize};

use super::Settings;
use crate::exit::CliError;

const NAME: &str = "sign-ins.json";

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignedIn {
    token: String,
    pub(crate) label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
}

impl SignedIn {
    pub(crate) fn new(secret: &TokenSecret, label: String, expires_at: Option<String>) -> Self {
        Self { token: secret.reveal().to_owned(), label, expires_at }
    }

    pub(crate) fn secret(&self) -> Option<TokenSecret> {
        TokenSecret::parse(&self.token).ok()
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        let end = self.expires_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        end.is_some_and(|end| end <= now)
    }
}

type Places = BTreeMap<String, SignedIn>;

impl Settings {
    pub(crate) fn signed_in_path(&self) -> PathBuf {
        self.surroundings.home_folder("XDG_CONFIG_HOME", ".config").join(NAME)
    }

    pub(crate) fn signed_in(&self, url: &str) -> Result<Option<SignedIn>, CliError> {
        let Some(origin) = giga_api::client::origin(url) else { return Ok(None) };
        Ok(self.places()?.remove(&origin))
    }

    pub(crate) fn sign_in_at(&self, url: &str, signed_in: SignedIn) -> Result<(), CliError> {
        let Some(origin) = giga_api::client::origin(url) else { return Ok(()) };
        let mut places = self.places()?;
        places.insert(origin, signed_in);
        self.write_places(&places)
    }

    pub(crate) fn sign_out_at(&self, url: &str) -> Result<(), CliError> {
        let Some(origin) = giga_api::client::origin(url) else { return Ok(()) };
        let mut places = self.places()?;
        places.remove(&origin);
        self.write_places(&places)
    }

    fn places(&self) -> Result<Places, CliError> {
        let path = self.signed_in_path();
        let wrong = |error: String| {
            CliError::Config(format!("{}: {error}; remove it and sign in again", path.display()))
        };
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Places::new()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Whole or not at all, and never readable by others, not even for a moment.
    fn write_places(&self, places: &Places) -> Result<(), CliError> {
        let path = self.signed_in_path();
        let aside = path.with_file_name(format!(".{NAME}.{}", std::process::id()));
        let written = (|| {
            if let Some(folder) = path.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            // Left over from a crash; its rights may be anything.
            match std::fs::remove_file(&aside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
            file.write_all(&serde_json::to_vec_pretty(places)?)?;
            file.sync_all()?;
            std::fs::rename(&aside, &path)
        })();
        written.map_err(|error| CliError::failed(format!("cannot write {}: {error}", path.display())))
    }
}
