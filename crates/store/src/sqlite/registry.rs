//! Products, profiles and shared keys in SQLite.

use giga_ports::StoreError;
use rusqlite::Connection;

use super::persist::{insert, upsert, write};
use super::read;
use crate::engine::{RegistryLoaded, RegistryNeeds, RegistryWrites};
use crate::rows::{self, PRODUCTS, PROFILES, SECRETS, text};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn load(connection: &Connection, needs: &RegistryNeeds) -> Result<RegistryLoaded> {
    let mut loaded = RegistryLoaded::default();
    if needs.products {
        let all = read(connection, &sql::select(&PRODUCTS, ""), Vec::new(), &PRODUCTS, rows::product)?;
        loaded.products = all.into_iter().map(|product| (product.id.clone(), product)).collect();
    }
    let newest = sql::select(&PROFILES, "WHERE product_id = $1 AND name = $2 ORDER BY version DESC LIMIT 1");
    for key @ (product, name) in &needs.profiles {
        let values = vec![text(product), name.as_str().into()];
        let found = read(connection, &newest, values, &PROFILES, rows::profile)?.pop();
        loaded.profiles.extend(found.map(|profile| (key.clone(), profile)));
    }
    let by_name = sql::select(&SECRETS, "WHERE name = $1");
    for name in &needs.keys {
        let found = read(connection, &by_name, vec![text(name)], &SECRETS, rows::shared_key)?.pop();
        loaded.keys.extend(found.map(|key| (key.name.clone(), key)));
    }
    Ok(loaded)
}

pub(super) fn persist(connection: &Connection, writes: &RegistryWrites) -> Result<()> {
    let products = writes.put_products.iter().map(rows::product_row);
    write(connection, &upsert(&PRODUCTS, sql::replace_excluded), products)?;
    write(connection, &insert(&PROFILES), writes.insert_profiles.iter().map(rows::profile_row))?;
    write(connection, &insert(&SECRETS), writes.insert_keys.iter().map(rows::shared_key_row))?;
    let put = upsert(&SECRETS, sql::replace_excluded);
    write(connection, &put, writes.put_keys.iter().map(rows::shared_key_row))
}
