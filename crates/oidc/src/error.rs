//! What can go wrong with a provider. Texts hold neither codes nor tokens, so that they may be shown.

#[derive(Debug, thiserror::Error)]
#[error("the issuer `{issuer}` cannot be used: {reason}")]
pub struct ConfigError {
    pub issuer: String,
    pub reason: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or answers with an error of its own: worth another try.
    #[error("the identity provider {provider} cannot be reached just now: {reason}")]
    Away { provider: String, reason: String },
    /// It is there and said no, most likely because a code was used before or has expired.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// What it gave is not to be trusted.
    #[error("the identity provider's answer was not accepted: {0}")]
    Untrusted(String),
    /// It cannot do what is asked of it.
    #[error("the identity provider does not offer {0}")]
    Unsupported(&'static str),
}
