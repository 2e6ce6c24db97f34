//! What is set up by people and seldom changes: products, profiles, webhooks, flags; and the secrets that coordinators share.

use std::fmt;
use std::time::Duration;

use giga_domain::{
    Actor, EventKind, Product, ProductId, ProductSettings, Profile, ProfileContent, Rev, SigningKey, Webhook,
    WebhookId,
};
use serde_json::Value;

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! registry {
    ($make:ident) => {
        $make! {
            writes RegistryStore {
                /// Replaces the settings. A repository that another product owns is refused as
                /// [`super::StoreError::RepoOwned`].
                set_product(SetProduct) -> Product;

                /// The next version, or the newest where that has the very same content.
                add_profile(AddProfile) -> Profile;

                /// A known id is answered with what is there; one too many for its product, or for the whole fleet, is
                /// refused with [`super::StoreError::TooManyWebhooks`]. `since` is the feed's head: whoever fans out can
                /// pass over all that came before the first of them, so nobody has to follow the feed while nobody
                /// listens.
                add_webhook(AddWebhook) -> Webhook;

                /// What is still to be sent to it is given up. One that is gone is fine.
                remove_webhook(RemoveWebhook) -> ();

                /// The caller has checked name and value against the flag's type. `null` unsets it.
                set_flag(SetFlag) -> ();

                /// The key of that name, which every coordinator shares: `fresh` becomes it where there is none yet.
                share_key(ShareKey) -> [u8; 32];

                /// The key of that name and the one before it: `fresh` becomes it where there is none, or where the one
                /// there is as old as `older_than` or older.
                rotate_key(RotateKey) -> KeyRing;
            }
            reads RegistryReads {
                /// By id; those that were ever set.
                products() -> Vec<Product>;

                /// The newest version of each, by name.
                profiles(product: &ProductId) -> Vec<Profile>;

                /// That version, or the newest.
                profile(product: &ProductId, name: &str, version: Option<u32>) -> Option<Profile>;

                /// By id.
                webhooks() -> Vec<Webhook>;

                /// Those that were ever set.
                flags() -> Vec<(String, Value)>;
            }
        }
    };
}
registry!(traits);
pub(super) use registry;

#[derive(Debug, Clone)]
pub struct SetProduct {
    pub product: ProductId,
    pub settings: ProductSettings,
    pub if_rev: Option<Rev>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct AddProfile {
    pub product: ProductId,
    pub name: String,
    pub content: ProfileContent,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct AddWebhook {
    pub id: WebhookId,
    pub product: Option<ProductId>,
    pub url: String,
    pub kinds: Vec<EventKind>,
    pub secret: SigningKey,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RemoveWebhook {
    pub id: WebhookId,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct SetFlag {
    pub name: String,
    pub value: Value,
    pub actor: Actor,
}

#[derive(Clone)]
pub struct ShareKey {
    pub name: &'static str,
    pub fresh: [u8; 32],
}

/// For what is signed and checked again within a bounded time.
#[derive(Clone)]
pub struct RotateKey {
    pub name: &'static str,
    /// Where the key before it is kept.
    pub previous: &'static str,
    pub fresh: [u8; 32],
    pub older_than: Duration,
    pub actor: Actor,
}

impl fmt::Debug for RotateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotateKey").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyRing {
    /// What is signed with.
    pub current: [u8; 32],
    /// What it may have been signed with.
    pub previous: Option<[u8; 32]>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

impl fmt::Debug for ShareKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShareKey").field("name", &self.name).finish_non_exhaustive()
    }
}
