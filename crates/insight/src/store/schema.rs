//! The tables, and which files are ours.

use rusqlite::{Connection, ErrorCode};

/// Counted up when a table changes; files of another version are moved aside.
const VERSION: i64 = 1;
/// Pages that empty tables need.
pub(super) const PAGES_MIN: u64 = 64;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS routes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS minutes (
        at INTEGER NOT NULL, route INTEGER NOT NULL, requests INTEGER NOT NULL,
        errors INTEGER NOT NULL, figures BLOB NOT NULL, PRIMARY KEY (at, route)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS events (at INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS events_at ON events (at);
    CREATE TABLE IF NOT EXISTS requests (
        at INTEGER NOT NULL, id TEXT NOT NULL, route TEXT NOT NULL, details BLOB NOT NULL
    );
    CREATE INDEX IF NOT EXISTS requests_at ON requests (at);
    CREATE INDEX IF NOT EXISTS requests_id ON requests (id);
";

/// Makes what is missing. An error of [`is_unreadable`] if the file is another's or another version's.
pub(super) fn make(connection: &Connection) -> rusqlite::Result<()> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != 0 && version != VERSION {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Whether the file itself is the trouble, not the disk or somebody who holds it.
pub(super) fn is_unreadable(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(error, rusqlite::Error::InvalidQuery)
        || matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}
