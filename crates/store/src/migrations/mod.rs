//! Versioned schema changes, embedded in the binary. Which are still to be run is decided here, purely; running
//! them, inside one transaction and under a lock, is the databases' part.
//!
//! A published migration is never edited: its checksum is kept beside its version, and a database that was made
//! by another text, or by a newer binary, is refused rather than guessed at.

use giga_ports::StoreError;
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) version: i64,
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

/// In order of version, from 1, without gaps.
pub(crate) const SQLITE: &[Migration] = &[
    Migration { version: 1, name: "init", sql: include_str!("sqlite/0001_init.sql") },
    Migration { version: 2, name: "dispatch", sql: include_str!("sqlite/0002_dispatch.sql") },
    Migration { version: 3, name: "topics", sql: include_str!("sqlite/0003_topics.sql") },
    Migration {
        version: 4,
        name: "budgets_and_graphs",
        sql: include_str!("sqlite/0004_budgets_and_graphs.sql"),
    },
    Migration { version: 5, name: "effects", sql: include_str!("sqlite/0005_effects.sql") },
    Migration { version: 6, name: "queue_counts", sql: include_str!("sqlite/0006_queue_counts.sql") },
    Migration { version: 7, name: "shipping", sql: include_str!("sqlite/0007_shipping.sql") },
    Migration { version: 8, name: "key_rotation", sql: include_str!("sqlite/0008_key_rotation.sql") },
    Migration { version: 9, name: "audit", sql: include_str!("sqlite/0009_audit.sql") },
    Migration { version: 10, name: "secrets", sql: include_str!("sqlite/0010_secrets.sql") },
    Migration { version: 11, name: "conversation", sql: include_str!("sqlite/0011_conversation.sql") },
    Migration { version: 12, name: "run_model", sql: include_str!("sqlite/0012_run_model.sql") },
    Migration { version: 13, name: "units", sql: include_str!("sqlite/0013_units.sql") },
    Migration { version: 14, name: "pools", sql: include_str!("sqlite/0014_pools.sql") },
];

pub(crate) const POSTGRES: &[Migration] = &[
    Migration { version: 1, name: "init", sql: include_str!("postgres/0001_init.sql") },
    Migration { version: 2, name: "dispatch", sql: include_str!("postgres/0002_dispatch.sql") },
    Migration { version: 3, name: "topics", sql: include_str!("postgres/0003_topics.sql") },
    Migration {
        version: 4,
        name: "budgets_and_graphs",
        sql: include_str!("postgres/0004_budgets_and_graphs.sql"),
    },
    Migration { version: 5, name: "effects", sql: include_str!("postgres/0005_effects.sql") },
    Migration { version: 6, name: "queue_counts", sql: include_str!("postgres/0006_queue_counts.sql") },
    Migration { version: 7, name: "shipping", sql: include_str!("postgres/0007_shipping.sql") },
    Migration { version: 8, name: "key_rotation", sql: include_str!("postgres/0008_key_rotation.sql") },
    Migration { version: 9, name: "audit", sql: include_str!("postgres/0009_audit.sql") },
    Migration { version: 10, name: "secrets", sql: include_str!("postgres/0010_secrets.sql") },
    Migration { version: 11, name: "conversation", sql: include_str!("postgres/0011_conversation.sql") },
    Migration { version: 12, name: "run_model", sql: include_str!("postgres/0012_run_model.sql") },
    Migration { version: 13, name: "units", sql: include_str!("postgres/0013_units.sql") },
    Migration { version: 14, name: "pools", sql: include_str!("postgres/0014_pools.sql") },
];

impl Migration {
    pub(crate) fn checksum(&self) -> String {
        const_hex::encode(Sha256::digest(self.sql.as_bytes()))
    }
}

/// The migrations that the database lacks. `applied` are its versions with their checksums, in order.
pub(crate) fn pending<'m>(
    known: &'m [Migration],
    applied: &[(i64, String)],
) -> Result<&'m [Migration], StoreError> {
    let newest = known.last().map_or(0, |migration| migration.version);
    if let Some((version, _)) = applied.last().filter(|(version, _)| *version > newest) {
        return Err(StoreError::broken_because(format!(
            "its schema is at version {version} and this binary knows versions up to {newest}: \
             start the newer giga that upgraded it"
        )));
    }
    for (migration, (version, checksum)) in known.iter().zip(applied) {
        if *version != migration.version || *checksum != migration.checksum() {
            return Err(StoreError::broken_because(format!(
                "its schema migration {version} is not migration {} (`{}`) of this binary: \
                 it was made by something else",
                migration.version, migration.name
            )));
        }
    }
    Ok(&known[applied.len().min(known.len())..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(known: &[Migration]) -> Vec<(i64, String)> {
        known.iter().map(|migration| (migration.version, migration.checksum())).collect()
    }

    #[test]
    fn versions_count_up_from_one() {
        for known in [SQLITE, POSTGRES] {
            assert!(known.iter().zip(1..).all(|(migration, version)| migration.version == version));
        }
        assert_eq!(SQLITE.len(), POSTGRES.len(), "both databases have the same history");
    }

    #[test]
    fn what_was_applied_is_not_applied_again() {
        assert_eq!(pending(SQLITE, &[]).unwrap().len(), SQLITE.len());
        assert!(pending(SQLITE, &applied(SQLITE)).unwrap().is_empty());
    }

    #[test]
    fn a_newer_or_foreign_schema_is_refused() {
        let mut newer = applied(SQLITE);
        newer.push((99, "?".into()));
        let text = pending(SQLITE, &newer).unwrap_err().to_string();
        assert!(text.contains("at version 99") && text.contains("newer giga"), "{text}");
        let mut foreign = applied(SQLITE);
        foreign[0].1 = "0".repeat(64);
        let text = pending(SQLITE, &foreign).unwrap_err().to_string();
        assert!(text.contains("migration 1"), "{text}");
    }
}
