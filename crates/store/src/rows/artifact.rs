//! Files that runs leave behind.

use giga_domain::{Artifact, Epoch};

use super::Kind::{Int, Text};
use super::{Fields, Read, Row, Table, text};

pub(crate) const ARTIFACTS: Table = Table {
    name: "artifacts",
    key: 1,
    columns: &[
        ("id", Text),
        ("job_id", Text),
        ("product_id", Text),
        ("lease_epoch", Int),
        ("name", Text),
        ("media_type", Text),
        ("size", Int),
        ("created_at", Int),
    ],
};

/// Not a table: what [`artifact_bytes`] reads.
pub(crate) const ARTIFACT_BYTES: Table = Table { name: "", key: 0, columns: &[("size", Int)] };

pub(crate) fn artifact_bytes(fields: &mut Fields<'_>) -> Read<u64> {
    fields.count()
}

pub(crate) fn artifact_row(artifact: &Artifact) -> Row {
    vec![
        text(artifact.id),
        text(artifact.job),
        artifact.product.as_str().into(),
        artifact.epoch.0.into(),
        artifact.name.as_str().into(),
        artifact.media_type.as_str().into(),
        artifact.size.into(),
        artifact.created_at.into(),
    ]
}

/// [`ARTIFACTS`].
pub(crate) fn artifact(fields: &mut Fields<'_>) -> Read<Artifact> {
    Ok(Artifact {
        id: fields.parse()?,
        job: fields.parse()?,
        product: fields.parse()?,
        epoch: Epoch(fields.count()?),
        name: fields.parse()?,
        media_type: fields.text()?.to_owned(),
        size: fields.count()?,
        created_at: fields.time()?,
    })
}
