//! The file of the embedded store: reopened, damaged, newer.

use super::*;
use samovar_channel::NewJob;
use std::os::unix::fs::FileExt as _;

fn trace() -> TraceContext {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
    TraceContext { traceparent, tracestate: "a=\"b\"".to_owned() }
}

fn insert(payload: &str) -> Insert {
    let job = NewJob {
        payload: payload.to_owned(),
        key: Some("k".to_owned()),
        priority: -3,
        delay_ms: 5,
        attempts: 2,
        unique_ms: 9,
        trace: trace(),
    };
    Insert { queue: "emails".to_owned(), job, pushed_ms: 100 }
}

fn after(id: i64) -> Page {
    Page { after: id, until: i64::MAX, max: 10, bytes_max: 1_000 }
}

fn open(path: &Path) -> SqliteStore {
    let (store, aside) = SqliteStore::open(path, 1).expect("a store");
    assert_eq!(aside, None);
    store
}

#[test]
fn jobs_survive_reopening() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.sqlite");
    let mut store = open(&path);
    let ids =
        store.commit(&[insert("1"), insert("\"ü\""), insert("3")], &[], true).expect("stored");
    assert_eq!(ids, [1, 2, 3]);
    let retry = Change::Retry { id: 2, attempts: 1, due_ms: 77, error: "no".to_owned() };
    let pause = Change::Pause("emails".to_owned(), true);
    store.commit(&[], &[Change::Remove(1), retry, pause], false).expect("stored");
    drop(store);

    let mut store = open(&path);
    let loaded = store.load().expect("readable");
    let [(queue, second), (_, third)] = &loaded.jobs[..] else { panic!("{loaded:?}") };
    assert_eq!(queue, "emails");
    let expected = JobState {
        id: 2,
        priority: -3,
        key: Some("k".to_owned()),
        unique_until_ms: 109,
        due_ms: 77,
        pushed_ms: 100,
        attempts: 1,
        attempts_max: 2,
        payload_bytes: "\"ü\"".len() + crate::trace::bytes(&trace()),
    };
    assert_eq!(second, &expected);
    assert_eq!((third.id, third.due_ms), (3, 105));
    assert_eq!(loaded.paused, ["emails"]);
    let contents = store.contents(&[3, 1, 2]).expect("readable");
    let content = |payload: &str| Some(Content { payload: payload.to_owned(), trace: trace() });
    assert_eq!(contents, [content("3"), None, content("\"ü\"")]);
    assert_eq!(store.commit(&[insert("4")], &[], true).expect("stored"), [4], "no id is reused");
}

#[test]
fn dead_job_is_kept_and_revived() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = open(&folder.path().join("jobs.sqlite"));
    store.commit(&[insert("1"), insert("2")], &[], true).expect("stored");
    let failure = Failure {
        class: "Broken".to_owned(),
        place: "/a.php:3".to_owned(),
        text: "broken".to_owned(),
    };
    let bury = |id| Change::Bury { id, attempts: 2, died_ms: 200, failure: failure.clone() };
    store.commit(&[], &[bury(1), bury(2)], false).expect("stored");
    let dead = store.dead("emails", &after(0)).expect("readable");
    assert_eq!(dead.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!((&*dead[0].error, &*dead[0].payload, dead[0].attempts), ("broken", "1", 2));
    assert_eq!((&*dead[0].class, &*dead[0].place), ("Broken", "/a.php:3"));
    let TraceContext { traceparent, tracestate } = trace();
    assert_eq!((&dead[0].traceparent, &dead[0].tracestate), (&traceparent, &tracestate));
    assert_eq!(store.dead("emails", &after(1)).expect("readable").len(), 1);
    assert!(store.dead("other", &after(0)).expect("readable").is_empty());
    let loaded = store.load().expect("readable");
    assert_eq!((loaded.jobs.len(), &*loaded.dead[0].0, loaded.dead[0].1), (0, "emails", 2));

    store.commit(&[], &[Change::Revive(1), Change::RemoveDead(2)], false).expect("stored");
    assert!(store.dead("emails", &after(0)).expect("readable").is_empty());
    let job = store.job(1).expect("readable").expect("revived");
    assert_eq!((job.attempts, job.due_ms, job.attempts_max), (0, 0, 2));
    let content = store.contents(&[1]).expect("readable").remove(0).expect("revived");
    assert_eq!(content.trace, trace());
}

#[test]
fn damaged_file_is_set_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.sqlite");
    std::fs::write(&path, "this is not a database, but it is long enough for a header").unwrap();
    let (mut store, aside) = SqliteStore::open(&path, 5).expect("a new store");
    let aside = aside.expect("the file was renamed");
    assert_eq!(aside, folder.path().join("jobs.sqlite.damaged-5"));
    assert!(std::fs::read_to_string(&aside).unwrap().starts_with("this is not"));
    store.commit(&[insert("1")], &[], true).expect("usable");

    // A page in the middle is overwritten.
    let many: Vec<Insert> = (0..500).map(|_| insert(&format!("\"{}\"", "x".repeat(500)))).collect();
    store.commit(&many, &[], true).expect("stored");
    drop(store);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let middle = file.metadata().unwrap().len() / 2 / 4_096 * 4_096;
    file.write_all_at(&[0x5a; 4_096], middle).unwrap();
    let (mut store, aside) = SqliteStore::open(&path, 6).expect("a new store");
    assert!(aside.is_some_and(|path| path.exists()));
    assert!(store.load().expect("readable").jobs.is_empty());
}

#[test]
fn torn_log_loses_only_its_last_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.sqlite");
    let mut store = open(&path);
    store.commit(&[insert("1")], &[], true).expect("stored");
    store.commit(&[insert("2")], &[], true).expect("stored");
    // The copy is the state after a crash: its last write was torn.
    let copy = folder.path().join("copy.sqlite");
    std::fs::copy(&path, &copy).unwrap();
    let log = std::fs::read(folder.path().join("jobs.sqlite-wal")).unwrap();
    std::fs::write(folder.path().join("copy.sqlite-wal"), &log[..log.len() - 100]).unwrap();
    let jobs = open(&copy).load().expect("readable").jobs;
    assert_eq!(jobs.iter().map(|(_, job)| job.id).collect::<Vec<_>>(), [1]);
}

#[test]
fn newer_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.sqlite");
    drop(open(&path));
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
    drop(connection);
    let error = SqliteStore::open(&path, 1).expect_err("newer").to_string();
    assert!(error.contains("has version 4") && error.contains("hint:"), "{error}");
    assert!(path.exists(), "it is not renamed");
}

/// Tables of version 1.
const VERSION_1: &str = "
    CREATE TABLE jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL, priority INTEGER NOT NULL,
        key TEXT, unique_until INTEGER NOT NULL, due INTEGER NOT NULL, pushed INTEGER NOT NULL,
        attempts INTEGER NOT NULL, attempts_max INTEGER NOT NULL, error TEXT, payload TEXT NOT NULL
    );
    CREATE TABLE dead (
        id INTEGER PRIMARY KEY, queue TEXT NOT NULL, priority INTEGER NOT NULL, key TEXT,
        pushed INTEGER NOT NULL, died INTEGER NOT NULL, attempts INTEGER NOT NULL,
        attempts_max INTEGER NOT NULL, error TEXT NOT NULL, payload TEXT NOT NULL
    );
    CREATE INDEX dead_queue ON dead (queue, id);
    CREATE TABLE paused (queue TEXT PRIMARY KEY) WITHOUT ROWID;
    INSERT INTO jobs VALUES (3, 'emails', 0, NULL, 0, 0, 5, 0, 0, NULL, '1');
    INSERT INTO dead VALUES (2, 'emails', 0, NULL, 5, 6, 1, 0, 'broken', '2');
    PRAGMA user_version = 1;
";

#[test]
fn file_of_version_1_is_read_and_still_usable_by_its_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jobs.sqlite");
    let older = Connection::open(&path).unwrap();
    older.pragma_update(None, "journal_mode", "wal").unwrap();
    older.execute_batch(VERSION_1).unwrap();
    let mut store = open(&path);
    let loaded = store.load().expect("readable");
    assert_eq!((loaded.jobs.len(), loaded.dead[0].1), (1, 1));
    assert_eq!(&*store.dead("emails", &after(0)).expect("readable")[0].error, "broken");
    // The server before an upgrade still writes.
    let insert = "INSERT INTO dead (id, queue, priority, key, pushed, died, attempts, attempts_max,
                  error, payload) SELECT id, queue, priority, key, pushed, 1, 2, attempts_max, '',
                  payload FROM jobs WHERE id = 3";
    older.execute(insert, []).unwrap();
    assert_eq!(store.dead("emails", &after(0)).expect("readable").len(), 2);
    drop(store);
    assert_eq!(open(&path).load().expect("readable").dead[0].1, 2);
}
