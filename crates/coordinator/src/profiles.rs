//! Profiles: kept by version, and filled into the manifests that name one.
//!
//! A version never changes, so what a job was made from stays known for ever: the snapshot says which version it was,
//! and the persona is kept with the job.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use giga_domain::manifest::{
    Draft, Manifest, PROFILE_NAME_RULE, Persona, ProfileRef, is_profile_name, suggest,
};
use giga_domain::{Actor, ProductId, Profile, ProfileContent};
use giga_ports::store::AddProfile;
use parking_lot::Mutex;

use crate::{Coordinator, Error, FieldProblem};

/// Profiles that one call has looked up: a thousand jobs of one profile are one look.
#[derive(Debug, Default)]
pub struct KnownProfiles(HashMap<(ProductId, String, Option<u32>), Option<Arc<Profile>>>);

/// Versions that were read last. A version never changes, so what is here is true for ever.
#[derive(Debug, Default)]
pub(crate) struct RecentProfiles(Mutex<VecDeque<Arc<Profile>>>);

impl RecentProfiles {
    /// A submit needs its own back right after it was read; that many submits may come between.
    const MOST: usize = 32;

    fn put(&self, profile: &Arc<Profile>) {
        let mut recent = self.0.lock();
        recent.retain(|known| !is(known, &profile.product, &profile.name, profile.version));
        recent.push_back(Arc::clone(profile));
        if recent.len() > Self::MOST {
            recent.pop_front();
        }
    }

    fn get(&self, product: &ProductId, name: &str, version: u32) -> Option<Arc<Profile>> {
        let recent = self.0.lock();
        recent.iter().find(|known| is(known, product, name, version)).cloned()
    }
}

fn is(profile: &Profile, product: &ProductId, name: &str, version: u32) -> bool {
    profile.version == version && profile.name == name && profile.product == *product
}

impl Coordinator {
    /// The next version, or the newest where nothing changed.
    pub async fn add_profile(
        &self,
        product: ProductId,
        name: String,
        content: ProfileContent,
        actor: Actor,
    ) -> Result<Profile, Error> {
        if !is_profile_name(&name) {
            return Err(FieldProblem::new("name", format!("it must be {PROFILE_NAME_RULE}")).into());
        }
        Ok(self.core.store.add_profile(AddProfile { product, name, content, actor }).await?)
    }

    /// The newest version of each, by name.
    pub async fn profiles(&self, product: &ProductId) -> Result<Vec<Profile>, Error> {
        Ok(self.core.store.read().profiles(product).await?)
    }

    /// That version, or the newest.
    pub async fn profile(
        &self,
        product: &ProductId,
        name: &str,
        version: Option<u32>,
    ) -> Result<Option<Profile>, Error> {
        Ok(self.core.store.read().profile(product, name, version).await?)
    }

    /// The manifest with what its profile fills in, and the body. Whatever is submitted goes through here, once it is
    /// known which product it is for. `key` is the idempotency key where it stands beside the manifest.
    pub async fn resolve(
        &self,
        product: &ProductId,
        draft: Draft,
        key: Option<&str>,
    ) -> Result<(Manifest, String), Error> {
        self.resolve_among(&mut KnownProfiles::default(), product, draft, key).await
    }

    /// The same for one of many.
    pub async fn resolve_among(
        &self,
        known: &mut KnownProfiles,
        product: &ProductId,
        draft: Draft,
        key: Option<&str>,
    ) -> Result<(Manifest, String), Error> {
        let Some(named) = draft.persona() else { return Ok(draft.finish(None)?) };
        let place = (product.clone(), named.name.clone(), named.version);
        let found = if let Some(found) = known.0.get(&place) {
            found.clone()
        } else {
            let found = self.version_of(product, &named).await?;
            known.0.insert(place, found.clone());
            found
        };
        let Some(newest) = found else {
            let message = self.no_such_profile(product, &named).await?;
            return Err(draft.refuse_persona(&message).into());
        };
        let key = key.map(str::to_owned).or_else(|| draft.idempotency_key().map(str::to_owned));
        let Some(key) = key.filter(|_| named.version.is_none()) else {
            return Ok(draft.finish(Some(&newest))?);
        };
        match draft.clone().finish(Some(&newest)) {
            Ok(resolved) => Ok(resolved),
            // A repetition is recognised by what was written, whatever the profile has become since.
            Err(error) => match self.profile_behind(product, &key, &named.name).await? {
                Some(older) => Ok(draft.finish(Some(&older)).map_err(|_| error)?),
                None => Err(error.into()),
            },
        }
    }

    /// The version that filled the job of this key, where it is of this profile.
    async fn profile_behind(
        &self,
        product: &ProductId,
        key: &str,
        name: &str,
    ) -> Result<Option<Profile>, Error> {
        let Some(job) = self.core.store.read().job_by_key(product, key).await? else { return Ok(None) };
        let Some(text) = self.core.store.read().job_text(job.id).await? else { return Ok(None) };
        let persona = text.manifest.get("persona").and_then(serde_json::Value::as_str);
        let made_from = persona.and_then(|persona| persona.split_once('@')).filter(|(of, _)| *of == name);
        match made_from.and_then(|(_, version)| version.parse().ok()) {
            Some(version) => self.profile(product, name, Some(version)).await,
            None => Ok(None),
        }
    }

    /// From memory, where that very version was read before.
    async fn version_of(
        &self,
        product: &ProductId,
        named: &ProfileRef,
    ) -> Result<Option<Arc<Profile>>, Error> {
        let known = named.version.and_then(|version| self.caches.profiles.get(product, &named.name, version));
        if known.is_some() {
            return Ok(known);
        }
        let read = self.profile(product, &named.name, named.version).await?.map(Arc::new);
        if let Some(profile) = &read {
            self.caches.profiles.put(profile);
        }
        Ok(read)
    }

    /// For the end of a sentence that begins with the field.
    async fn no_such_profile(&self, product: &ProductId, named: &ProfileRef) -> Result<String, Error> {
        let name = &named.name;
        if let (Some(version), Some(newest)) = (named.version, self.profile(product, name, None).await?) {
            return Ok(format!(
                "names version {version} of the profile {name}, of which there are versions 1 to {}; did you mean `{name}@{}`?",
                newest.version, newest.version
            ));
        }
        let known = self.profiles(product).await?;
        let hint = match suggest(name, known.iter().map(|profile| profile.name.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("make it with `giga profile add {name} FILE.md`"),
            None => "see what there is with `giga profile list`".to_owned(),
        };
        Ok(format!("names the profile {name}, which the product {product} does not have; {hint}"))
    }

    /// What the engine is given before the body.
    pub(crate) async fn persona_of(
        &self,
        product: &ProductId,
        persona: Option<&Persona>,
    ) -> Result<Option<String>, Error> {
        let Some(persona) = persona else { return Ok(None) };
        let named = ProfileRef { name: persona.name.clone(), version: Some(persona.version) };
        if let Some(profile) = self.version_of(product, &named).await? {
            return Ok(Some(profile.content.persona.clone()).filter(|text| !text.trim().is_empty()));
        }
        let message = self.no_such_profile(product, &named).await?;
        Err(FieldProblem::new("persona", message).into())
    }
}
