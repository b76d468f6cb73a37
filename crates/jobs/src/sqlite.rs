//! The embedded store: one `SQLite` file in WAL mode.
//!
//! A durable commit syncs the write-ahead log. The two servers of an upgrade may use the file at
//! the same time: the old one ends its batches, and both insert jobs.

use crate::batch::Failure;
use crate::job::{Content, JOB_BYTES, JobState};
use crate::store::{Catalogue, Change, Insert, Listed, Loaded, Page, Stage, Store, StoreError};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};
use samovar_channel::TraceContext;
use samovar_wire::DeadJob;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the tables, increased when one of them changes.
const VERSION: i64 = 3;
/// Maximum time for which a commit waits for the other server of an upgrade.
const BUSY_LIMIT: Duration = Duration::from_secs(5);
/// Length to which the write-ahead log is cut.
const LOG_BYTES: u64 = 16 << 20;
/// Number of prepared statements; there are fewer.
const STATEMENTS: usize = 16;

// AUTOINCREMENT: an id is never used again, not even that of the latest job.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, priority INTEGER NOT NULL,
        key TEXT, unique_until INTEGER NOT NULL, due INTEGER NOT NULL, pushed INTEGER NOT NULL,
        attempts INTEGER NOT NULL, attempts_max INTEGER NOT NULL, error TEXT,
        payload TEXT NOT NULL, traceparent TEXT NOT NULL DEFAULT '',
        tracestate TEXT NOT NULL DEFAULT ''
    );
    CREATE TABLE IF NOT EXISTS dead (
        id INTEGER PRIMARY KEY, queue TEXT NOT NULL, priority INTEGER NOT NULL, key TEXT,
        pushed INTEGER NOT NULL, died INTEGER NOT NULL, attempts INTEGER NOT NULL,
        attempts_max INTEGER NOT NULL, error TEXT NOT NULL, payload TEXT NOT NULL,
        class TEXT NOT NULL DEFAULT '', place TEXT NOT NULL DEFAULT '',
        traceparent TEXT NOT NULL DEFAULT '', tracestate TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX IF NOT EXISTS dead_queue ON dead (queue, id);
    CREATE TABLE IF NOT EXISTS paused (queue TEXT PRIMARY KEY) WITHOUT ROWID;
";

/// Changes of the tables of version 1. The server of that version can still use them.
const FROM_1: &str = "
    ALTER TABLE dead ADD COLUMN class TEXT NOT NULL DEFAULT '';
    ALTER TABLE dead ADD COLUMN place TEXT NOT NULL DEFAULT '';
";

/// Changes of the tables of version 2. The servers of both versions can still use them.
const FROM_2: &str = "
    ALTER TABLE jobs ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN tracestate TEXT NOT NULL DEFAULT '';
    ALTER TABLE dead ADD COLUMN traceparent TEXT NOT NULL DEFAULT '';
    ALTER TABLE dead ADD COLUMN tracestate TEXT NOT NULL DEFAULT '';
";

/// Bytes of a dead job in the store, without its own `?1`.
const DEAD_BYTES: &str = "LENGTH(CAST(payload AS BLOB)) + LENGTH(CAST(error AS BLOB)) + \
                          LENGTH(CAST(IFNULL(key, '') AS BLOB)) + LENGTH(CAST(class AS BLOB)) + \
                          LENGTH(CAST(place AS BLOB)) + LENGTH(traceparent) + \
                          2 * LENGTH(tracestate)";

const OF_JOB: &str = "id, priority, key, unique_until, due, pushed, attempts, attempts_max, \
                      LENGTH(CAST(payload AS BLOB)) + LENGTH(traceparent) + \
                      2 * LENGTH(tracestate)";

/// A store in one file.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    is_durable: bool,
}

impl SqliteStore {
    /// Opens or creates a file. A damaged file is renamed first; then the second value is its new
    /// path.
    pub fn open(path: &Path, now_ms: u64) -> Result<(SqliteStore, Option<PathBuf>), StoreError> {
        match SqliteStore::open_sound(path) {
            Ok(store) => Ok((store, None)),
            Err(StoreError::Sqlite { source, .. }) if is_damaged(&source) => {
                let aside = set_aside(path, now_ms)
                    .map_err(|source| StoreError::Aside { path: path.to_owned(), source })?;
                Ok((SqliteStore::open_sound(path)?, Some(aside)))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens the file, and reads it completely, because damage shows only when a page is read.
    fn open_sound(path: &Path) -> Result<SqliteStore, StoreError> {
        let mut store = SqliteStore::open_as_it_is(path)?;
        store.load()?;
        Ok(store)
    }

    fn open_as_it_is(path: &Path) -> Result<SqliteStore, StoreError> {
        let failed = failed(path);
        let open = || -> rusqlite::Result<(Connection, i64)> {
            let mut connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_LIMIT)?;
            // A transaction that reads before it writes would fail at once next to another writer.
            connection.set_transaction_behavior(TransactionBehavior::Immediate);
            connection.set_prepared_statement_cache_capacity(STATEMENTS);
            let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if version <= VERSION {
                connection.pragma_update(None, "journal_mode", "wal")?;
                connection.pragma_update(None, "synchronous", "full")?;
                connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
                let changes = match version {
                    1 => format!("{FROM_1}{FROM_2}"),
                    2 => FROM_2.to_owned(),
                    _ => String::new(),
                };
                if !changes.is_empty() {
                    connection.execute_batch(&format!(
                        "BEGIN IMMEDIATE; {changes} PRAGMA user_version = {VERSION}; COMMIT;"
                    ))?;
                }
                connection.execute_batch(TABLES)?;
                connection.pragma_update(None, "user_version", VERSION)?;
            }
            Ok((connection, version))
        };
        let (connection, found) = open().map_err(&failed)?;
        if found > VERSION {
            return Err(StoreError::Newer { path: path.to_owned(), found, known: VERSION });
        }
        Ok(SqliteStore { connection, path: path.to_owned(), is_durable: true })
    }

    fn try_commit(
        &mut self,
        inserts: &[Insert],
        changes: &[Change],
        is_durable: bool,
    ) -> rusqlite::Result<Vec<i64>> {
        if self.is_durable != is_durable {
            let level = if is_durable { "full" } else { "normal" };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.is_durable = is_durable;
        }
        let transaction = self.connection.transaction()?;
        let mut ids = Vec::with_capacity(inserts.len());
        for insert in inserts {
            ids.push(put(&transaction, insert)?);
        }
        for change in changes {
            apply(&transaction, change)?;
        }
        transaction.commit()?;
        Ok(ids)
    }

    fn try_load(&mut self) -> rusqlite::Result<Loaded> {
        let connection = &self.connection;
        let mut of =
            connection.prepare(&format!("SELECT {OF_JOB}, queue FROM jobs ORDER BY id"))?;
        let jobs = of.query_map([], |row| Ok((row.get(9)?, job_of(row)?)))?;
        let jobs = jobs.collect::<rusqlite::Result<_>>()?;
        let mut of = connection.prepare(&format!(
            "SELECT queue, COUNT(*), SUM({DEAD_BYTES} + ?1) FROM dead GROUP BY queue"
        ))?;
        let dead = of.query_map([JOB_BYTES], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let dead = dead.collect::<rusqlite::Result<_>>()?;
        let mut of = connection.prepare("SELECT queue FROM paused")?;
        let paused = of.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        Ok(Loaded { jobs, dead, paused })
    }

    fn try_contents(&mut self, ids: &[i64]) -> rusqlite::Result<Vec<Option<Content>>> {
        let mut of = self
            .connection
            .prepare_cached("SELECT payload, traceparent, tracestate FROM jobs WHERE id = ?1")?;
        let content = |row: &Row<'_>| {
            let trace = TraceContext { traceparent: row.get(1)?, tracestate: row.get(2)? };
            Ok(Content { payload: row.get(0)?, trace })
        };
        ids.iter().map(|id| of.query_row([id], content).optional()).collect()
    }

    fn try_dead(&mut self, queue: &str, page: &Page) -> rusqlite::Result<Vec<DeadJob>> {
        let mut of = self.connection.prepare_cached(
            "SELECT id, pushed, died, attempts, key, error, payload, class, place, traceparent,
             tracestate FROM dead WHERE queue = ?1 AND id > ?2 AND id <= ?3 ORDER BY id LIMIT ?4",
        )?;
        let rows = of.query_map(params![queue, page.after, page.until, page.max], |row| {
            Ok(DeadJob {
                id: row.get(0)?,
                pushed_ms: row.get(1)?,
                died_ms: row.get(2)?,
                attempts: row.get(3)?,
                key: row.get(4)?,
                error: row.get(5)?,
                payload: row.get(6)?,
                class: row.get(7)?,
                place: row.get(8)?,
                traceparent: row.get(9)?,
                tracestate: row.get(10)?,
            })
        })?;
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        for job in rows {
            let job = job?;
            bytes += job.payload.len() + job.error.len();
            if !jobs.is_empty() && bytes > page.bytes_max {
                break;
            }
            jobs.push(job);
        }
        Ok(jobs)
    }

    fn try_ids(&mut self, stage: Stage, queue: &str, page: &Page) -> rusqlite::Result<Vec<Listed>> {
        let (table, bytes) = match stage {
            Stage::Alive => ("jobs", "0"),
            Stage::Dead => ("dead", DEAD_BYTES),
        };
        let mut of = self.connection.prepare_cached(&format!(
            "SELECT id, {bytes} + ?1 FROM {table}
             WHERE queue = ?2 AND id > ?3 AND id <= ?4 ORDER BY id LIMIT ?5"
        ))?;
        let rows = of
            .query_map(params![JOB_BYTES, queue, page.after, page.until, page.max], |row| {
                Ok(Listed { id: row.get(0)?, bytes: row.get(1)?, is_running: false })
            })?;
        rows.collect()
    }

    fn try_last(&mut self, stage: Stage) -> rusqlite::Result<i64> {
        let table = match stage {
            Stage::Alive => "jobs",
            Stage::Dead => "dead",
        };
        let last = format!("SELECT IFNULL(MAX(id), 0) FROM {table}");
        self.connection.query_row(&last, [], |row| row.get(0))
    }
}

fn put(to: &Transaction<'_>, Insert { queue, job, pushed_ms }: &Insert) -> rusqlite::Result<i64> {
    let state = JobState::of(0, job, *pushed_ms);
    to.prepare_cached(
        "INSERT INTO jobs (queue, priority, key, unique_until, due, pushed, attempts, attempts_max,
         payload, traceparent, tracestate) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        queue,
        state.priority,
        state.key,
        state.unique_until_ms,
        state.due_ms,
        state.pushed_ms,
        state.attempts_max,
        job.payload,
        job.trace.traceparent,
        job.trace.tracestate
    ])?;
    Ok(to.last_insert_rowid())
}

fn apply(to: &Transaction<'_>, change: &Change) -> rusqlite::Result<()> {
    match change {
        Change::Remove(id) => {
            to.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([id])?;
        }
        Change::Retry { id, attempts, due_ms, error } => {
            to.prepare_cached("UPDATE jobs SET attempts = ?2, due = ?3, error = ?4 WHERE id = ?1")?
                .execute(params![id, attempts, due_ms, error])?;
        }
        Change::Bury { id, attempts, died_ms, failure: Failure { class, place, text } } => {
            to.prepare_cached(
                "INSERT INTO dead (id, queue, priority, key, pushed, died, attempts, attempts_max,
                 error, payload, class, place, traceparent, tracestate) SELECT id, queue, priority,
                 key, pushed, ?2, ?3, attempts_max, ?4, payload, ?5, ?6, traceparent, tracestate
                 FROM jobs WHERE id = ?1",
            )?
            .execute(params![id, died_ms, attempts, text, class, place])?;
            to.prepare_cached("DELETE FROM jobs WHERE id = ?1")?.execute([id])?;
        }
        Change::Revive(id) => {
            to.prepare_cached(
                "INSERT INTO jobs (id, queue, priority, key, unique_until, due, pushed, attempts,
                 attempts_max, error, payload, traceparent, tracestate) SELECT id, queue, priority,
                 key, 0, 0, pushed, 0, attempts_max, error, payload, traceparent, tracestate
                 FROM dead WHERE id = ?1",
            )?
            .execute([id])?;
            to.prepare_cached("DELETE FROM dead WHERE id = ?1")?.execute([id])?;
        }
        Change::RemoveDead(id) => {
            to.prepare_cached("DELETE FROM dead WHERE id = ?1")?.execute([id])?;
        }
        Change::Move(id, from, new) => {
            to.prepare_cached("UPDATE jobs SET queue = ?3 WHERE id = ?1 AND queue = ?2")?
                .execute(params![id, from, new])?;
        }
        Change::MoveDead(id, from, new) => {
            to.prepare_cached("UPDATE dead SET queue = ?3 WHERE id = ?1 AND queue = ?2")?
                .execute(params![id, from, new])?;
        }
        Change::Pause(queue, true) => {
            to.execute("INSERT OR REPLACE INTO paused (queue) VALUES (?1)", [queue])?;
        }
        Change::Pause(queue, false) => {
            to.execute("DELETE FROM paused WHERE queue = ?1", [queue])?;
        }
    }
    Ok(())
}

fn job_of(row: &Row<'_>) -> rusqlite::Result<JobState> {
    Ok(JobState {
        id: row.get(0)?,
        priority: row.get(1)?,
        key: row.get(2)?,
        unique_until_ms: row.get(3)?,
        due_ms: row.get(4)?,
        pushed_ms: row.get(5)?,
        attempts: row.get(6)?,
        attempts_max: row.get(7)?,
        payload_bytes: row.get(8)?,
    })
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Sqlite { path: path.clone(), source }
}

/// Whether the file itself is damaged, as opposed to an error of the disk or a lock.
fn is_damaged(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
        || matches!(
            error,
            rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
        )
}

/// Renames the file and its log, so that tools can recover jobs from both.
fn set_aside(path: &Path, now_ms: u64) -> std::io::Result<PathBuf> {
    let with = |base: &Path, suffix: &str| {
        let mut name = base.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = with(path, &format!(".damaged-{now_ms}"));
    std::fs::rename(path, &aside)?;
    for suffix in ["-wal", "-shm"] {
        // Often there is no such file.
        let _ = std::fs::rename(with(path, suffix), with(&aside, suffix));
    }
    Ok(aside)
}

impl Catalogue for SqliteStore {
    fn dead(&mut self, queue: &str, page: &Page) -> Result<Vec<DeadJob>, StoreError> {
        self.try_dead(queue, page).map_err(failed(&self.path))
    }

    fn ids(&mut self, stage: Stage, queue: &str, page: &Page) -> Result<Vec<Listed>, StoreError> {
        self.try_ids(stage, queue, page).map_err(failed(&self.path))
    }

    fn last(&mut self, stage: Stage) -> Result<i64, StoreError> {
        self.try_last(stage).map_err(failed(&self.path))
    }
}

impl Store for SqliteStore {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        self.try_load().map_err(failed(&self.path))
    }

    fn commit(
        &mut self,
        inserts: &[Insert],
        changes: &[Change],
        is_durable: bool,
    ) -> Result<Vec<i64>, StoreError> {
        self.try_commit(inserts, changes, is_durable).map_err(failed(&self.path))
    }

    fn contents(&mut self, ids: &[i64]) -> Result<Vec<Option<Content>>, StoreError> {
        self.try_contents(ids).map_err(failed(&self.path))
    }

    fn job(&mut self, id: i64) -> Result<Option<JobState>, StoreError> {
        let found = self.connection.query_row(
            &format!("SELECT {OF_JOB} FROM jobs WHERE id = ?1"),
            [id],
            job_of,
        );
        found.optional().map_err(failed(&self.path))
    }
}

#[cfg(test)]
mod tests;
