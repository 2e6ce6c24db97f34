//! Named secrets of products: sealed, kept, and given to the holder of a job that names them.
//!
//! A value is open in two places only: here, on its way in or out, and with the factory that runs the job. Nothing answers
//! with one but [`Coordinator::secrets_for_holder`], and nothing of one is logged.

mod seal;

use giga_domain::manifest::{self, Manifest};
use giga_domain::secret::Leaks;
use giga_domain::transition::check_holder;
use giga_domain::{
    Actor, Capability, Holder, Job, JobId, ProductId, Refusal, SealedSecret, Secret, SecretName, SecretUse,
    limits,
};
use giga_ports::StoreError;
use giga_ports::store::{RekeySecret, RemoveSecret, SetSecret};
use zeroize::Zeroizing;

use crate::{Coordinator, Error, FieldProblem, NewItem};

/// Others may set the same secret at the same time; whoever comes last wins.
const TRIES: usize = 5;

/// A secret on its way to the holder of a job.
pub struct GivenSecret {
    pub used: SecretUse,
    pub value: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for GivenSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenSecret").field("used", &self.used).finish_non_exhaustive()
    }
}

/// What came of sealing everything with the first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rekeyed {
    pub key_id: String,
    pub rekeyed: usize,
    /// Those that it was before.
    pub unchanged: usize,
}

impl Coordinator {
    /// By name; without their values.
    pub async fn secrets(&self, product: &ProductId) -> Result<Vec<Secret>, Error> {
        Ok(self.core.store.read().secrets(product).await?)
    }

    pub async fn set_secret(
        &self,
        product: ProductId,
        name: SecretName,
        value: Zeroizing<Vec<u8>>,
        actor: Actor,
    ) -> Result<Secret, Error> {
        check_value(&value)?;
        let keys = self.secret_keys.to_seal()?;
        let mut tries = 0;
        loop {
            tries += 1;
            let known = self.core.store.read().sealed_secret(&product, &name).await?;
            let version = known.map_or(0, |known| known.secret.version) + 1;
            let place = seal::Place { product: &product, name: &name, version };
            let (key_id, sealed) = seal::seal(&keys, place, &value, self.core.random.bytes())?;
            let (product, name, actor) = (product.clone(), name.clone(), actor.clone());
            let set = SetSecret { product, name, version, key_id, sealed, actor };
            match self.core.store.set_secret(set).await {
                Err(StoreError::SecretChanged(_)) if tries < TRIES => {}
                answer => return Ok(answer?),
            }
        }
    }

    /// Whether there was one.
    pub async fn remove_secret(
        &self,
        product: ProductId,
        name: SecretName,
        actor: Actor,
    ) -> Result<bool, Error> {
        Ok(self.core.store.remove_secret(RemoveSecret { product, name, actor }).await?)
    }

    /// Seals every secret of every product with the first key. Can be repeated, also after a failure halfway.
    pub async fn rekey_secrets(&self, actor: Actor) -> Result<Rekeyed, Error> {
        let keys = self.secret_keys.to_seal()?;
        let Some(first) = keys.0.first() else { return Err(seal::no_key().into()) };
        let mut done = Rekeyed { key_id: first.id.clone(), rekeyed: 0, unchanged: 0 };
        for Secret { product, name, key_id, .. } in self.core.store.read().all_secrets().await? {
            if key_id == first.id {
                done.unchanged += 1;
                continue;
            }
            // Gone or set again meanwhile: then it is sealed with the first key, or will be seen by the next call.
            let Some(opened) = self.core.store.read().sealed_secret(&product, &name).await? else { continue };
            let value = seal::open(&keys, &opened)?;
            let place = seal::Place { product: &product, name: &name, version: opened.secret.version };
            let (key_id, sealed) = seal::seal(&keys, place, &value, self.core.random.bytes())?;
            let rekey = RekeySecret { opened, key_id, sealed, actor: actor.clone() };
            done.rekeyed += usize::from(self.core.store.rekey_secret(rekey).await?);
        }
        Ok(done)
    }

    /// What the job names, for the factory that holds it under this very epoch and nobody else.
    pub async fn secrets_for_holder(&self, id: JobId, holder: &Holder) -> Result<Vec<GivenSecret>, Error> {
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        check_holder(&job, holder).map_err(StoreError::from)?;
        let is_over = job.lease().is_none_or(|lease| lease.expires_at <= self.core.store_now());
        if is_over {
            let refusal = Refusal::Fenced { given: holder.epoch, current: job.epoch, stage: job.stage() };
            return Err(StoreError::from(refusal).into());
        }
        let mut given = Vec::new();
        for used in self.secrets_named_by(&job).await? {
            let sealed = self.core.store.read().sealed_secret(&job.product, &used.name).await?;
            let Some(sealed) = sealed else {
                return Err(Error::NoSecret { product: job.product.clone(), name: used.name });
            };
            given.push(GivenSecret { value: self.opened(&sealed)?, used });
        }
        Ok(given)
    }

    /// Every secret that a manifest names has to be there. A job that was made before is answered whatever has become of
    /// its secrets.
    pub(crate) async fn check_secrets(&self, product: &ProductId, manifest: &Manifest) -> Result<(), Error> {
        if manifest.secrets.is_empty() {
            return Ok(());
        }
        let known = self.core.store.read().secrets(product).await?;
        let is_missing = |used: &SecretUse| !known.iter().any(|secret| secret.name == used.name);
        let Some((at, used)) = manifest.secrets.iter().enumerate().find(|(_, used)| is_missing(used)) else {
            return Ok(());
        };
        if let Some(key) = &manifest.idempotency_key
            && self.core.store.read().job_by_key(product, key).await?.is_some()
        {
            return Ok(());
        }
        let name = &used.name;
        let message = format!(
            "there is no secret {name} in product {product}; set it with `giga secret set {name} --product {product}`"
        );
        Err(FieldProblem::new(format!("secrets[{at}]"), message).into())
    }

    /// Of children that come from inside their parent: they name what it names, and carry no value of its secrets out.
    pub(crate) async fn check_inherited_secrets(&self, parent: &Job, items: &[NewItem]) -> Result<(), Error> {
        let own = self.secrets_named_by(parent).await?;
        for (place, item) in items.iter().enumerate() {
            for (at, used) in item.manifest.secrets.iter().enumerate() {
                if !own.iter().any(|own| own.name == used.name) {
                    let name = &used.name;
                    let message = format!(
                        "the job that it comes from does not name the secret {name}, so neither may it"
                    );
                    return Err(FieldProblem::new(format!("children[{place}].secrets[{at}]"), message).into());
                }
            }
        }
        let leaks = self.leaks_of(parent).await?;
        for (place, item) in items.iter().enumerate() {
            let text = serde_json::to_string(&item.manifest).map_err(StoreError::broken)? + "\n" + &item.body;
            if let Some(name) = leaks.find(text.as_bytes()) {
                let message =
                    format!("it contains the secret {name}; name the secret instead of writing its value");
                return Err(FieldProblem::new(format!("children[{place}]"), message).into());
            }
        }
        Ok(())
    }

    /// What must not be kept of what comes from inside the job.
    pub(crate) async fn leaks_of(&self, job: &Job) -> Result<Leaks, Error> {
        let mut opened = Vec::new();
        for used in self.secrets_named_by(job).await? {
            // One that was removed meanwhile cannot be looked for.
            if let Some(sealed) = self.core.store.read().sealed_secret(&job.product, &used.name).await? {
                opened.push((used.name, self.opened(&sealed)?));
            }
        }
        Ok(Leaks::kept_back(opened.iter().map(|(name, value)| (name.as_str(), value.as_slice()))))
    }

    async fn secrets_named_by(&self, job: &Job) -> Result<Vec<SecretUse>, Error> {
        // The hot part tells that there are some; which, only the text does.
        if !job.spec.capabilities.iter().any(|capability| capability.as_str() == Capability::SECRETS) {
            return Ok(Vec::new());
        }
        let text = self.core.store.read().job_text(job.id).await?.ok_or(StoreError::NoSuchJob(job.id))?;
        Ok(manifest::from_json(&text.manifest).map_err(StoreError::broken)?.secrets)
    }

    fn opened(&self, sealed: &SealedSecret) -> Result<Zeroizing<Vec<u8>>, Error> {
        Ok(seal::open(&self.secret_keys.to_open()?, sealed)?)
    }
}

fn check_value(value: &[u8]) -> Result<(), FieldProblem> {
    let (least, most) = (limits::SECRET_LEAST_BYTES, limits::SECRET_BYTES);
    if value.trim_ascii().len() < least {
        let message =
            format!("it has fewer than {least} bytes, too few to be told from ordinary text in a log");
        return Err(FieldProblem::new("value", message));
    }
    if value.len() > most {
        return Err(FieldProblem::new(
            "value",
            format!("it has {} bytes; the most is {most} (64 KiB)", value.len()),
        ));
    }
    Ok(())
}
