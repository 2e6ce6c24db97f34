//! Products, profiles and shared keys in PostgreSQL.
//!
//! Products and profiles are locked table by table: a change is rare, and what it must not contradict may be a row that
//! is not there yet.

use giga_domain::ProductId;
use giga_ports::StoreError;
use std::collections::HashSet;

use super::decode_all;
use super::load::texts;
use super::persist::put;
use super::pipeline::{Answers, Pipeline, Ticket};
use super::statements::Statements;
use crate::engine::{RegistryLoaded, RegistryNeeds, RegistryWrites};
use crate::rows::{self, PRODUCTS, PROFILES, SECRETS};

/// Where the answers will be found.
pub(super) struct Asked {
    products: Option<Ticket>,
    profiles: Option<Ticket>,
    keys: Option<Ticket>,
}

pub(super) async fn ask<'c>(
    pipeline: &mut Pipeline<'c>,
    statements: &'c Statements,
    needs: &RegistryNeeds,
) -> Asked {
    pipeline.send_if(needs.products, &statements.lock_products, Vec::new).await;
    let products = pipeline.send_if(needs.products, &statements.products, Vec::new).await;
    let named = !needs.profiles.is_empty();
    pipeline.send_if(named, &statements.lock_profiles, Vec::new).await;
    let profiles = pipeline
        .send_if(named, &statements.newest_profiles, || {
            let (products, names): (Vec<_>, Vec<_>) = needs.profiles.iter().cloned().unzip();
            vec![texts(products), texts(names)]
        })
        .await;
    pipeline.send_if(needs.replaces_keys, &statements.lock_shared_keys, Vec::new).await;
    let keys =
        pipeline.send_if(!needs.keys.is_empty(), &statements.shared_keys, || vec![texts(&needs.keys)]).await;
    Asked { products, profiles, keys }
}

impl Asked {
    pub(super) fn read(self, answers: &mut Answers) -> Result<RegistryLoaded, StoreError> {
        let products = decode_all(&answers.take(self.products), &PRODUCTS, rows::product)?;
        let profiles = decode_all(&answers.take(self.profiles), &PROFILES, rows::profile)?;
        let keys = decode_all(&answers.take(self.keys), &SECRETS, rows::shared_key)?;
        Ok(RegistryLoaded {
            products: products.into_iter().map(|product| (product.id.clone(), product)).collect(),
            profiles: profiles.into_iter().map(|p| ((p.product.clone(), p.name.clone()), p)).collect(),
            keys: keys.into_iter().map(|key| (key.name.clone(), key)).collect(),
        })
    }
}

pub(super) async fn persist<'c>(
    out: &mut Pipeline<'c>,
    s: &'c Statements,
    present: &HashSet<ProductId>,
    writes: &RegistryWrites,
) {
    let (known, new): (Vec<_>, Vec<_>) =
        writes.put_products.iter().partition(|product| present.contains(&product.id));
    put(out, &s.insert_products, &PRODUCTS, new.into_iter().map(rows::product_row)).await;
    put(out, &s.update_products, &PRODUCTS, known.into_iter().map(rows::product_row)).await;
    put(out, &s.insert_profiles, &PROFILES, writes.insert_profiles.iter().map(rows::profile_row)).await;
    put(out, &s.insert_shared_keys, &SECRETS, writes.insert_keys.iter().map(rows::shared_key_row)).await;
    // One by one: a key may be replaced twice in a batch.
    for key in &writes.put_keys {
        put(out, &s.put_shared_keys, &SECRETS, std::iter::once(rows::shared_key_row(key))).await;
    }
}
