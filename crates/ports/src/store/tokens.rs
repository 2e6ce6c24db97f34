//! Tokens, by their hashes.

use std::time::Duration;

use giga_domain::token::{TokenHash, TokenRecord};
use giga_domain::{Actor, FactoryId, Timestamp, TokenId};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! tokens {
    ($make:ident) => {
        $make! {
            writes TokenStore {
                issue_token(IssueToken) -> ();

                /// Adds a token for the factory and lets its older ones end after `grace`.
                rotate_token(RotateToken) -> ();

                /// Gives the token another end and answers with it as it is then. One that was revoked stays so, and one
                /// that a rotation has replaced keeps the end that the rotation gave it.
                renew_token(RenewToken) -> TokenRecord;

                revoke_token(RevokeToken) -> ();

                /// Ends every token of the factory at once.
                revoke_factory_tokens(RevokeFactoryTokens) -> ();
            }
            reads TokenReads {
                token_by_hash(hash: &TokenHash) -> Option<TokenRecord>;

                /// By creation.
                tokens() -> Vec<TokenRecord>;
            }
        }
    };
}
tokens!(traits);
pub(super) use tokens;

#[derive(Debug, Clone)]
pub struct IssueToken {
    pub token: TokenRecord,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RotateToken {
    pub factory: FactoryId,
    pub token: TokenRecord,
    pub grace: Duration,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RenewToken {
    pub token: TokenId,
    /// Whose it is, where it is a factory's.
    pub factory: Option<FactoryId>,
    pub expires_at: Option<Timestamp>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RevokeToken {
    pub token: TokenId,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RevokeFactoryTokens {
    pub factory: FactoryId,
    pub actor: Actor,
}
