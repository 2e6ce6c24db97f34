//! Versioned schema changes, embedded in the binary. Which are still to be run is decided here, purely; running
//! them, inside one transaction and under a lock, is the databases' part.
//!
//! A published migration is never edited: its checksum is kept beside its version, and a database that was made
//! by another text is refused rather than guessed at. One that a newer binary has migrated is used as long as that
//! binary says it can be: what is new since the last release only adds (ADR 28), so that old and new coordinators
//! work side by side.

mod additive;

use giga_ports::StoreError;
use sha2::{Digest, Sha256};

/// The newest version that the last release knows (`tests/upgrade/last-release`). Binaries that know it can use a database
/// with everything after it; older ones cannot.
pub(crate) const LAST_RELEASE: i64 = 12;
/// The first version whose migrations are kept in `schema_additions`. A binary of before looks into `schema_migrations` alone
/// and refuses whatever it finds there and does not know, also what would not be in its way.
pub(crate) const FIRST_ADDITION: i64 = 13;

/// As [`Applied`]. What is in the first table was in the way of every binary that does not know it.
pub(crate) const SELECT_APPLIED: &str = "SELECT version, checksum, version AS readable_from FROM schema_migrations \
     UNION ALL SELECT version, checksum, readable_from FROM schema_additions ORDER BY version";

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

    /// What a binary has to know to use a database that has had this one.
    pub(crate) fn readable_from(&self) -> i64 {
        self.version.min(LAST_RELEASE)
    }
}

/// A migration that a database has had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    pub(crate) version: i64,
    pub(crate) checksum: String,
    /// Binaries that know this version can use the database all the same. Those of `schema_migrations` have to be known.
    pub(crate) readable_from: i64,
}

/// The migrations that the database lacks. `applied` are those that it has had, in order.
pub(crate) fn pending<'m>(
    known: &'m [Migration],
    applied: &[Applied],
) -> Result<&'m [Migration], StoreError> {
    let newest = known.last().map_or(0, |migration| migration.version);
    let needed =
        applied.iter().filter(|applied| applied.version > newest).map(|applied| applied.readable_from);
    if let (Some(needed), Some(last)) = (needed.max(), applied.last())
        && needed > newest
    {
        return Err(StoreError::broken_because(format!(
            "its schema is at version {}, which takes a giga that knows at least version {needed}, and this binary knows versions up \
             to {newest}: start the newer giga that upgraded it",
            last.version
        )));
    }
    for (migration, Applied { version, checksum, .. }) in known.iter().zip(applied) {
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

    fn applied(known: &[Migration]) -> Vec<Applied> {
        let of = |migration: &Migration| Applied {
            version: migration.version,
            checksum: migration.checksum(),
            readable_from: migration.readable_from(),
        };
        known.iter().map(of).collect()
    }

    fn later(version: i64, readable_from: i64) -> Applied {
        Applied { version, checksum: "?".to_owned(), readable_from }
    }

    #[test]
    fn versions_count_up_from_one() {
        for known in [SQLITE, POSTGRES] {
            assert!(known.iter().zip(1..).all(|(migration, version)| migration.version == version));
            assert!(known.len() as i64 >= LAST_RELEASE);
        }
        assert_eq!(SQLITE.len(), POSTGRES.len(), "both databases have the same history");
    }

    #[test]
    fn what_was_applied_is_not_applied_again() {
        assert_eq!(pending(SQLITE, &[]).unwrap().len(), SQLITE.len());
        assert!(pending(SQLITE, &applied(SQLITE)).unwrap().is_empty());
    }

    #[test]
    fn a_newer_schema_is_used_as_long_as_it_can_be() {
        let newest = SQLITE.len() as i64;
        let mut there = applied(SQLITE);
        there.push(later(newest + 1, newest));
        assert!(pending(SQLITE, &there).unwrap().is_empty(), "it only adds");
        there.push(later(newest + 2, newest + 1));
        let text = pending(SQLITE, &there).unwrap_err().to_string();
        let needed = format!(
            "at version {}, which takes a giga that knows at least version {}",
            newest + 2,
            newest + 1
        );
        assert!(text.contains(&needed) && text.contains("newer giga"), "{text}");
        there.push(later(newest + 3, newest - 1));
        assert!(pending(SQLITE, &there).is_err(), "what one needs, all that come after it need");
        // The last release meets the database of this one.
        let known = &SQLITE[..LAST_RELEASE as usize];
        assert!(pending(known, &applied(SQLITE)).unwrap().is_empty());
        assert!(pending(&known[..known.len() - 1], &applied(SQLITE)).is_err(), "the one before it does not");
    }

    #[test]
    fn a_foreign_schema_is_refused() {
        let mut foreign = applied(SQLITE);
        foreign[0].checksum = "0".repeat(64);
        let text = pending(SQLITE, &foreign).unwrap_err().to_string();
        assert!(text.contains("migration 1"), "{text}");
    }
}
