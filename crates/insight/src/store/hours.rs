//! Sums of hours: one row per hour and route, and one per hour or minute for all routes.
//!
//! A page that shows a week reads hours. If the file is full, the minutes of the oldest hours are
//! deleted first and their sums stay.

use super::route_minute::RouteMinute;
use super::rows::{ALL_ROUTES, decode, encode};
use rusqlite::{Connection, ErrorCode, Transaction, params};
use std::collections::BTreeMap;

pub(super) const HOUR_S: u64 = 3_600;
/// Maximum number of hours that are summed up with one minute: after a pause, or a failure.
const HOURS_AT_ONCE: usize = 48;
/// Maximum number of hours of an older file that get sums, the latest ones.
const CONVERTED_MAX: usize = 24 * 31;

/// Sums up the hours that are over at `now`. Returns their number.
pub(super) fn sum_up(connection: &mut Connection, now: u64) -> rusqlite::Result<usize> {
    for summed in 0..HOURS_AT_ONCE {
        let over = next(connection)?.filter(|hour| hour + HOUR_S <= now);
        let Some(hour) = over else { return Ok(summed) };
        sum_hour(connection, hour, true)?;
    }
    Ok(HOURS_AT_ONCE)
}

/// Deletes the names of routes without figures.
pub(super) fn forget_routes(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM routes WHERE id NOT IN
               (SELECT route FROM minutes UNION SELECT route FROM hours)";
    connection.execute(sql, []).map(drop)
}

/// Returns the first hour without sums after the last one that has them.
fn next(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection.prepare_cached(
        "SELECT MIN(at) FROM minutes WHERE at >= (SELECT COALESCE(MAX(at) + 3600, 0) FROM hours)",
    )?;
    let first: Option<u64> = statement.query_row([], |row| row.get(0))?;
    Ok(first.map(|at| at - at % HOUR_S))
}

/// Adds the sums to a file without them, from the latest hour on, until the file is full. The
/// current hour gets the sums of its minutes only.
pub(super) fn convert(connection: &mut Connection) -> rusqlite::Result<()> {
    let hours: Vec<u64> = {
        let mut statement = connection.prepare(
            "SELECT DISTINCT at / 3600 * 3600 AS hour FROM minutes ORDER BY hour DESC LIMIT ?1",
        )?;
        let rows = statement.query_map([CONVERTED_MAX as u64], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (n, hour) in hours.into_iter().enumerate() {
        match sum_hour(connection, hour, n > 0) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => break,
            outcome => outcome?,
        }
    }
    Ok(())
}

/// Writes the sums of an hour's minutes, and of the hour if it is over.
fn sum_hour(connection: &mut Connection, hour: u64, is_over: bool) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let mut minutes = BTreeMap::<u64, RouteMinute>::new();
    let mut routes = BTreeMap::<i64, RouteMinute>::new();
    {
        let mut statement = transaction.prepare_cached(
            "SELECT at, route, figures FROM minutes WHERE at >= ?1 AND at < ?2 AND route != ?3",
        )?;
        let mut rows = statement.query(params![hour, hour + HOUR_S, ALL_ROUTES])?;
        while let Some(row) = rows.next()? {
            let Some(figures) = decode::<RouteMinute>(&row.get::<_, Vec<u8>>(2)?) else { continue };
            minutes.entry(row.get(0)?).or_default().merge_route(&figures);
            routes.entry(row.get(1)?).or_default().merge(&figures);
        }
    }
    for (at, figures) in &minutes {
        put(&transaction, "minutes", (*at, ALL_ROUTES), figures)?;
    }
    if is_over {
        let all = routes.entry(ALL_ROUTES).or_default();
        for minute in minutes.values() {
            all.merge_route(minute);
        }
        for (route, figures) in &routes {
            put(&transaction, "hours", (hour, *route), figures)?;
        }
    }
    transaction.commit()
}

/// Writes a row.
pub(super) fn put(
    transaction: &Transaction,
    table: &str,
    (at, route): (u64, i64),
    figures: &RouteMinute,
) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO {table} (at, route, requests, errors, figures)
         VALUES (?1, ?2, ?3, ?4, ?5)"
    );
    transaction.prepare_cached(&sql)?.execute(params![
        at,
        route,
        figures.requests,
        figures.errors,
        encode(figures)
    ])?;
    Ok(())
}
