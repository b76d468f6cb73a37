//! Store of graphs by pool, day and route: one `SQLite` database, in memory or in a file, which
//! never grows beyond its limit.
//!
//! A row is one day of a pool's route; its graph is JSON, compressed with zlib. The oldest day is
//! deleted to make room for new data.

use super::graph::Graph;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rusqlite::{Connection, OptionalExtension, params};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

const PAGE_BYTES: u64 = 4_096;
const PAGES_MIN: u64 = 64;
const VERSION: i64 = 2;
/// Maximum time that a write waits for a tool that reads the file.
const BUSY_LIMIT: Duration = Duration::from_secs(1);
/// Maximum size of an uncompressed row: the file is not trusted.
const BYTES_MAX: u64 = 64 << 20;
/// Maximum number of routes listed for a day.
const ROUTES_LISTED_MAX: usize = 1_000;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS pool_graphs (
        pool TEXT NOT NULL, day INTEGER NOT NULL, route TEXT NOT NULL, requests INTEGER NOT NULL,
        graph BLOB NOT NULL,
        PRIMARY KEY (pool, day, route)
    ) WITHOUT ROWID;
";
/// Migration from the first version, which had only the default pool's data.
const FROM_FIRST: &str = "
    BEGIN;
    INSERT INTO pool_graphs SELECT '', day, route, requests, graph FROM graphs;
    DROP TABLE graphs;
    COMMIT;
";

#[derive(Debug)]
pub(super) struct Store {
    connection: Connection,
    bytes_max: u64,
    days_max: u64,
}

fn pack(graph: &Graph) -> Vec<u8> {
    let text = serde_json::to_vec(graph).expect("numbers, texts and lists");
    let mut zipped = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = zipped.write_all(&text);
    zipped.finish().unwrap_or_default()
}

fn unpack(bytes: &[u8]) -> Option<Graph> {
    let mut text = Vec::new();
    ZlibDecoder::new(bytes).take(BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice::<Graph>(&text).ok().filter(Graph::is_sound)
}

impl Store {
    /// Opens the database in this file, or in memory. A file that is not a valid database of ours
    /// is renamed and replaced.
    pub(super) fn open(
        path: Option<&Path>,
        bytes_max: u64,
        days_max: u64,
    ) -> rusqlite::Result<Store> {
        let open = || match path {
            None => Connection::open_in_memory(),
            Some(path) => Connection::open(path),
        };
        let prepared = open().and_then(|c| prepare(&c, bytes_max).map(|()| c));
        let connection = match (prepared, path) {
            (Ok(connection), _) => connection,
            (Err(error), Some(path)) if crate::store::is_unreadable(&error) => {
                std::fs::rename(path, path.with_extension("calls-unreadable"))
                    .map_err(|_| error)?;
                let connection = open()?;
                prepare(&connection, bytes_max)?;
                connection
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Store { connection, bytes_max, days_max })
    }

    /// Stores a graph and replaces the stored one of this route and day.
    pub(super) fn put(
        &self,
        pool: &str,
        day: u64,
        route: &str,
        graph: &Graph,
    ) -> rusqlite::Result<()> {
        self.make_room(day)?;
        let sql = "INSERT OR REPLACE INTO pool_graphs (pool, day, route, requests, graph) \
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![pool, day, route, graph.requests, pack(graph)]).map(|_| ())
    }

    fn make_room(&self, today: u64) -> rusqlite::Result<()> {
        let forget = "DELETE FROM pool_graphs WHERE day < ?1";
        self.connection.execute(forget, [today.saturating_sub(self.days_max)])?;
        for _ in 0..self.days_max {
            let read =
                |name| self.connection.pragma_query_value(None, name, |r| r.get::<_, u64>(0));
            let used = (read("page_count")? - read("freelist_count")?) * PAGE_BYTES;
            if used <= self.bytes_max / 10 * 9 {
                break;
            }
            let oldest = "SELECT MIN(day) FROM pool_graphs";
            let oldest: Option<u64> = self.connection.query_row(oldest, [], |row| row.get(0))?;
            let Some(oldest) = oldest.filter(|day| *day < today) else { break };
            self.connection.execute(forget, [oldest + 1])?;
        }
        Ok(())
    }

    /// Returns the graph of a route and day; `None` if there is none or it cannot be read.
    pub(super) fn get(&self, pool: &str, day: u64, route: &str) -> rusqlite::Result<Option<Graph>> {
        let sql = "SELECT graph FROM pool_graphs WHERE pool = ?1 AND day = ?2 AND route = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let found: Option<Vec<u8>> =
            statement.query_row(params![pool, day, route], |row| row.get(0)).optional()?;
        Ok(found.and_then(|bytes| unpack(&bytes)))
    }

    /// Passes each graph of the days from `from` up to, but not including, `to`.
    pub(super) fn between(
        &self,
        pool: &str,
        (from, to): (u64, u64),
        route: &str,
        mut take: impl FnMut(&Graph),
    ) -> rusqlite::Result<()> {
        let sql = "SELECT graph FROM pool_graphs \
                   WHERE pool = ?1 AND day >= ?2 AND day < ?3 AND route = ?4";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![pool, from, to, route])?;
        while let Some(row) = rows.next()? {
            let bytes: Vec<u8> = row.get(0)?;
            if let Some(graph) = unpack(&bytes) {
                take(&graph);
            }
        }
        Ok(())
    }

    /// Returns the days with data, latest first.
    pub(super) fn days(&self, pool: &str) -> rusqlite::Result<Vec<u64>> {
        let sql = "SELECT DISTINCT day FROM pool_graphs WHERE pool = ?1 ORDER BY day DESC";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_map([pool], |row| row.get(0))?.collect()
    }

    /// Returns the routes of a day with their number of traced requests, largest number first.
    pub(super) fn routes(&self, pool: &str, day: u64) -> rusqlite::Result<Vec<(String, u64)>> {
        let sql = "SELECT route, requests FROM pool_graphs WHERE pool = ?1 AND day = ?2
             ORDER BY requests DESC, route LIMIT ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![pool, day, ROUTES_LISTED_MAX as u64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect()
    }
}

fn prepare(connection: &Connection, bytes_max: u64) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_LIMIT)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "journal_size_limit", bytes_max / 8)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if !(0..=VERSION).contains(&version) {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection.execute_batch(TABLES)?;
    if version == 1 {
        connection.execute_batch(FROM_FIRST)?;
    }
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.pragma_update(None, "max_page_count", (bytes_max / PAGE_BYTES).max(PAGES_MIN))
}
