//! Named secrets in SQLite.

use std::collections::BTreeSet;

use giga_domain::ProductId;
use giga_ports::StoreError;
use rusqlite::Connection;

use super::persist::{upsert, write};
use super::read;
use crate::engine::{SecretWrites, SecretsLoaded};
use crate::rows::{self, JOB_SECRETS, text};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn load(connection: &Connection, products: &BTreeSet<ProductId>) -> Result<SecretsLoaded> {
    let mut loaded = SecretsLoaded::new();
    let of_product = sql::select(&JOB_SECRETS, "WHERE product_id = $1");
    for product in products {
        let all = read(connection, &of_product, vec![text(product)], &JOB_SECRETS, rows::sealed_secret)?;
        loaded.extend(all.into_iter().map(|s| ((s.secret.product.clone(), s.secret.name.clone()), s)));
    }
    Ok(loaded)
}

pub(super) fn persist(connection: &Connection, writes: &SecretWrites) -> Result<()> {
    let put = writes.put.iter().map(rows::sealed_secret_row);
    write(connection, &upsert(&JOB_SECRETS, sql::replace_excluded), put)?;
    let gone = writes.delete.iter().map(|(product, name)| vec![text(product), text(name)]);
    write(connection, "DELETE FROM job_secrets WHERE product_id = $1 AND name = $2", gone)
}
