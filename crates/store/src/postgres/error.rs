//! What PostgreSQL's errors mean: will the same batch go through when it is run again?

use giga_ports::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

pub(crate) fn failure(error: Error) -> StoreError {
    let reason = describe(&error);
    let source: Option<Box<dyn std::error::Error + Send + Sync>> = Some(Box::new(error));
    match source.as_ref().and_then(|error| error.downcast_ref::<Error>()) {
        Some(error) if is_passing(error) => StoreError::Unavailable { reason, source },
        _ => StoreError::Broken { reason, source },
    }
}

/// The driver's own text is "db error"; what happened stands in its causes.
fn describe(error: &Error) -> String {
    if let Some(db) = error.as_db_error() {
        let detail = db.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        return format!("{}: {}{detail} [{}]", db.severity(), db.message(), db.code().code());
    }
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The connection is gone, and nothing is known of the server.
pub(crate) fn is_cut(error: &Error) -> bool {
    let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN];
    error.is_closed() || error.code().is_some_and(|code| ended.contains(code))
}

fn is_passing(error: &Error) -> bool {
    let Some(code) = error.code() else {
        // Not the server's word: the connection broke, or never came to be. What we sent wrongly is lasting.
        return error.is_closed() || is_of_the_connection(error);
    };
    let one_of = [
        // Somebody else was at the same rows; a second look finds what they left.
        SqlState::UNIQUE_VIOLATION,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        // Took too long, or an operator stepped in.
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        // The server is a standby now: a failover is under way.
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    // Connection trouble, too little of something, an operator's intervention, trouble outside of the database.
    let classes = ["08", "53", "57", "58"];
    one_of.contains(code) || classes.iter().any(|class| code.code().starts_with(class))
}

fn is_of_the_connection(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    // The kind is private to the driver; these are the texts of a lost or a late connection.
    matches!(error.to_string().as_str(), "timeout waiting for server" | "error connecting to server")
}
