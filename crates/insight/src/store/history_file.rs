//! File of the history: writes minutes within the limits, and answers queries.

use super::hours::{self, HOUR_S};
use super::route_minute::RouteMinute;
use super::rows::{ALL_ROUTES, Event, EventKind, Minute, MinuteCosts, decode, encode};
use super::schema;
use crate::recent_requests::RecentRequest;
use crate::releases::Release;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const SECONDS_PER_DAY: u64 = 86_400;
pub(super) const PAGE_BYTES: u64 = 4_096;
/// Maximum time that a write waits for a tool that reads the file.
const BUSY_LIMIT: Duration = Duration::from_secs(2);
/// Age in seconds up to which minutes are not deleted before older hours are.
const MINUTES_KEPT_S: u64 = 2 * SECONDS_PER_DAY;
/// Maximum number of hours deleted at once to make room.
const FORGOTTEN_HOURS_MAX: u32 = 24;
/// Maximum number of rows in the result of a query.
pub(super) const ROWS_MAX: u32 = 100_000;

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreLimits {
    /// Maximum size of the file in bytes, without its write-ahead log.
    pub bytes_max: u64,
    /// Maximum age in days.
    pub days_max: u32,
}

/// Reason why the history cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Error of `SQLite`.
    #[error("cannot use the history `{}`: {source}", path.display())]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Message of `SQLite`.
        source: rusqlite::Error,
    },
    /// A file that is not a valid history could not be renamed.
    #[error("cannot read the history `{}`, and cannot rename it: {source}", path.display())]
    Aside {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// An open history.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    limits: StoreLimits,
}

impl Store {
    /// Opens or creates a file for writing. The flag is true if an unreadable file was renamed
    /// first.
    pub fn open(path: &Path, limits: StoreLimits) -> Result<(Store, bool), StoreError> {
        match Store::open_as_it_is(path, limits) {
            Ok(store) => Ok((store, false)),
            Err(source) if schema::is_unreadable(&source) => {
                let aside = path.with_extension("unreadable");
                std::fs::rename(path, aside)
                    .map_err(|source| StoreError::Aside { path: path.to_owned(), source })?;
                for suffix in ["-wal", "-shm"] {
                    let mut beside = path.as_os_str().to_owned();
                    beside.push(suffix);
                    // Often there is no such file.
                    let _ = std::fs::remove_file(beside);
                }
                let fresh = Store::open_as_it_is(path, limits);
                fresh.map(|store| (store, true)).map_err(failed(path))
            }
            Err(source) => Err(failed(path)(source)),
        }
    }

    fn open_as_it_is(path: &Path, limits: StoreLimits) -> rusqlite::Result<Store> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_LIMIT)?;
        // A transaction that reads before it writes would fail at once next to another writer.
        connection.set_transaction_behavior(TransactionBehavior::Immediate);
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.pragma_update(None, "journal_size_limit", limits.bytes_max / 8)?;
        let pages = (limits.bytes_max / PAGE_BYTES).max(schema::PAGES_MIN);
        connection.pragma_update(None, "max_page_count", pages)?;
        schema::make(&mut connection)?;
        Ok(Store { connection, path: path.to_owned(), limits })
    }

    /// Opens a file for reading while another thread or process writes to it.
    pub fn reader(path: &Path) -> Result<Store, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed(path))?;
        connection.busy_timeout(BUSY_LIMIT).map_err(failed(path))?;
        let limits = StoreLimits { bytes_max: u64::MAX, days_max: u32::MAX };
        Ok(Store { connection, path: path.to_owned(), limits })
    }

    /// Stores a minute, completely or not at all, and deletes data that exceeds the limits.
    pub fn put(&mut self, minute: &Minute) -> Result<(), StoreError> {
        self.make_room(minute.at).map_err(failed(&self.path))?;
        self.insert(minute).map_err(failed(&self.path))?;
        match self.sum_up(minute.at) {
            // The minute is stored. The next one makes room and sums up again.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
            outcome => outcome.map_err(failed(&self.path)),
        }
    }

    fn sum_up(&mut self, now: u64) -> rusqlite::Result<()> {
        let summed = hours::sum_up(&mut self.connection, now)?;
        // This reads the whole file, so it runs once an hour.
        if summed > 0 { hours::forget_routes(&self.connection) } else { Ok(()) }
    }

    fn insert(&mut self, minute: &Minute) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        let mut all = RouteMinute::default();
        for (name, figures) in minute.routes.iter() {
            let route = route_id(&transaction, name)?;
            add(&transaction, minute.at, route, figures)?;
            all.merge_route(figures);
        }
        if !minute.routes.is_empty() {
            add(&transaction, minute.at, ALL_ROUTES, &all)?;
        }
        for event in &minute.events {
            transaction
                .prepare_cached("INSERT INTO events (at, kind, text) VALUES (?1, ?2, ?3)")?
                .execute(params![event.at, event.kind.name(), event.text])?;
        }
        for release in &minute.releases {
            transaction
                .prepare_cached(
                    "INSERT INTO releases (at, pool, generation, label) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![release.at, release.pool, release.generation, &*release.label])?;
        }
        for kept in &minute.kept {
            transaction
                .prepare_cached(
                    "INSERT INTO requests (at, id, route, details) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![
                    kept.numbers.began_unix_us / 1_000_000,
                    &*kept.id,
                    &*kept.route,
                    encode(&**kept)
                ])?;
        }
        transaction.commit()
    }

    /// Deletes data that is too old, then whole hours from the oldest on until a tenth of the file
    /// is free.
    fn make_room(&mut self, now: u64) -> rusqlite::Result<()> {
        let oldest_kept = now.saturating_sub(u64::from(self.limits.days_max) * SECONDS_PER_DAY);
        self.forget_before(oldest_kept)?;
        for _ in 0..FORGOTTEN_HOURS_MAX {
            if self.used_bytes()? <= self.limits.bytes_max / 10 * 9 {
                break;
            }
            let Some((oldest, oldest_minute)) = self.oldest()? else { break };
            let end_of = |at: u64| at - at % HOUR_S + HOUR_S;
            match oldest_minute {
                // The sums of these hours stay.
                Some(minute) if end_of(minute) + MINUTES_KEPT_S <= now => {
                    self.connection
                        .execute("DELETE FROM minutes WHERE at < ?1", [end_of(minute)])?;
                }
                _ => self.forget_before(end_of(oldest))?,
            }
        }
        Ok(())
    }

    fn forget_before(&mut self, at: u64) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for table in ["minutes", "hours", "events", "releases", "requests"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE at < ?1"), [at])?;
        }
        transaction.commit()
    }

    /// Returns the time of the oldest data, and of the oldest minute.
    fn oldest(&self) -> rusqlite::Result<Option<(u64, Option<u64>)>> {
        self.connection.query_row(
            "SELECT MIN(at), (SELECT MIN(at) FROM minutes)
             FROM (SELECT MIN(at) AS at FROM minutes UNION ALL
             SELECT MIN(at) FROM hours UNION ALL
             SELECT MIN(at) FROM events UNION ALL SELECT MIN(at) FROM requests)",
            [],
            |row| Ok(row.get::<_, Option<u64>>(0)?.map(|at| (at, row.get(1).unwrap_or(None)))),
        )
    }

    /// Returns the number of bytes in use.
    fn used_bytes(&self) -> rusqlite::Result<u64> {
        let read =
            |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
        Ok((read("page_count")? - read("freelist_count")?) * PAGE_BYTES)
    }

    /// Returns (minute, route, figures) of the minutes that began in `from..to`, in order.
    pub fn minutes(
        &self,
        from: u64,
        to: u64,
    ) -> Result<Vec<(u64, String, RouteMinute)>, StoreError> {
        let rows = self.rows(
            "SELECT at, name, figures FROM minutes JOIN routes ON id = route
             WHERE at >= ?1 AND at < ?2 ORDER BY at, route LIMIT ?3",
            (from, to),
        );
        rows.map_err(failed(&self.path))
    }

    /// Returns (minute, route, costs) of the minutes that began in `from..to`, in order.
    pub fn costs(&self, from: u64, to: u64) -> Result<Vec<(u64, String, MinuteCosts)>, StoreError> {
        let rows = self.rows(
            "SELECT at, name, figures FROM minutes JOIN routes ON id = route
             WHERE at >= ?1 AND at < ?2 ORDER BY at, route LIMIT ?3",
            (from, to),
        );
        rows.map_err(failed(&self.path))
    }

    /// Returns the slow and failed requests that began in `from..to`, latest first, at most `most`.
    pub fn latest_requests(
        &self,
        from: u64,
        to: u64,
        most: u32,
    ) -> Result<Vec<RecentRequest>, StoreError> {
        let read = || -> rusqlite::Result<Vec<RecentRequest>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT details FROM requests
                 WHERE at >= ?1 AND at < ?2 ORDER BY at DESC LIMIT ?3",
            )?;
            let rows = statement
                .query_map(params![from, to, most.min(ROWS_MAX)], |row| row.get::<_, Vec<u8>>(0))?;
            rows.filter_map(|row| row.map(|bytes| decode(&bytes)).transpose()).collect()
        };
        read().map_err(failed(&self.path))
    }

    /// Returns (second, id, request) of the slow and failed requests that began in `from..to`.
    pub fn requests(
        &self,
        from: u64,
        to: u64,
    ) -> Result<Vec<(u64, String, RecentRequest)>, StoreError> {
        let rows = self.rows(
            "SELECT at, id, details FROM requests
             WHERE at >= ?1 AND at < ?2 ORDER BY at LIMIT ?3",
            (from, to),
        );
        rows.map_err(failed(&self.path))
    }

    /// Skips rows whose third column cannot be read.
    fn rows<T: serde::de::DeserializeOwned>(
        &self,
        sql: &str,
        (from, to): (u64, u64),
    ) -> rusqlite::Result<Vec<(u64, String, T)>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![from, to, ROWS_MAX], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?))
        })?;
        let mut all = Vec::new();
        for row in rows {
            let (at, name, bytes) = row?;
            if let Some(one) = decode(&bytes) {
                all.push((at, name, one));
            }
        }
        Ok(all)
    }

    /// Returns the request with this id, if it was slow or failed.
    pub fn request(&self, id: &str) -> Result<Option<RecentRequest>, StoreError> {
        let sql = "SELECT details FROM requests WHERE id = ?1 ORDER BY at DESC LIMIT 1";
        let found = self.connection.query_row(sql, [id], |row| row.get::<_, Vec<u8>>(0));
        match found {
            Ok(bytes) => Ok(decode(&bytes)),
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            Err(source) => Err(failed(&self.path)(source)),
        }
    }

    /// Returns the last events in `from..to`, at most `most`, in order.
    pub fn latest_events(&self, from: u64, to: u64, most: u32) -> Result<Vec<Event>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Event>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT at, kind, text FROM events
                 WHERE at >= ?1 AND at < ?2 ORDER BY at DESC, rowid DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![from, to, most.min(ROWS_MAX)], |row| {
                let kind = EventKind::of_name(&row.get::<_, String>(1)?);
                Ok(Event { at: row.get(0)?, kind, text: row.get(2)? })
            })?;
            let mut events = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            events.reverse();
            Ok(events)
        };
        read().map_err(failed(&self.path))
    }

    /// Returns the last releases that began in `from..to`, at most `most`, in order. A file of an
    /// older version has none.
    pub fn releases(&self, from: u64, to: u64, most: u32) -> Result<Vec<Release>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Release>> {
            let is_table = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'releases'";
            if self.connection.query_row(is_table, [], |row| row.get::<_, u64>(0))? == 0 {
                return Ok(Vec::new());
            }
            let mut statement = self.connection.prepare_cached(
                "SELECT at, pool, generation, label FROM releases
                 WHERE at >= ?1 AND at < ?2 ORDER BY at DESC, rowid DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![from, to, most.min(ROWS_MAX)], |row| {
                let label = Arc::from(row.get::<_, String>(3)?);
                Ok(Release { at: row.get(0)?, pool: row.get(1)?, generation: row.get(2)?, label })
            })?;
            let mut releases = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            releases.reverse();
            Ok(releases)
        };
        read().map_err(failed(&self.path))
    }

    /// Returns the events in `from..to`, in order.
    pub fn events(&self, from: u64, to: u64) -> Result<Vec<Event>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Event>> {
            let mut statement = self.connection.prepare_cached(
                "SELECT at, kind, text FROM events WHERE at >= ?1 AND at < ?2 ORDER BY at LIMIT ?3",
            )?;
            let rows = statement.query_map(params![from, to, ROWS_MAX], |row| {
                let kind = EventKind::of_name(&row.get::<_, String>(1)?);
                Ok(Event { at: row.get(0)?, kind, text: row.get(2)? })
            })?;
            rows.collect()
        };
        read().map_err(failed(&self.path))
    }
}

fn route_id(transaction: &Transaction, name: &str) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO routes (name) VALUES (?1)")?
        .execute([name])?;
    transaction
        .prepare_cached("SELECT id FROM routes WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
}

/// Adds a minute to the stored one, which exists if the server was restarted in that minute, and to
/// the sum of its hour, which exists if the clock was set back.
fn add(
    transaction: &Transaction,
    at: u64,
    route: i64,
    figures: &RouteMinute,
) -> rusqlite::Result<()> {
    let stored = |table: &str, at: u64| -> rusqlite::Result<Option<RouteMinute>> {
        let sql = format!("SELECT figures FROM {table} WHERE at = ?1 AND route = ?2");
        let mut statement = transaction.prepare_cached(&sql)?;
        let found = statement.query_row(params![at, route], |row| row.get::<_, Vec<u8>>(0));
        Ok(found.optional()?.and_then(|bytes| decode(&bytes)))
    };
    let merged = |mut known: RouteMinute| {
        known.merge(figures);
        known
    };
    match stored("minutes", at)? {
        Some(known) => hours::put(transaction, "minutes", (at, route), &merged(known))?,
        None => hours::put(transaction, "minutes", (at, route), figures)?,
    }
    let hour = at - at % HOUR_S;
    let is_summed: bool = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM hours WHERE at = ?1)")?
        .query_row([hour], |row| row.get(0))?;
    if is_summed {
        let known = stored("hours", hour)?.unwrap_or_default();
        hours::put(transaction, "hours", (hour, route), &merged(known))?;
    }
    Ok(())
}

pub(super) fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Sqlite { path: path.clone(), source }
}
