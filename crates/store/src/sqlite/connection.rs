//! Opening the file, its schema, and what its errors mean.

use std::fs::{DirBuilder, File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use giga_domain::Timestamp;
use giga_ports::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::migrations::{self, Applied, FIRST_ADDITION, Migration, SQLITE};

/// How long another process on the same file is waited for.
const BUSY: Duration = Duration::from_secs(5);
/// Every statement of the writer and the readers fits; only lists by unusual filters come and go.
const STATEMENTS: usize = 128;

pub(crate) fn open_writer(path: &Path, now: Timestamp) -> Result<Connection, StoreError> {
    create(path).map_err(|error| StoreError::Unavailable {
        reason: format!("{} cannot be created: {error}", path.display()),
        source: Some(Box::new(error)),
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let prepare = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        into_wal(&connection, path)?;
        // What is acknowledged is on disk: in WAL mode only FULL syncs at every commit.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -16_384)?;
        connection.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
        Ok(connection)
    };
    let mut connection = prepare().map_err(|error| named(path, failure(error)))?;
    migrate(&mut connection, now).map_err(|error| named(path, error))?;
    Ok(connection)
}

/// A new file changes its mode by going from a shared lock to an exclusive one. SQLite does not wait there, since two
/// that did would wait for each other: so those who open a file at once take turns at its folder. Where that cannot be
/// locked, the second one is told that the file is busy.
fn into_wal(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    let folder = path.parent().and_then(|folder| File::open(folder).ok());
    let _turn = folder.filter(|folder| folder.lock().is_ok());
    connection.pragma_update(None, "journal_mode", "WAL")
}

pub(crate) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "cache_size", -4_096)?;
        Ok(connection)
    };
    open().map_err(|error| named(path, failure(error)))
}

/// For its owner alone: it holds prompts and the hashes of tokens. SQLite gives the files beside it the same rights.
fn create(path: &Path) -> std::io::Result<()> {
    let mut directory = DirBuilder::new();
    directory.recursive(true);
    let mut file = OpenOptions::new();
    // Never opened where it is there: closing it would take the locks of this process on it away.
    file.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        directory.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        directory.create(parent)?;
    }
    match file.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

fn migrate(connection: &mut Connection, now: Timestamp) -> Result<(), StoreError> {
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    let run = |transaction: &rusqlite::Transaction<'_>| -> rusqlite::Result<Vec<Applied>> {
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS schema_migrations ( \
                 version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, \
                 applied_at INTEGER NOT NULL) STRICT; \
             CREATE TABLE IF NOT EXISTS schema_additions ( \
                 version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, \
                 readable_from INTEGER NOT NULL, applied_at INTEGER NOT NULL) STRICT",
        )?;
        let mut applied = transaction.prepare(migrations::SELECT_APPLIED)?;
        let row = |row: &rusqlite::Row<'_>| {
            Ok(Applied { version: row.get(0)?, checksum: row.get(1)?, readable_from: row.get(2)? })
        };
        applied.query_map([], row)?.collect()
    };
    let applied = run(&transaction).map_err(failure)?;
    for migration in migrations::pending(SQLITE, &applied)? {
        let Migration { version, name, sql } = migration;
        transaction.execute_batch(sql).map_err(failure)?;
        let (checksum, at) = (migration.checksum(), now.as_millis());
        let written = if *version < FIRST_ADDITION {
            transaction.execute(
                "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ($1, $2, $3, $4)",
                (version, name, checksum, at),
            )
        } else {
            transaction.execute(
                "INSERT INTO schema_additions (version, name, checksum, readable_from, applied_at) VALUES ($1, $2, $3, $4, $5)",
                (version, name, checksum, migration.readable_from(), at),
            )
        };
        written.map_err(failure)?;
    }
    transaction.commit().map_err(failure)
}

/// Passing: somebody else has the file, the disk is full or sick. Lasting: the file is not what it should be.
pub(crate) fn failure(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::FileLockingProtocolFailed
            | ErrorCode::OutOfMemory,
        ) => StoreError::unavailable(error),
        Some(ErrorCode::NotADatabase) => StoreError::Broken {
            reason: "the file is not an SQLite database, or it is encrypted".into(),
            source: Some(Box::new(error)),
        },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::Broken {
            reason: format!("the database file is damaged ({error}): restore it from a backup"),
            source: Some(Box::new(error)),
        },
        _ => StoreError::broken(error),
    }
}

fn named(path: &Path, error: StoreError) -> StoreError {
    let name = |reason: String| format!("{}: {reason}", path.display());
    match error {
        StoreError::Unavailable { reason, source } => {
            StoreError::Unavailable { reason: name(reason), source }
        }
        StoreError::Broken { reason, source } => StoreError::Broken { reason: name(reason), source },
        other => other,
    }
}
