//! What a migration may do while binaries of the last release work on the same database: add.
//!
//! New tables, new indexes, new columns that may be empty or have a default. What is dropped or renamed was in use by somebody
//! until the last release was out; the first line of such a file says since when nobody uses it:
//! `-- contract: not used since version 12`.

#![cfg(test)]

use super::{LAST_RELEASE, Migration, POSTGRES, SQLITE};

const CONTRACT: &str = "-- contract: not used since version ";

/// Why a binary of the last release could not go on after this statement.
fn hurts(statement: &str) -> Option<&'static str> {
    let words: Vec<String> = statement.split_whitespace().map(str::to_ascii_uppercase).collect();
    let text = format!(" {} ", words.join(" "));
    let has = |part: &str| text.contains(part);
    match words.first().map(String::as_str).unwrap_or_default() {
        "DROP" if has(" DROP INDEX ") => None,
        "DROP" => Some("it drops what may be in use"),
        "DELETE" | "TRUNCATE" => Some("it removes rows that may be in use"),
        "ALTER" if has(" DROP ") || has(" RENAME ") => Some("it drops or renames what may be in use"),
        "ALTER" if has(" TYPE ") => Some("it changes what is read and written"),
        "ALTER" if has(" ADD CONSTRAINT ") || has(" ADD CHECK") => {
            Some("what is written without it would be refused")
        }
        "ALTER" if has(" NOT NULL ") && !has(" DEFAULT ") => Some("rows are written without it"),
        "ALTER" if has(" ADD COLUMN ") => None,
        "CREATE" if has(" UNIQUE INDEX ") => Some("what is written without it would be refused"),
        "CREATE" if has(" TRIGGER ") => Some("it changes what others write"),
        "CREATE" | "INSERT" | "" => None,
        // Filling what is new is fine, and cannot be told from changing what is old.
        "UPDATE" => Some("it changes rows that may be in use"),
        _ => Some("it is not known to only add"),
    }
}

fn statements(sql: &str) -> Vec<String> {
    let code = sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect::<Vec<_>>().join("\n");
    code.split(';').map(|statement| statement.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// `Err` with what is wrong with it.
fn check(migration: &Migration) -> Result<(), String> {
    if let Some(since) = migration.sql.strip_prefix(CONTRACT) {
        let version = since.split_whitespace().next().unwrap_or_default().trim_end_matches('.');
        return match version.parse::<i64>() {
            Ok(version) if version <= LAST_RELEASE => Ok(()),
            Ok(version) => Err(format!(
                "the last release knows version {LAST_RELEASE}, and uses what goes since {version} only"
            )),
            Err(_) => Err(format!("`{CONTRACT}` is followed by a version")),
        };
    }
    for statement in statements(migration.sql) {
        if let Some(why) = hurts(&statement) {
            return Err(format!("{why}: `{statement}`"));
        }
    }
    Ok(())
}

#[test]
fn what_is_new_since_the_last_release_only_adds() {
    for migration in SQLITE.iter().chain(POSTGRES).filter(|migration| migration.version > LAST_RELEASE) {
        if let Err(why) = check(migration) {
            panic!(
                "migration {} (`{}`) would stop coordinators of the last release, which run beside the new ones during an \
                 upgrade: {why}. See docs/adr/0028-rolling-upgrades.md",
                migration.version, migration.name
            );
        }
    }
}

#[test]
fn what_would_stop_the_last_release_is_known() {
    for (statement, is_fine) in [
        ("CREATE TABLE pools (id TEXT NOT NULL PRIMARY KEY)", true),
        ("CREATE INDEX leases_x ON leases (x)", true),
        ("ALTER TABLE leases ADD COLUMN units TEXT", true),
        ("ALTER TABLE leases ADD COLUMN units BIGINT NOT NULL DEFAULT 0", true),
        ("alter table leases\n  add column units bigint not null", false),
        ("ALTER TABLE leases DROP COLUMN units", false),
        ("ALTER TABLE leases RENAME COLUMN units TO u", false),
        ("ALTER TABLE leases RENAME TO holds", false),
        ("ALTER TABLE leases ALTER COLUMN units TYPE BIGINT", false),
        ("ALTER TABLE leases ALTER COLUMN units SET NOT NULL", false),
        ("ALTER TABLE leases ADD CONSTRAINT few CHECK (units < 9)", false),
        ("CREATE UNIQUE INDEX one ON leases (job_id)", false),
        ("DROP TABLE leases", false),
        ("TRUNCATE leases", false),
        ("DELETE FROM leases", false),
        ("UPDATE leases SET units = ''", false),
        ("GRANT ALL ON leases TO PUBLIC", false),
    ] {
        assert_eq!(hurts(statement).is_none(), is_fine, "{statement}");
    }
    let of = |sql| Migration { version: LAST_RELEASE + 1, name: "x", sql };
    assert!(check(&of("-- Gone.\nCREATE TABLE a (b TEXT);\nDROP TABLE c;")).is_err());
    assert!(check(&of("-- contract: not used since version 12.\nDROP TABLE c;")).is_ok());
    assert!(check(&of("-- contract: not used since version 13.\nDROP TABLE c;")).is_err());
    assert!(check(&of("-- contract: not used since version x\nDROP TABLE c;")).is_err());
}
