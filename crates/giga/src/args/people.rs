//! How people sign in, and what they did.

use std::path::PathBuf;

use clap::Args;

/// With whom people sign in at a coordinator, and what that gives them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sign-in options")]
pub(crate) struct SignInArgs {
    /// OpenID provider that people sign in with, as it names itself in its tokens [env: GIGA_OIDC_ISSUER]
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer: Option<String>,
    /// What this coordinator is called there [env: GIGA_OIDC_CLIENT_ID]
    #[arg(long, value_name = "ID")]
    pub(crate) oidc_client_id: Option<String>,
    /// File with the client's secret; without one it is a public client with PKCE [env: GIGA_OIDC_CLIENT_SECRET_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) oidc_client_secret_file: Option<PathBuf>,
    /// Scopes to ask for [env: GIGA_OIDC_SCOPES] [default: openid profile email groups]
    #[arg(long, value_name = "SCOPES")]
    pub(crate) oidc_scopes: Option<String>,
    /// Claim with the groups of a person [env: GIGA_OIDC_GROUPS_CLAIM] [default: groups]
    #[arg(long, value_name = "CLAIM")]
    pub(crate) oidc_groups_claim: Option<String>,
    /// Role and products that a group gives; may be repeated [env: GIGA_OIDC_GRANTS, separated by ;]
    #[arg(long = "oidc-grant", value_name = "GROUP=ROLE[:PRODUCT,…]")]
    pub(crate) oidc_grants: Vec<String>,
    /// How long somebody stays signed in [env: GIGA_OIDC_SESSION] [default: 12h]
    #[arg(long, value_name = "TIME")]
    pub(crate) oidc_session: Option<String>,
    /// How browsers reach this coordinator [env: GIGA_PUBLIC_URL] [default: the address it prints]
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Who: a token's id or a part of its label, a factory, or * for anybody [default: people and programs]
    #[arg(long, value_name = "WHO")]
    pub(crate) actor: Option<String>,
    /// Only these types of events, such as token.issued,job.cancelled
    #[arg(long, value_name = "TYPES")]
    pub(crate) kind: Option<String>,
    /// Only this job, whoever did it: id, the end of an id, or a name
    #[arg(long, value_name = "JOB")]
    pub(crate) job: Option<String>,
    /// Not before: a time ago such as 1d, or a time such as 2026-05-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Before: the same
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// How many at most
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(crate) limit: usize,
}
