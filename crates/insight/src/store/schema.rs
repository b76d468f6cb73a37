//! Tables of the history, the check whether a file is one, and the conversion of older files.

use super::hours;
use rusqlite::{Connection, ErrorCode};

/// Schema version, increased when a table changes. A file with a later version is renamed.
const VERSION: i64 = 2;
/// Version without sums of hours and of all routes. [`hours::convert`] adds them.
const VERSION_WITHOUT_SUMS: i64 = 1;
/// Number of pages that empty tables need.
pub(super) const PAGES_MIN: u64 = 64;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS routes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS minutes (
        at INTEGER NOT NULL, route INTEGER NOT NULL, requests INTEGER NOT NULL,
        errors INTEGER NOT NULL, figures BLOB NOT NULL, PRIMARY KEY (at, route)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS hours (
        at INTEGER NOT NULL, route INTEGER NOT NULL, requests INTEGER NOT NULL,
        errors INTEGER NOT NULL, figures BLOB NOT NULL, PRIMARY KEY (at, route)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS events (at INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS events_at ON events (at);
    CREATE TABLE IF NOT EXISTS releases (
        at INTEGER NOT NULL, pool TEXT NOT NULL, generation INTEGER NOT NULL, label TEXT NOT NULL
    );
    CREATE INDEX IF NOT EXISTS releases_at ON releases (at);
    CREATE TABLE IF NOT EXISTS requests (
        at INTEGER NOT NULL, id TEXT NOT NULL, route TEXT NOT NULL, details BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
    CREATE INDEX IF NOT EXISTS requests_id ON requests (id);
";

/// Creates missing tables, and converts an older file. Returns an error that [`is_unreadable`]
/// accepts if the file has another origin or a later version.
pub(super) fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if !(0..=VERSION).contains(&version) {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.execute_batch(TABLES)?;
    if version == VERSION_WITHOUT_SUMS {
        hours::convert(connection)?;
    }
    connection.pragma_update(None, "user_version", VERSION)
}

/// Returns whether the file itself is invalid, as opposed to an error of the disk or a lock held by
/// another process.
pub(super) fn is_unreadable(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(error, rusqlite::Error::InvalidQuery)
        || matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}
