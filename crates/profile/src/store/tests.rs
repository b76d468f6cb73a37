use super::*;
use crate::current_minute::Row;
use samovar_insight::Model;
use samovar_spy::profile::Weight;

const LIMITS: StoreLimits = StoreLimits { bytes_max: 1 << 20, keep: Duration::from_hours(24) };
const DAY: u64 = 86_400;

fn minute(at: u64, generation: u64, routes: &[(&str, u64)]) -> Minute {
    let row = |(route, samples): &(&str, u64)| {
        let mut profile = Profile::new();
        profile.add_mark("[rollback]", Weight { samples: *samples, wall_ns: 1, cpu_ns: 1 });
        let (model, pool) = (Model::Script, Box::default());
        let row = Row { pool, generation, model, requests: 10, profile };
        (Box::from(*route), row)
    };
    Minute { at, rows: routes.iter().map(row).collect() }
}

fn read(store: &Store, of: &Selection) -> Vec<(u64, u64, u64)> {
    let mut all = Vec::new();
    let is_cut = store.rows(of, |row| {
        all.push((row.generation, row.requests, row.profile.total().samples));
    });
    assert!(!is_cut.expect("readable"));
    all
}

#[test]
fn rows_are_found_by_time_route_and_generation() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profiles.sqlite");
    let mut store = Store::open(Some(&file), LIMITS, 5).expect("a store");
    store.put(&minute(6_000, 1, &[("/a", 1), ("/b", 2)])).expect("room");
    store.put(&minute(6_060, 2, &[("/a", 4)])).expect("room");
    let all = Selection { to: u64::from(u32::MAX), ..Selection::default() };
    assert_eq!(read(&store, &all).len(), 3);
    assert_eq!(read(&store, &Selection { from: 6_060, ..all.clone() }), [(2, 10, 4)]);
    let of_route = Selection { route: Some("/b".to_owned()), ..all.clone() };
    assert_eq!(read(&store, &of_route), [(1, 10, 2)]);
    assert_eq!(read(&store, &Selection { generation: Some((5, 2)), ..all.clone() }), [(2, 10, 4)]);
    assert_eq!(read(&store, &Selection { generation: Some((4, 2)), ..all.clone() }), []);
    let routes = store.routes(&all).expect("readable");
    assert_eq!(routes, [("/a".to_owned(), 5), ("/b".to_owned(), 2)]);
    assert_eq!(store.before("", 2).expect("readable"), Some((1, 6_000)));
    assert_eq!(store.before("", 1).expect("readable"), None);
    assert_eq!(store.latest("").expect("readable"), Some(2));
    // The next run of the server finds the rows, but has sampled no generation yet.
    drop(store);
    let store = Store::open(Some(&file), LIMITS, 6).expect("a store");
    assert_eq!(read(&store, &all).len(), 3);
    assert_eq!(
        (store.latest("").expect("readable"), store.before("", 9).expect("readable")),
        (None, None)
    );
}

#[test]
fn file_of_first_version_is_migrated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profiles.sqlite");
    let mut store = Store::open(Some(&file), LIMITS, 5).expect("a store");
    store.put(&minute(6_000, 1, &[("/a", 1)])).expect("room");
    let before = "ALTER TABLE samples DROP COLUMN pool; PRAGMA user_version = 1;";
    store.connection.execute_batch(before).expect("as it was");
    drop(store);
    let store = Store::open(Some(&file), LIMITS, 6).expect("a store");
    let pool = Some(String::new());
    let all = Selection { to: u64::from(u32::MAX), pool, ..Selection::default() };
    assert_eq!(read(&store, &all), [(1, 10, 1)]);
    assert_eq!(store.pool_of("/a").expect("readable"), Some(String::new()));
    assert!(!folder.path().join("profiles.unreadable").exists());
}

#[test]
fn store_size_and_age_stay_within_limits() {
    let mut store = Store::open(None, LIMITS, 1).expect("a store");
    let name = |n: u64| format!("/{n}/{}", "x".repeat(200));
    for n in 0..3 * 24 * 60 {
        let names: Vec<_> = (0..4).map(|k| name(n * 4 + k)).collect();
        let routes: Vec<_> = names.iter().map(|name| (&**name, 1)).collect();
        store.put(&minute(10 * DAY + n * 60, 1, &routes)).expect("room is made");
    }
    assert!(store.used_bytes().expect("a number") <= LIMITS.bytes_max);
    let all = Selection { to: 20 * DAY, ..Selection::default() };
    let kept = store.routes(&all).expect("readable").len();
    assert!(kept > 100, "the last minutes are there: {kept}");
    store.put(&minute(13 * DAY + DAY + 60, 1, &[("/late", 1)])).expect("room");
    assert_eq!(store.routes(&all).expect("readable").len(), 1, "what is a day old is gone");
}

#[test]
fn invalid_database_file_is_renamed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("profiles.sqlite");
    std::fs::write(&file, "a text, and no database, of more than a hundred bytes".repeat(9))
        .expect("written");
    let mut store = Store::open(Some(&file), LIMITS, 1).expect("a new one");
    store.put(&minute(60, 1, &[("/", 1)])).expect("room");
    assert!(folder.path().join("profiles.unreadable").exists());
    let nowhere = folder.path().join("missing/profiles.sqlite");
    let error = Store::open(Some(&nowhere), LIMITS, 1).expect_err("no such folder");
    assert!(error.to_string().contains("missing/profiles.sqlite"), "{error}");
}

#[test]
fn row_with_garbage_is_skipped() {
    assert!(blob::read(b"garbage").is_none());
    assert!(blob::read(&[]).is_some_and(|profile| profile.is_empty()));
}
