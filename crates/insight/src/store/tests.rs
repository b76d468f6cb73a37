use super::history_file::PAGE_BYTES;
use super::{
    Event, EventKind, Historian, Minute, RouteMinute, RouteSum, Store, StoreLimits, StoredTimer,
    StoredWait,
};
use crate::finished::{Finished, Numbers};
use crate::histogram::Histogram;
use crate::recent_requests::RecentRequest;
use std::path::Path;
use std::sync::{Arc, Mutex};

const LIMITS: StoreLimits = StoreLimits { bytes_max: 16 << 20, days_max: 30 };
const HOUR: u64 = 3_600;

fn figures(requests: u64) -> RouteMinute {
    let mut wall = Histogram::default();
    for n in 0..requests {
        wall.add(1_000_000 * (n % 50 + 1));
    }
    RouteMinute { requests, wall, ..RouteMinute::default() }
}

fn minute(at: u64, routes: &[(&str, u64)]) -> Minute {
    let routes: Vec<_> = routes.iter().map(|(name, n)| (Box::from(*name), figures(*n))).collect();
    Minute { at, routes: Arc::new(routes), ..Minute::default() }
}

fn open(path: &Path) -> Store {
    Store::open(path, LIMITS).expect("a fresh file").0
}

fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("history.sqlite");
    (folder, path)
}

#[test]
fn stored_minute_is_visible_to_reader_and_after_restart() {
    let (_folder, path) = file();
    let mut store = open(&path);
    let kept = RecentRequest::new(
        &Finished {
            numbers: Numbers { began_unix_us: 61_000_000, status: 500, ..Numbers::default() },
            id: "abc",
            ..Finished::default()
        },
        "shop",
        &[],
    );
    let event = Event { at: 65, kind: EventKind::Reload, text: "generation 2".into() };
    let one = Minute {
        events: vec![event.clone()],
        kept: vec![Arc::new(kept.clone())],
        ..minute(60, &[("shop", 10), ("blog", 5)])
    };
    store.put(&one).unwrap();
    store.put(&minute(120, &[("shop", 7)])).unwrap();
    let check = |store: &Store| {
        let minutes = store.minutes(0, 200).unwrap();
        let found: Vec<_> =
            minutes.iter().map(|(at, route, m)| (*at, route.as_str(), m.requests)).collect();
        assert_eq!(found, [(60, "shop", 10), (60, "blog", 5), (120, "shop", 7)]);
        assert_eq!(minutes[0].2.wall.count(), 10);
        assert_eq!(store.minutes(61, 200).unwrap().len(), 1);
        assert_eq!(store.latest_requests(0, 200, 5).unwrap(), std::slice::from_ref(&kept));
        assert_eq!(store.latest_requests(62, 200, 5).unwrap(), []);
        let costs = store.costs(0, 200).unwrap();
        let found: Vec<_> =
            costs.iter().map(|(at, route, c)| (*at, &**route, c.requests)).collect();
        assert_eq!(found, [(60, "shop", 10), (60, "blog", 5), (120, "shop", 7)]);
        assert_eq!(costs[0].2.cpu_ns, minutes[0].2.cpu.sum_ns());
        assert_eq!(totals(store, (0, 200), 60), [(60, 15, 15), (120, 7, 7)]);
        let sums = store.sums(0, 200).unwrap();
        let found: Vec<_> =
            sums.iter().map(|(name, s)| (name.as_str(), s.requests, s.wall.count())).collect();
        assert_eq!(found, [("shop", 17, 17), ("blog", 5, 5)]);
        assert_eq!(store.events(0, 200).unwrap(), std::slice::from_ref(&event));
        assert_eq!(store.latest_events(0, 200, 5).unwrap(), std::slice::from_ref(&event));
        assert_eq!(store.latest_events(0, 200, 0).unwrap(), []);
        assert_eq!(store.request("abc").unwrap(), Some(kept.clone()));
        assert_eq!(store.request("abcd").unwrap(), None);
        assert_eq!(store.requests(0, 200).unwrap().len(), 1);
    };
    check(&Store::reader(&path).unwrap());
    drop(store);
    check(&open(&path));
}

#[test]
fn minute_with_restart_contains_both_parts() {
    let (_folder, path) = file();
    let part = |ns| {
        let mut part = minute(60, &[("shop", 10)]);
        let figures = &mut Arc::make_mut(&mut part.routes)[0].1;
        figures.waits = ["db", if ns == 1 { "a" } else { "b" }]
            .map(|peer| StoredWait { kind: "tcp".into(), peer: peer.into(), times: 1, ns })
            .to_vec();
        let tags = vec![("group".to_owned(), "db".to_owned())];
        figures.timers = vec![StoredTimer { tags, hits: 1, wall_ns: ns, cpu_ns: ns }];
        part
    };
    open(&path).put(&part(1)).unwrap();
    open(&path).put(&part(2)).unwrap();
    let kept = Store::reader(&path).unwrap().minutes(0, 100).unwrap();
    let [(60, _, both)] = &kept[..] else { panic!("{kept:?}") };
    assert_eq!((both.requests, both.wall.count()), (20, 20));
    let waits: Vec<_> = both.waits.iter().map(|w| (w.peer.as_str(), w.times, w.ns)).collect();
    assert_eq!(waits, [("db", 2, 3), ("a", 1, 1), ("b", 1, 2)]);
    let timers: Vec<_> = both.timers.iter().map(|t| (t.hits, t.wall_ns, t.cpu_ns)).collect();
    assert_eq!(timers, [(2, 3, 3)]);
}

#[test]
fn file_stays_within_limit_and_drops_oldest() {
    let (_folder, path) = file();
    let limits = StoreLimits { bytes_max: 1 << 20, days_max: 3_650 };
    let (mut store, _) = Store::open(&path, limits).unwrap();
    let names: Vec<String> = (0..40).map(|n| format!("route {n}")).collect();
    let routes: Vec<_> = names.iter().map(|name| (name.as_str(), 60)).collect();
    for at in (0..20 * HOUR).step_by(600) {
        store.put(&minute(at, &routes)).unwrap_or_else(|e| panic!("{at}: {e}"));
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size <= limits.bytes_max + PAGE_BYTES, "{at}: {size}");
    }
    let kept = store.minutes(0, u64::from(u32::MAX)).unwrap();
    let first = kept.first().map(|(at, ..)| *at).unwrap();
    assert!(first > 0 && first % HOUR == 0, "{first}");
    assert_eq!(kept.last().map(|(at, ..)| *at), Some(20 * HOUR - 600));
}

#[test]
fn data_older_than_days_max_is_deleted() {
    let (_folder, path) = file();
    let (mut store, _) = Store::open(&path, StoreLimits { days_max: 1, ..LIMITS }).unwrap();
    store.put(&minute(0, &[("old", 1)])).unwrap();
    store.put(&minute(25 * HOUR, &[("new", 1)])).unwrap();
    let names: Vec<_> = store.minutes(0, 100 * HOUR).unwrap().into_iter().map(|m| m.1).collect();
    assert_eq!(names, ["new"]);
}

/// Returns (begin, requests, times) of the stored figures of all routes together.
fn totals(store: &Store, range: (u64, u64), step: u64) -> Vec<(u64, u64, u64)> {
    let mut all = Vec::new();
    store.each_of(None, range, step, |at, m| all.push((at, m.requests, m.wall.count()))).unwrap();
    all
}

fn requests_of(sums: &[(String, RouteSum)]) -> Vec<(&str, u64, u64)> {
    sums.iter().map(|(name, sum)| (name.as_str(), sum.requests, sum.wall.count())).collect()
}

#[test]
fn hours_are_summed_up_when_they_are_over() {
    let (_folder, path) = file();
    let mut store = open(&path);
    for at in (0..3 * HOUR).step_by(1_200) {
        store.put(&minute(at, &[("shop", 10), ("blog", 2)])).unwrap();
    }
    // The clock was set back: a summed hour gets another minute.
    store.put(&minute(2_400, &[("shop", 5), ("new", 1)])).unwrap();
    assert_eq!(
        totals(&store, (0, 3 * HOUR), HOUR),
        [
            (0, 42, 42),
            (HOUR, 36, 36),
            (2 * HOUR, 12, 12),
            (2 * HOUR + 1_200, 12, 12),
            (2 * HOUR + 2_400, 12, 12),
        ]
    );
    assert_eq!(totals(&store, (0, HOUR), 60), [(0, 12, 12), (1_200, 12, 12), (2_400, 18, 18)]);
    let expected = [("shop", 95, 95), ("blog", 18, 18), ("new", 1, 1)];
    assert_eq!(requests_of(&store.sums(0, 3 * HOUR).unwrap()), expected);
    // Without the first and the last minute.
    let sums = store.sums(1_200, 2 * HOUR + 2_400).unwrap();
    assert_eq!(requests_of(&sums), [("shop", 75, 75), ("blog", 14, 14), ("new", 1, 1)]);
    let mut of_shop = 0;
    store.each_of(Some("shop"), (0, 3 * HOUR), HOUR, |_, m| of_shop += m.requests).unwrap();
    store.each_of(Some("nothing"), (0, 3 * HOUR), HOUR, |_, m| of_shop += m.requests).unwrap();
    assert_eq!(of_shop, 95);
    assert_eq!(store.begin().unwrap(), Some(0));
    // Names of routes without figures are deleted with the next hour.
    let names = |store: &Store| -> u64 {
        let sql = "SELECT COUNT(*) FROM routes";
        store.connection.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(names(&store), 3);
    store.connection.execute_batch("DELETE FROM hours; DELETE FROM minutes").unwrap();
    for at in [10 * HOUR, 11 * HOUR] {
        store.put(&minute(at, &[("shop", 1)])).unwrap();
    }
    assert_eq!(names(&store), 1);
}

/// A file of version 1 had neither hours nor sums of all routes, and fewer figures in a row.
#[test]
fn history_of_version_1_is_converted() {
    let (_folder, path) = file();
    let mut store = open(&path);
    for at in (0..3 * HOUR).step_by(600) {
        store.put(&minute(at, &[("shop", 10), ("blog", 2)])).unwrap();
    }
    let expected = totals(&store, (0, 3 * HOUR), HOUR);
    drop(store);
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch("DROP TABLE hours; DELETE FROM minutes WHERE route = 0").unwrap();
    let without = "UPDATE minutes SET figures = CAST(json_remove(CAST(figures AS TEXT), \
                   '$.queue', '$.waiting', '$.counts') AS BLOB)";
    old.execute(without, []).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    drop(old);
    let (store, was_moved) = Store::open(&path, LIMITS).unwrap();
    assert!(!was_moved);
    assert_eq!(totals(&store, (0, 3 * HOUR), HOUR), expected);
    assert_eq!(
        requests_of(&store.sums(0, 3 * HOUR).unwrap()),
        [("shop", 180, 180), ("blog", 36, 36)]
    );
    drop(store);
    let version = |path: &Path| -> i64 {
        let file = rusqlite::Connection::open(path).unwrap();
        file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(&path), 2);
}

#[test]
fn full_file_loses_old_minutes_before_hours() {
    let (_folder, path) = file();
    let limits = StoreLimits { bytes_max: 6 << 20, days_max: 3_650 };
    let (mut store, _) = Store::open(&path, limits).unwrap();
    let names: Vec<String> = (0..20).map(|n| format!("route {n}")).collect();
    let routes: Vec<_> = names.iter().map(|name| (name.as_str(), 60)).collect();
    let end = 96 * HOUR;
    for at in (0..end).step_by(1_200) {
        store.put(&minute(at, &routes)).unwrap_or_else(|e| panic!("{at}: {e}"));
    }
    let first_minute = store.minutes(0, end).unwrap()[0].0;
    let begin = store.begin().unwrap().unwrap();
    assert!(begin < first_minute && first_minute <= end - 47 * HOUR, "{begin} {first_minute}");
    // The sums of deleted minutes are still there, once.
    let hours = totals(&store, (begin, end), HOUR);
    let requests: u64 = hours.iter().map(|(_, requests, _)| requests).sum();
    assert_eq!(requests, (end - begin) / 1_200 * 20 * 60);
    let sums = store.sums(begin, end).unwrap();
    assert!(sums.iter().all(|(_, s)| s.requests == requests / 20 && s.wall.count() == s.requests));
}

#[test]
fn file_that_is_not_a_history_is_renamed() {
    let (_folder, path) = file();
    std::fs::write(&path, "not a database, but quite long enough to be looked at".repeat(40))
        .unwrap();
    let (mut store, was_moved) = Store::open(&path, LIMITS).unwrap();
    assert!(was_moved);
    store.put(&minute(0, &[("r", 1)])).unwrap();
    assert!(path.with_extension("unreadable").exists());
}

#[test]
fn history_of_other_version_is_renamed() {
    let (_folder, path) = file();
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(Store::open(&path, LIMITS).unwrap().1);
}

#[test]
fn failure_and_recovery_are_reported_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("missing/history.sqlite");
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let trouble = Box::new(move |text: &str| tell.lock().unwrap().push(text.to_owned()));
    let mut historian = Historian::start(path.clone(), LIMITS, trouble).unwrap();
    historian.put(minute(0, &[("r", 1)]));
    historian.put(minute(60, &[("r", 1)]));
    historian.finish();
    assert_eq!(historian.history().minutes_lost, 2);
    assert!(historian.history().trouble.contains("missing/history.sqlite"));
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
}

#[test]
fn last_minute_is_written_at_the_end() {
    let (_folder, path) = file();
    let trouble = Box::new(|text: &str| panic!("{text}"));
    let mut historian = Historian::start(path.clone(), LIMITS, trouble).unwrap();
    historian.put(minute(60, &[("r", 3)]));
    historian.finish();
    assert_eq!(Store::reader(&path).unwrap().minutes(0, 100).unwrap().len(), 1);
}
