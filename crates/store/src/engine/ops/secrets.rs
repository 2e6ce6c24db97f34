//! The commands about named secrets. Whether a value can be opened is nobody's business here.

use giga_domain::{NewEvent, SealedSecret, Secret, limits};
use giga_ports::StoreError;
use giga_ports::store::{RekeySecret, RemoveSecret, SetSecret};

use super::super::{Needs, Op, Working};

impl Op for SetSecret {
    fn needs(&self, needs: &mut Needs) {
        needs.secrets.insert(self.product.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Secret, StoreError> {
        let Self { product, name, version, key_id, sealed, actor } = self.clone();
        let known = working.secrets.get(&product, &name);
        // The same command again: the bytes begin with a nonce that nobody else has.
        if let Some(same) = known.filter(|known| known.sealed == sealed) {
            return Ok(same.secret.clone());
        }
        let before = known.map_or(0, |known| known.secret.version);
        if before + 1 != version {
            return Err(StoreError::SecretChanged(name));
        }
        let most = limits::PRODUCT_SECRETS;
        if known.is_none() && working.secrets.count(&product) >= most {
            return Err(StoreError::TooManySecrets(most));
        }
        let now = working.now();
        let created_at = known.map_or(now, |known| known.secret.created_at);
        let secret =
            Secret { product, name, version, key_id, created_at, updated_at: now, updated_by: actor.clone() };
        working.append(Some(secret.product.clone()), None, actor, NewEvent::secret_set(&secret));
        working.secrets.put(SealedSecret { secret: secret.clone(), sealed });
        Ok(secret)
    }
}

impl Op for RekeySecret {
    fn needs(&self, needs: &mut Needs) {
        needs.secrets.insert(self.opened.secret.product.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<bool, StoreError> {
        let Self { opened, key_id, sealed, actor } = self.clone();
        let known = working.secrets.get(&opened.secret.product, &opened.secret.name);
        if known.is_some_and(|known| known.sealed == sealed) {
            return Ok(true);
        }
        if known != Some(&opened) {
            return Ok(false);
        }
        let secret = Secret { key_id, ..opened.secret };
        working.append(Some(secret.product.clone()), None, actor, NewEvent::secret_rekeyed(&secret));
        working.secrets.put(SealedSecret { secret, sealed });
        Ok(true)
    }
}

impl Op for RemoveSecret {
    fn needs(&self, needs: &mut Needs) {
        needs.secrets.insert(self.product.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<bool, StoreError> {
        let Some(removed) = working.secrets.remove(&self.product, &self.name) else { return Ok(false) };
        let event = NewEvent::secret_removed(&removed.secret);
        working.append(Some(self.product.clone()), None, self.actor.clone(), event);
        Ok(true)
    }
}
