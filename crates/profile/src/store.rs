//! Store of completed minutes: one `SQLite` database, in memory or in a file, which never grows
//! beyond its limit.
//!
//! A row is one route's part of a minute; its stacks are in the packed form of crates/spy,
//! compressed. The oldest hour is deleted to make room for new data. Each row has the start time of
//! its server run, because each run counts its own generations.

mod blob;

use crate::current_minute::Minute;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use samovar_spy::profile::Profile;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PAGE_BYTES: u64 = 4_096;
/// Number of pages that empty tables need.
const PAGES_MIN: u64 = 64;
const HOUR_S: u64 = 3_600;
/// Schema version, increased when a table changes. A file with an unknown version is renamed and
/// replaced.
const VERSION: i64 = 2;
/// Maximum time that a write waits for a tool that reads the file.
const BUSY_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of hours deleted at once to make room.
const FORGOTTEN_HOURS_MAX: u32 = 48;
/// Maximum number of rows that one query reads, latest first.
pub(crate) const ROWS_MAX: usize = 20_000;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS routes (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE IF NOT EXISTS samples (
        at INTEGER NOT NULL, run INTEGER NOT NULL, generation INTEGER NOT NULL,
        route INTEGER NOT NULL, model TEXT NOT NULL, requests INTEGER NOT NULL,
        samples INTEGER NOT NULL, stacks BLOB NOT NULL, pool TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX IF NOT EXISTS samples_at ON samples (at);
";

/// Migration from the first version, in which rows of other pools had no generation, and only the
/// route's name identified the pool.
const FROM_FIRST: &str = "
    ALTER TABLE samples ADD COLUMN pool TEXT NOT NULL DEFAULT '';
";

/// Limits of the stored data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreLimits {
    pub(crate) bytes_max: u64,
    pub(crate) keep: Duration,
}

/// Reason why minutes cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[error("the profiles `{}`: {source}", path.display())]
pub(crate) struct StoreError {
    path: PathBuf,
    source: rusqlite::Error,
}

/// Selects rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) route: Option<String>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Pool, empty for the default pool; `None`: all pools.
    pub(crate) pool: Option<String>,
    /// Run of the server, and generation.
    pub(crate) generation: Option<(u64, u64)>,
}

/// An unpacked row.
#[derive(Clone, Debug)]
pub(crate) struct StoredProfile {
    pub(crate) generation: u64,
    pub(crate) requests: u64,
    pub(crate) profile: Profile,
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Store {
    connection: Connection,
    path: PathBuf,
    limits: StoreLimits,
    /// Start of this run of the server, in seconds since 1970.
    run: u64,
}

impl Store {
    /// Opens the database in this file, or in memory. A file that is not a valid database of ours
    /// is renamed and replaced.
    pub(crate) fn open(
        path: Option<&Path>,
        limits: StoreLimits,
        run: u64,
    ) -> Result<Store, StoreError> {
        let name = path.unwrap_or(Path::new("in memory")).to_owned();
        let failed = |source| StoreError { path: name.clone(), source };
        let opened = match path {
            None => Connection::open_in_memory(),
            Some(path) => Connection::open(path),
        };
        let prepared =
            opened.and_then(|mut connection| prepare(&mut connection, limits).map(|()| connection));
        let connection = match (prepared, path) {
            (Ok(connection), _) => connection,
            (Err(error), Some(path)) if is_unreadable(&error) => {
                let aside = path.with_extension("unreadable");
                std::fs::rename(path, aside).map_err(|_| failed(error))?;
                let mut connection = Connection::open(path).map_err(failed)?;
                prepare(&mut connection, limits).map_err(failed)?;
                connection
            }
            (Err(error), _) => return Err(failed(error)),
        };
        Ok(Store { connection, path: name, limits, run })
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError { path: path.clone(), source }
    }

    /// Stores a minute, completely or not at all, and deletes data that exceeds the limits.
    pub(crate) fn put(&mut self, minute: &Minute) -> Result<(), StoreError> {
        let failed = self.failed();
        self.make_room(minute.at).map_err(&failed)?;
        self.insert(minute).map_err(failed)
    }

    fn insert(&mut self, minute: &Minute) -> rusqlite::Result<()> {
        let run = self.run;
        let transaction = self.connection.transaction()?;
        for (route, row) in &minute.rows {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO routes (name) VALUES (?1)")?
                .execute([&**route])?;
            let stacks = blob::of(&row.profile);
            let samples = row.profile.total().samples;
            transaction
                .prepare_cached(
                    "INSERT INTO samples
                         (at, run, generation, route, model, requests, samples, stacks, pool)
                     VALUES
                         (?1, ?2, ?3, (SELECT id FROM routes WHERE name = ?4), ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute(params![
                    minute.at,
                    run,
                    row.generation,
                    &**route,
                    row.model.name(),
                    row.requests,
                    samples,
                    stacks,
                    &*row.pool
                ])?;
        }
        transaction.commit()
    }

    fn make_room(&mut self, now: u64) -> rusqlite::Result<()> {
        self.forget_before(now.saturating_sub(self.limits.keep.as_secs()))?;
        for _ in 0..FORGOTTEN_HOURS_MAX {
            if self.used_bytes()? <= self.limits.bytes_max / 10 * 9 {
                break;
            }
            let oldest = "SELECT MIN(at) FROM samples";
            let oldest: Option<u64> = self.connection.query_row(oldest, [], |row| row.get(0))?;
            let Some(oldest) = oldest else { break };
            self.forget_before(oldest - oldest % HOUR_S + HOUR_S)?;
        }
        Ok(())
    }

    fn forget_before(&mut self, at: u64) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let gone = transaction.execute("DELETE FROM samples WHERE at < ?1", [at])?;
        if gone > 0 {
            let unused = "DELETE FROM routes WHERE id NOT IN (SELECT route FROM samples)";
            transaction.execute(unused, [])?;
        }
        transaction.commit()
    }

    /// Returns the bytes in use.
    fn used_bytes(&self) -> rusqlite::Result<u64> {
        let read =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        Ok((read("page_count")? - read("freelist_count")?) * PAGE_BYTES)
    }

    /// Passes each row to `take`, latest first. Returns true if there were more rows than one query
    /// reads.
    pub(crate) fn rows(
        &self,
        of: &Selection,
        mut take: impl FnMut(StoredProfile),
    ) -> Result<bool, StoreError> {
        let mut read = || -> rusqlite::Result<bool> {
            let (run, generation) = of.generation.unzip();
            let mut statement = self.connection.prepare_cached(
                "SELECT generation, requests, stacks FROM samples
                 WHERE at >= ?1 AND at < ?2 AND (?3 IS NULL OR (run = ?3 AND generation = ?4))
                 AND (?5 IS NULL OR route = (SELECT id FROM routes WHERE name = ?5))
                 AND (?6 IS NULL OR pool = ?6)
                 ORDER BY at DESC LIMIT ?7",
            )?;
            let limit = ROWS_MAX as u64 + 1;
            let mut rows = statement
                .query(params![of.from, of.to, run, generation, of.route, of.pool, limit])?;
            let mut left = ROWS_MAX;
            while let Some(row) = rows.next()? {
                if left == 0 {
                    return Ok(true);
                }
                left -= 1;
                let stacks: Vec<u8> = row.get(2)?;
                // Unreadable rows are skipped: the disk may be damaged.
                if let Some(profile) = blob::read(&stacks) {
                    take(StoredProfile { generation: row.get(0)?, requests: row.get(1)?, profile });
                }
            }
            Ok(false)
        };
        read().map_err(self.failed())
    }

    /// Returns the routes as (name, samples), most samples first.
    pub(crate) fn routes(&self, of: &Selection) -> Result<Vec<(String, u64)>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(String, u64)>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT name, SUM(samples) AS all_of_it FROM samples JOIN routes ON id = route
                 WHERE at >= ?1 AND at < ?2 AND (?3 IS NULL OR pool = ?3)
                 GROUP BY route HAVING all_of_it > 0
                 ORDER BY all_of_it DESC, name LIMIT 1000",
            )?;
            let rows = statement.query_map(params![of.from, of.to, of.pool], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            rows.collect()
        };
        read().map_err(self.failed())
    }

    /// Returns the pool's latest generation of this run before `generation`, and the last minute in
    /// which it was sampled.
    pub(crate) fn before(
        &self,
        pool: &str,
        generation: u64,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let sql = "SELECT generation, MAX(at) FROM samples
             WHERE run = ?1 AND pool = ?2 AND generation < ?3 AND generation > 0 AND samples > 0
             GROUP BY generation ORDER BY generation DESC LIMIT 1";
        let found = self.connection.query_row(sql, params![self.run, pool, generation], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        found.optional().map_err(self.failed())
    }

    /// Returns the pool's latest generation of this run that was sampled.
    pub(crate) fn latest(&self, pool: &str) -> Result<Option<u64>, StoreError> {
        let sql =
            "SELECT MAX(generation) FROM samples WHERE run = ?1 AND pool = ?2 AND samples > 0";
        let found = self.connection.query_row(sql, params![self.run, pool], |row| row.get(0));
        found.map_err(self.failed())
    }

    /// Returns the pool of the route's latest row; `None`: the route was not sampled.
    pub(crate) fn pool_of(&self, route: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT pool FROM samples WHERE route = (SELECT id FROM routes WHERE name = ?1)
             ORDER BY at DESC LIMIT 1";
        let found = self.connection.query_row(sql, [route], |row| row.get(0));
        found.optional().map_err(self.failed())
    }
}

fn prepare(connection: &mut Connection, limits: StoreLimits) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_LIMIT)?;
    // A transaction that reads before it writes would fail at once next to another writer.
    connection.set_transaction_behavior(TransactionBehavior::Immediate);
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "journal_size_limit", limits.bytes_max / 8)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 | VERSION => {}
        1 => connection.execute_batch(FROM_FIRST)?,
        _ => return Err(rusqlite::Error::InvalidQuery),
    }
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    let pages = (limits.bytes_max / PAGE_BYTES).max(PAGES_MIN);
    connection.pragma_update(None, "max_page_count", pages)
}

/// Returns whether the file itself is invalid, as opposed to an error of the disk or a lock held by
/// another process.
pub(crate) fn is_unreadable(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(error, rusqlite::Error::InvalidQuery)
        || matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

#[cfg(test)]
mod tests;
