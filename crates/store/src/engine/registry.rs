//! Products, profiles and shared keys of a batch: few rows, seldom changed, so a change looks at all that could
//! contradict it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use giga_domain::product::owned_name;
use giga_domain::{Product, ProductId, Profile, Timestamp};

#[derive(Debug, Default)]
pub struct RegistryNeeds {
    /// Every product. Locked as a whole: what one may own depends on all others.
    pub products: bool,
    /// The newest version of these profiles. Locked, so that versions follow each other.
    pub profiles: BTreeSet<(ProductId, String)>,
    pub keys: BTreeSet<&'static str>,
    /// Some of the keys may be replaced. Locked as a whole: no two coordinators may replace one at once.
    pub replaces_keys: bool,
}

#[derive(Debug, Default)]
pub struct RegistryLoaded {
    pub products: BTreeMap<ProductId, Product>,
    pub profiles: HashMap<(ProductId, String), Profile>,
    pub keys: HashMap<String, SharedKey>,
}

#[derive(Debug, Default)]
pub struct RegistryWrites {
    /// Each product appears once.
    pub put_products: Vec<Product>,
    pub insert_profiles: Vec<Profile>,
    /// Those that were not there. Where somebody else was faster, the insert fails and the batch is run again.
    pub insert_keys: Vec<SharedKey>,
    /// Those that take the place of another, in order.
    pub put_keys: Vec<SharedKey>,
}

impl RegistryWrites {
    pub fn is_empty(&self) -> bool {
        self.put_products.is_empty()
            && self.insert_profiles.is_empty()
            && self.insert_keys.is_empty()
            && self.put_keys.is_empty()
    }
}

/// What every coordinator has to know and nobody else may.
#[derive(Clone)]
pub struct SharedKey {
    pub name: String,
    pub value: [u8; 32],
    pub created_at: Timestamp,
}

impl std::fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The rows while the commands of a batch are decided.
#[derive(Debug, Default)]
pub(super) struct Registry {
    loaded: RegistryLoaded,
    dirty_products: BTreeSet<ProductId>,
    writes: RegistryWrites,
}

impl Registry {
    pub(super) fn new(loaded: RegistryLoaded) -> Self {
        Self { loaded, ..Self::default() }
    }

    pub(super) fn product(&self, id: &ProductId) -> Option<&Product> {
        self.loaded.products.get(id)
    }

    /// The first of `repos` that a product other than `id` owns, and who that is.
    pub(super) fn owned_elsewhere(&self, id: &ProductId, repos: &[String]) -> Option<(String, ProductId)> {
        let others = || self.loaded.products.values().filter(|product| product.id != *id);
        repos.iter().find_map(|repo| {
            let same = |other: &String| owned_name(other) == owned_name(repo);
            let owner = others().find(|product| product.settings.repos.iter().any(same))?;
            Some((repo.clone(), owner.id.clone()))
        })
    }

    pub(super) fn put_product(&mut self, product: Product) {
        self.dirty_products.insert(product.id.clone());
        self.loaded.products.insert(product.id.clone(), product);
    }

    pub(super) fn newest_profile(&self, product: &ProductId, name: &str) -> Option<&Profile> {
        self.loaded.profiles.get(&(product.clone(), name.to_owned()))
    }

    pub(super) fn add_profile(&mut self, profile: Profile) {
        self.loaded.profiles.insert((profile.product.clone(), profile.name.clone()), profile.clone());
        self.writes.insert_profiles.push(profile);
    }

    pub(super) fn key(&self, name: &str) -> Option<&SharedKey> {
        self.loaded.keys.get(name)
    }

    pub(super) fn put_key(&mut self, key: SharedKey) {
        self.loaded.keys.insert(key.name.clone(), key.clone());
        self.writes.put_keys.push(key);
    }

    pub(super) fn add_key(&mut self, key: SharedKey) {
        self.loaded.keys.insert(key.name.clone(), key.clone());
        self.writes.insert_keys.push(key);
    }

    pub(super) fn into_writes(self) -> RegistryWrites {
        let Self { mut loaded, dirty_products, mut writes } = self;
        writes.put_products.extend(dirty_products.iter().filter_map(|id| loaded.products.remove(id)));
        writes
    }
}
