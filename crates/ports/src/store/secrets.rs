//! Named secrets of products. Values come sealed and go sealed: no store ever sees one.

use giga_domain::{Actor, ProductId, SealedSecret, Secret, SecretName};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! secrets {
    ($make:ident) => {
        $make! {
            writes SecretStore {
                /// The next version of a secret. One that is not the next, because somebody else set it meanwhile, is
                /// refused as [`super::StoreError::SecretChanged`]; so is one too many for its product, as
                /// [`super::StoreError::TooManySecrets`].
                set_secret(SetSecret) -> Secret;

                /// The same version, sealed with another key: whether it still was what the caller had opened.
                rekey_secret(RekeySecret) -> bool;

                /// Whether there was one.
                remove_secret(RemoveSecret) -> bool;
            }
            reads SecretReads {
                /// By name.
                secrets(product: &ProductId) -> Vec<Secret>;

                sealed_secret(product: &ProductId, name: &SecretName) -> Option<SealedSecret>;

                /// Of all products.
                all_secrets() -> Vec<Secret>;
            }
        }
    };
}
secrets!(traits);
pub(super) use secrets;

#[derive(Clone)]
pub struct SetSecret {
    pub product: ProductId,
    pub name: SecretName,
    /// The one that this makes: its number is sealed with the value.
    pub version: u64,
    pub key_id: String,
    pub sealed: Vec<u8>,
    pub actor: Actor,
}

#[derive(Clone)]
pub struct RekeySecret {
    /// What the caller had opened.
    pub opened: SealedSecret,
    pub key_id: String,
    pub sealed: Vec<u8>,
    pub actor: Actor,
}

#[derive(Debug, Clone)]
pub struct RemoveSecret {
    pub product: ProductId,
    pub name: SecretName,
    pub actor: Actor,
}

impl std::fmt::Debug for SetSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { product, name, version, .. } = self;
        write!(f, "SetSecret({product}, {name}, {version}, …)")
    }
}

impl std::fmt::Debug for RekeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RekeySecret({:?}, {}, …)", self.opened, self.key_id)
    }
}
