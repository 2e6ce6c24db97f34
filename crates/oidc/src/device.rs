//! The device flow (RFC 8628): for terminals. Nothing is remembered between polls, so that any coordinator can answer them.

use std::time::Duration;

use giga_domain::Timestamp;
use serde::Deserialize;

use crate::transport::Answered;
use crate::{Error, Person, Provider};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Where the provider does not say.
const DEFAULT_INTERVAL_S: u64 = 5;

/// What to show, and what to poll with.
#[derive(Debug, Clone, Deserialize)]
pub struct DeviceCode {
    pub device_code: String,
    pub user_code: String,
    #[serde(alias = "verification_url")]
    pub verification_uri: String,
    #[serde(default)]
    pub verification_uri_complete: Option<String>,
    pub expires_in: u64,
    #[serde(default)]
    interval: Option<u64>,
}

impl DeviceCode {
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval.unwrap_or(DEFAULT_INTERVAL_S).clamp(1, 60))
    }
}

#[derive(Debug)]
pub enum DevicePoll {
    Pending,
    /// The same, and polls come too often.
    SlowDown,
    Done(Person),
}

impl Provider {
    pub async fn start_device(&self) -> Result<DeviceCode, Error> {
        let metadata = self.metadata().await?;
        let endpoint = metadata.device_authorization_endpoint.as_deref();
        let endpoint = endpoint.ok_or(Error::Unsupported("the device flow; sign in on the web page"))?;
        let scopes = self.config.scopes.join(" ");
        match self.post(endpoint, vec![("scope", &scopes)], metadata.takes_basic()).await? {
            Answered::Well(code) => Ok(code),
            Answered::Refused(error) => Err(Error::Refused(error.text())),
        }
    }

    pub async fn poll_device(&self, device_code: &str, now: Timestamp) -> Result<DevicePoll, Error> {
        let metadata = self.metadata().await?;
        let fields = vec![("grant_type", GRANT), ("device_code", device_code)];
        match self.post(&metadata.token_endpoint, fields, metadata.takes_basic()).await? {
            Answered::Well(tokens) => Ok(DevicePoll::Done(self.person(tokens, None, now).await?)),
            Answered::Refused(error) => match error.error.as_str() {
                "authorization_pending" => Ok(DevicePoll::Pending),
                "slow_down" => Ok(DevicePoll::SlowDown),
                _ => Err(Error::Refused(error.text())),
            },
        }
    }
}
