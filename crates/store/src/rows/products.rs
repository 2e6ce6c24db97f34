//! Products, profiles and the keys that coordinators share.

use giga_domain::{Product, Profile, ProfileContent, Rev};

use super::Kind::{Int, Text};
use super::{Fields, Read, Row, Table, json, text};
use crate::engine::SharedKey;

pub(crate) const PRODUCTS: Table =
    Table { name: "products", key: 1, columns: &[("product_id", Text), ("settings", Text), ("rev", Int)] };

pub(crate) const PROFILES: Table = Table {
    name: "profiles",
    key: 3,
    columns: &[
        ("product_id", Text),
        ("name", Text),
        ("version", Int),
        ("persona", Text),
        ("defaults", Text),
        ("created_at", Int),
        ("created_by", Text),
    ],
};

pub(crate) const SECRETS: Table =
    Table { name: "secrets", key: 1, columns: &[("name", Text), ("value", Text), ("created_at", Int)] };

pub(crate) fn product_row(product: &Product) -> Row {
    vec![text(&product.id), json(&product.settings), product.rev.0.into()]
}

/// [`PRODUCTS`].
pub(crate) fn product(fields: &mut Fields<'_>) -> Read<Product> {
    Ok(Product { id: fields.parse()?, settings: fields.json()?, rev: Rev(fields.count()?) })
}

pub(crate) fn profile_row(profile: &Profile) -> Row {
    vec![
        text(&profile.product),
        profile.name.as_str().into(),
        u64::from(profile.version).into(),
        profile.content.persona.as_str().into(),
        json(&profile.content.defaults),
        profile.created_at.into(),
        json(&profile.created_by),
    ]
}

/// [`PROFILES`].
pub(crate) fn profile(fields: &mut Fields<'_>) -> Read<Profile> {
    Ok(Profile {
        product: fields.parse()?,
        name: fields.text()?.to_owned(),
        version: fields.count()?,
        content: ProfileContent { persona: fields.text()?.to_owned(), defaults: fields.json()? },
        created_at: fields.time()?,
        created_by: fields.json()?,
    })
}

pub(crate) fn shared_key_row(key: &SharedKey) -> Row {
    vec![key.name.as_str().into(), const_hex::encode(key.value).into(), key.created_at.into()]
}

/// [`SECRETS`].
pub(crate) fn shared_key(fields: &mut Fields<'_>) -> Read<SharedKey> {
    let name = fields.text()?.to_owned();
    match const_hex::decode_to_array(fields.text()?) {
        Ok(value) => Ok(SharedKey { name, value, created_at: fields.time()? }),
        Err(_) => fields.contradiction("it is not 64 hexadecimal digits"),
    }
}
