//! Sums over any range of the history: whole hours where they are stored, minutes elsewhere.

use super::history_file::{Store, StoreError, failed};
use super::hours::HOUR_S;
use super::route_minute::{RouteMinute, RouteSum};
use super::rows::{ALL_ROUTES, decode};
use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;
use std::collections::HashMap;

/// A range of one table.
type Stretch = (&'static str, u64, u64);

impl Store {
    /// Returns the time of the oldest figures; `None` if there are none.
    pub fn begin(&self) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT MIN(at) FROM (SELECT MIN(at) AS at FROM minutes
                   UNION ALL SELECT MIN(at) FROM hours)";
        let found = self.connection.query_row(sql, [], |row| row.get(0));
        found.map_err(failed(&self.path))
    }

    /// Returns the sums of each route over the minutes that began in `from..to`, most requests
    /// first.
    pub fn sums(&self, from: u64, to: u64) -> Result<Vec<(String, RouteSum)>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(String, RouteSum)>> {
            let mut sums = HashMap::<i64, RouteSum>::new();
            for stretch in self.stretches(from, to, HOUR_S)? {
                self.each("route != ?3", stretch, ALL_ROUTES, |_, route, sum: RouteSum| {
                    sums.entry(route).or_default().merge(&sum);
                })?;
            }
            let mut named = Vec::with_capacity(sums.len());
            let mut name =
                self.connection.prepare_cached("SELECT name FROM routes WHERE id = ?1")?;
            for (route, sum) in sums {
                if let Some(name) = name.query_row([route], |row| row.get(0)).optional()? {
                    named.push((name, sum));
                }
            }
            named.sort_by(|a: &(String, RouteSum), b| {
                b.1.requests.cmp(&a.1.requests).then_with(|| a.0.cmp(&b.0))
            });
            Ok(named)
        };
        read().map_err(failed(&self.path))
    }

    /// Passes the figures of one route, or of all together, that began in `from..to` to `take`, as
    /// (begin, figures). If `step` seconds are whole hours, the figures are those of hours where
    /// they are stored.
    pub fn each_of(
        &self,
        route: Option<&str>,
        (from, to): (u64, u64),
        step: u64,
        mut take: impl FnMut(u64, RouteMinute),
    ) -> Result<(), StoreError> {
        let mut read = || -> rusqlite::Result<()> {
            let id = match route {
                None => Some(ALL_ROUTES),
                Some(name) => {
                    let sql = "SELECT id FROM routes WHERE name = ?1";
                    self.connection.query_row(sql, [name], |row| row.get(0)).optional()?
                }
            };
            let Some(id) = id else { return Ok(()) };
            for stretch in self.stretches(from, to, step)? {
                self.each("route = ?3", stretch, id, |at, _, figures| take(at, figures))?;
            }
            Ok(())
        };
        read().map_err(failed(&self.path))
    }

    /// Divides a range: hours where their minutes are deleted or `step` allows it, else minutes.
    fn stretches(&self, from: u64, to: u64, step: u64) -> rusqlite::Result<Vec<Stretch>> {
        let read = |sql: &str| {
            self.connection
                .query_row(sql, [], |row| Ok((row.get(0)?, row.get::<_, Option<u64>>(1)?)))
        };
        let (first_hour, last_hour): (Option<u64>, _) = read("SELECT MIN(at), MAX(at) FROM hours")?;
        let (first_minute, _): (Option<u64>, _) = read("SELECT MIN(at), NULL FROM minutes")?;
        let (Some(first_hour), Some(last_hour)) = (first_hour, last_hour) else {
            return Ok(vec![("minutes", from, to)]);
        };
        Ok(divide(
            (from, to),
            (first_hour, last_hour + HOUR_S),
            first_minute.unwrap_or(u64::MAX),
            step,
        ))
    }

    fn each<T: DeserializeOwned>(
        &self,
        of: &str,
        (table, from, to): Stretch,
        route: i64,
        mut take: impl FnMut(u64, i64, T),
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT at, route, figures FROM {table} WHERE at >= ?1 AND at < ?2 AND {of} ORDER BY at"
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![from, to, route])?;
        while let Some(row) = rows.next()? {
            // Skips rows of another version, or damaged ones.
            if let Some(figures) = decode(row.get_ref(2)?.as_blob()?) {
                take(row.get(0)?, row.get(1)?, figures);
            }
        }
        Ok(())
    }
}

/// Divides `from..to`. `hours` is the range of stored hours. Before `first_minute` there are only
/// hours.
fn divide(
    (from, to): (u64, u64),
    (first_hour, hours_end): (u64, u64),
    first_minute: u64,
    step: u64,
) -> Vec<Stretch> {
    if from >= to {
        return Vec::new();
    }
    let floor = |at: u64| at - at % HOUR_S;
    // Only hours are left: the one in which the range begins belongs to it as a whole.
    let only_hours = floor(first_minute).clamp(first_hour, hours_end);
    let from = if from < only_hours { floor(from) } else { from };
    let (begin, end) = if step.is_multiple_of(HOUR_S) {
        (from.next_multiple_of(HOUR_S).max(first_hour), floor(to).min(hours_end))
    } else {
        (from.max(first_hour), only_hours.min(to))
    };
    let end = end.max(only_hours.min(to));
    let stretches = if begin >= end {
        vec![("minutes", from, to)]
    } else {
        vec![("minutes", from, begin), ("hours", begin, end), ("minutes", end.max(from), to)]
    };
    stretches.into_iter().filter(|(_, from, to)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::{HOUR_S, Stretch, divide};

    #[test]
    fn range_is_divided_into_hours_and_minutes() {
        const H: u64 = HOUR_S;
        let minutes = |from, to| -> Stretch { ("minutes", from, to) };
        let hours = |from, to| -> Stretch { ("hours", from, to) };
        // Hours are stored from 10 to 90, minutes from 50 on.
        for (range, step, expected) in [
            ((60 * H, 61 * H), 60, vec![minutes(60 * H, 61 * H)]),
            ((60 * H, 63 * H), H, vec![hours(60 * H, 63 * H)]),
            (
                (60 * H + 60, 63 * H + 60),
                H,
                vec![
                    minutes(60 * H + 60, 61 * H),
                    hours(61 * H, 63 * H),
                    minutes(63 * H, 63 * H + 60),
                ],
            ),
            ((88 * H, 95 * H), H, vec![hours(88 * H, 90 * H), minutes(90 * H, 95 * H)]),
            ((20 * H + 60, 22 * H), 600, vec![hours(20 * H, 22 * H)]),
            ((49 * H, 51 * H), 600, vec![hours(49 * H, 50 * H), minutes(50 * H, 51 * H)]),
            ((0, 12 * H), H, vec![minutes(0, 10 * H), hours(10 * H, 12 * H)]),
            ((91 * H, 92 * H), H, vec![minutes(91 * H, 92 * H)]),
            ((20 * H + 60, 20 * H + 120), 60, vec![hours(20 * H, 20 * H + 120)]),
            ((5, 5), 60, vec![]),
        ] {
            assert_eq!(divide(range, (10 * H, 90 * H), 50 * H, step), expected, "{range:?} {step}");
        }
        let all_minutes = divide((0, 12 * H), (10 * H, 11 * H), 0, 60);
        assert_eq!(all_minutes, [minutes(0, 12 * H)]);
    }
}
