//! Calls about profiles.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{Profile, ProfileList};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// The newest version of each.
    pub async fn profiles(&self) -> Result<ProfileList> {
        self.ask(Call::get(&["profiles"])).await
    }

    /// That version, or the newest.
    pub async fn profile(&self, name: &str, version: Option<&str>) -> Result<Profile> {
        match version {
            Some(version) => self.ask(Call::get(&["profiles", name, version])).await,
            None => self.ask(Call::get(&["profiles", name])).await,
        }
    }

    /// Markdown, byte for byte: the defaults as front matter, the persona as its body. The same content again is the
    /// same version, so it can be repeated.
    pub async fn add_profile(&self, name: &str, markdown: Vec<u8>) -> Result<Profile> {
        let call = Call::post(&["profiles", name]).bytes("text/markdown", markdown);
        self.ask(call.repeatable(true)).await
    }
}
