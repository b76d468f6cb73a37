//! The last runs, and the lock that only one server holds: in files of this machine.
//!
//! A loss of power may undo the latest changes, so that a run before it may be repeated.

use crate::record::Record;
use crate::run::RunResult;
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the table, increased when it changes.
const VERSION: i64 = 1;
/// Maximum wait for another process that uses the file, such as a backup.
const BUSY_LIMIT: Duration = Duration::from_secs(2);

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        name TEXT PRIMARY KEY, due INTEGER NOT NULL, started INTEGER NOT NULL,
        ended INTEGER NOT NULL, result TEXT, detail TEXT NOT NULL, output TEXT NOT NULL,
        succeeded INTEGER NOT NULL
    ) WITHOUT ROWID;
";

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// An error of `SQLite`, often of the disk.
    #[error("cannot use the store of schedules `{}`: {source}", path.display())]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Its message.
        source: rusqlite::Error,
    },
    /// A newer Samovar has written the file.
    #[error(
        "the store of schedules `{}` has version {found}; this server reads up to \
         {VERSION}\nhint: start the newer Samovar, or move the file away",
        path.display()
    )]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// An error of Redis, or of the connection to it.
    #[error("cannot use the store of schedules: {0}")]
    Redis(#[from] samovar_redis::Error),
    /// Redis has returned something else than the store's script returns.
    #[error(
        "cannot use the store of schedules: Redis returned an unexpected value\nhint: another \
         program may write keys with this prefix; set `jobs.redis_prefix`"
    )]
    Foreign,
    /// Another server has the lease.
    #[error("another server runs the schedules")]
    LeaseLost,
    /// The thread cannot be started.
    #[error("cannot start the thread of the schedules: {0}")]
    Thread(std::io::Error),
    /// A file cannot be created, locked or renamed.
    #[error(
        "cannot use `{}`: {source}\nhint: check its owner, or set `jobs.store` to a file in \
         another folder", path.display()
    )]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// Where the last runs are, and the lock.
pub(crate) trait RunStore: Send {
    /// Takes the lock, or extends it. Returns false if another server holds it.
    fn lock(&mut self) -> Result<bool, StoreError>;

    /// Whether this server certainly has the lock at this time.
    fn is_locked(&self) -> bool;

    /// Gives the lock up, if other machines may wait for it.
    fn unlock(&mut self);

    /// Returns the last run of each schedule, also of those that the settings have no more.
    fn load(&mut self) -> Result<HashMap<String, Record>, StoreError>;

    /// Stores last runs, all or none.
    fn save(&mut self, records: &[(&str, &Record)]) -> Result<(), StoreError>;

    /// Returns the place that all servers with this lock share.
    fn place(&self) -> String;

    /// Interval at which the lock is extended, if it can get lost. Then a run starts only if it is
    /// stored.
    fn extension(&self) -> Option<Duration>;
}

/// The file of the last runs.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    lock: OwnedFd,
    lock_path: PathBuf,
}

impl Store {
    /// Opens or creates the files. A damaged one is renamed first; then the second value is its new
    /// path.
    pub fn open(path: &Path, now_ms: u64) -> Result<(Store, Option<PathBuf>), StoreError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::File { path, source }
        };
        // SQLite gives its further files the same mode.
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true).mode(0o600).open(path).map_err(file(path))?;
        let lock_path = with(path, ".lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let lock = rustix::fs::open(&lock_path, flags, Mode::RUSR | Mode::WUSR);
        let lock = lock.map_err(|errno| file(&lock_path)(errno.into()))?;
        let (connection, aside) = match open(path) {
            Err(StoreError::Sqlite { source, .. }) if is_damaged(&source) => {
                let aside = with(path, &format!(".damaged-{now_ms}"));
                std::fs::rename(path, &aside).map_err(file(path))?;
                for suffix in ["-wal", "-shm"] {
                    // Often there is no such file.
                    let _ = std::fs::rename(with(path, suffix), with(&aside, suffix));
                }
                (open(path)?, Some(aside))
            }
            opened => (opened?, None),
        };
        Ok((Store { connection, path: path.to_owned(), lock, lock_path }, aside))
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), source }
    }
}

/// The lock ends with the process, at the latest; forks do not inherit it.
impl RunStore for Store {
    fn lock(&mut self) -> Result<bool, StoreError> {
        match rustix::fs::fcntl_lock(&self.lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(errno) => {
                Err(StoreError::File { path: self.lock_path.clone(), source: errno.into() })
            }
        }
    }

    fn is_locked(&self) -> bool {
        true
    }

    fn unlock(&mut self) {}

    fn load(&mut self) -> Result<HashMap<String, Record>, StoreError> {
        load(&self.connection).map_err(|source| self.failed(source))
    }

    fn save(&mut self, records: &[(&str, &Record)]) -> Result<(), StoreError> {
        save(&mut self.connection, records).map_err(|source| self.failed(source))
    }

    fn place(&self) -> String {
        format!("file `{}`", self.lock_path.display())
    }

    fn extension(&self) -> Option<Duration> {
        None
    }
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn open(path: &Path) -> Result<Connection, StoreError> {
    let open = || -> rusqlite::Result<(Connection, i64)> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_LIMIT)?;
        // A transaction that reads before it writes would fail at once next to another writer.
        connection.set_transaction_behavior(TransactionBehavior::Immediate);
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version <= VERSION {
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "normal")?;
            connection.execute_batch(TABLE)?;
            connection.pragma_update(None, "user_version", VERSION)?;
            // Damage shows only when a page is read.
            load(&connection)?;
        }
        Ok((connection, version))
    };
    match open() {
        Ok((_, found)) if found > VERSION => {
            Err(StoreError::Newer { path: path.to_owned(), found })
        }
        Ok((connection, _)) => Ok(connection),
        Err(source) => Err(StoreError::Sqlite { path: path.to_owned(), source }),
    }
}

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

fn load(connection: &Connection) -> rusqlite::Result<HashMap<String, Record>> {
    let mut of = connection.prepare_cached(
        "SELECT name, due, started, ended, result, detail, output, succeeded FROM runs",
    )?;
    let rows = of.query_map([], |row| {
        let result: Option<String> = row.get(4)?;
        let known = |name: &str| RunResult::ALL.into_iter().find(|known| known.name() == name);
        let record = Record {
            due_ms: row.get(1)?,
            started_ms: row.get(2)?,
            ended_ms: row.get(3)?,
            result: result.as_deref().and_then(known),
            detail: row.get(5)?,
            output: row.get(6)?,
            succeeded_ms: row.get(7)?,
        };
        Ok((row.get(0)?, record))
    })?;
    rows.collect()
}

fn save(connection: &mut Connection, records: &[(&str, &Record)]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for (name, record) in records {
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO runs (name, due, started, ended, result, detail, output,
                 succeeded) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                name,
                record.due_ms,
                record.started_ms,
                record.ended_ms,
                record.result.map(RunResult::name),
                record.detail,
                record.output,
                record.succeeded_ms
            ])?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            due_ms: 1,
            started_ms: 2,
            ended_ms: 3,
            result: Some(RunResult::TimedOut),
            detail: "d".into(),
            output: "é\n".into(),
            succeeded_ms: 4,
        }
    }

    #[test]
    fn records_survive_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schedules.sqlite");
        let (mut store, _) = Store::open(&path, 1).expect("a store");
        store.save(&[("a", &record()), ("b", &Record::default())]).expect("saved");
        drop(store);
        let (mut store, aside) = Store::open(&path, 1).expect("a store");
        assert_eq!(aside, None);
        let loaded = store.load().expect("records");
        assert_eq!((&loaded["a"], &loaded["b"]), (&record(), &Record::default()));
    }

    #[test]
    fn damaged_file_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schedules.sqlite");
        std::fs::write(&path, "no database at all, but longer than its header".repeat(99))
            .expect("written");
        let (mut store, aside) = Store::open(&path, 17).expect("a store");
        assert_eq!(aside, Some(folder.path().join("schedules.sqlite.damaged-17")));
        assert_eq!(store.load().expect("records"), HashMap::new());
    }

    #[test]
    fn newer_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schedules.sqlite");
        let (store, _) = Store::open(&path, 1).expect("a store");
        store.connection.pragma_update(None, "user_version", 99).expect("set");
        drop(store);
        let error = Store::open(&path, 1).expect_err("newer");
        assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    }
}
