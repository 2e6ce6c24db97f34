//! Named secrets, sealed.

use giga_domain::{SealedSecret, Secret};

use super::Kind::{Bytes, Int, Text};
use super::{Cell, Fields, Read, Row, Table, json, text};

pub(crate) const JOB_SECRETS: Table = Table {
    name: "job_secrets",
    key: 2,
    columns: &[
        ("product_id", Text),
        ("name", Text),
        ("version", Int),
        ("key_id", Text),
        ("created_at", Int),
        ("updated_at", Int),
        ("updated_by", Text),
        ("sealed", Bytes),
    ],
};

/// What may be shown.
pub(crate) const JOB_SECRET_LABELS: Table = Table {
    name: "job_secrets",
    key: 2,
    columns: &[
        ("product_id", Text),
        ("name", Text),
        ("version", Int),
        ("key_id", Text),
        ("created_at", Int),
        ("updated_at", Int),
        ("updated_by", Text),
    ],
};

pub(crate) fn sealed_secret_row(sealed: &SealedSecret) -> Row {
    let secret = &sealed.secret;
    vec![
        text(&secret.product),
        text(&secret.name),
        secret.version.into(),
        secret.key_id.as_str().into(),
        secret.created_at.into(),
        secret.updated_at.into(),
        json(&secret.updated_by),
        Cell::Bytes(sealed.sealed.clone()),
    ]
}

/// [`JOB_SECRET_LABELS`].
pub(crate) fn secret(fields: &mut Fields<'_>) -> Read<Secret> {
    Ok(Secret {
        product: fields.parse()?,
        name: fields.parse()?,
        version: fields.count()?,
        key_id: fields.text()?.to_owned(),
        created_at: fields.time()?,
        updated_at: fields.time()?,
        updated_by: fields.json()?,
    })
}

/// [`JOB_SECRETS`].
pub(crate) fn sealed_secret(fields: &mut Fields<'_>) -> Read<SealedSecret> {
    Ok(SealedSecret { secret: secret(fields)?, sealed: fields.bytes()?.to_vec() })
}
