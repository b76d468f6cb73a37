use super::{Form, SlowLog, SlowLogOptions};
use crate::finished::{Finished, Model, Numbers};
use crate::observation::Seen;
use crate::report::{Entry, Wait, WaitKind};
use crate::sink::{Fate, Sink};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const MS: u64 = 1_000_000;

type Lines = Arc<Mutex<Vec<String>>>;

fn log(form: Form, per_second_max: u32) -> (SlowLog, Lines) {
    let lines = Lines::default();
    let into = Arc::clone(&lines);
    let write = Box::new(move |line: &str| into.lock().unwrap().push(line.to_owned()));
    let options = SlowLogOptions { form, per_second_max, ..SlowLogOptions::new(1_000 * MS, write) };
    (SlowLog::new(options), lines)
}

fn finished(wall_ms: u64) -> Finished<'static> {
    let numbers = Numbers {
        status: 200,
        worker: 7,
        model: Model::Checkpoint,
        wall_ns: wall_ms * MS,
        queue_ns: 3 * MS,
        cpu_ns: 7_654_321,
        trace_id: [0xab; 16],
        is_sampled: true,
        ..Numbers::default()
    };
    Finished { numbers, method: "GET", path: "/p/1", id: "id-1", ..Finished::default() }
}

fn entries() -> Vec<Entry<'static>> {
    let wait = |kind, peer, times, ms| Entry::Wait(Wait { kind, peer, times, ns: ms * MS });
    vec![
        wait(WaitKind::Sleep, "", 1, 3),
        wait(WaitKind::Tcp, "10.0.0.5:5432", 4, 62),
        Entry::Timer {
            hits: 2,
            wall_ns: 5 * MS,
            user_ns: MS,
            system_ns: MS,
            tags: vec![("group", "mysql")],
        },
        Entry::Tag("country", "de"),
        Entry::Place("App\\Foo::bar() src/Foo.php:12"),
    ]
}

fn take(log: &mut SlowLog, finished: &Finished, entries: &[Entry], now: u64) {
    log.take(&Seen { finished, route: "shop_show", entries, now, scene: None });
}

#[test]
fn record_contains_parts_of_the_time() {
    let (mut log, lines) = log(Form::Json, 10);
    take(&mut log, &finished(999), &entries(), 1);
    take(&mut log, &finished(1_200), &entries(), 1);
    let lines = lines.lock().unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let record: Value = serde_json::from_str(line).unwrap();
    for (key, expected) in [
        ("event", json!("slow_request")),
        ("route", json!("shop_show")),
        ("path", json!("/p/1")),
        ("request_id", json!("id-1")),
        ("trace_id", json!("ab".repeat(16))),
        ("model", json!("checkpoint")),
        ("wall_ms", json!(1_200.0)),
        ("cpu_ms", json!(7.654)),
        ("waiting_ms", json!(65.0)),
        ("tags", json!({ "country": "de" })),
        ("place", json!("App\\Foo::bar() src/Foo.php:12")),
        ("suppressed", json!(0)),
        ("timers", json!([{ "tags": { "group": "mysql" }, "hits": 2, "ms": 5.0, "cpu_ms": 2.0 }])),
    ] {
        assert_eq!(record[key], expected, "{key}");
    }
    let first = json!({ "kind": "tcp", "peer": "10.0.0.5:5432", "times": 4, "ms": 62.0 });
    assert_eq!(record["waits"][0], first);
}

#[test]
fn text_record_has_longest_wait_first() {
    let (mut log, lines) = log(Form::Text, 10);
    take(&mut log, &finished(1_200), &entries(), 1);
    let expected = "slow request: 1200 ms GET /p/1 route=\"shop_show\" status=200 id=id-1 \
        end=completed model=checkpoint worker=7 cell=0 generation=0 queue=3 run=0 cpu=7.654 \
        waiting=65 boot=0 rollback=0 memory=0 in=0 out=0 trace=abababababababababababababababab; \
        62 ms in 4 × tcp 10.0.0.5:5432; 3 ms in 1 × sleep ; 5 ms in 2 × [group=mysql]; \
        at App\\\\Foo::bar() src/Foo.php:12";
    assert_eq!(*lines.lock().unwrap(), [expected]);
}

#[test]
fn record_escapes_text_and_omits_query_string() {
    for form in [Form::Text, Form::Json] {
        let (mut log, lines) = log(form, 10);
        let path = "/a\nforged \u{1b}[2J\u{2028}\u{202e}?password=x";
        take(&mut log, &Finished { path, ..finished(2_000) }, &[], 1);
        let lines = lines.lock().unwrap();
        assert!(!lines[0].chars().any(samovar_log::is_unprintable), "{form:?} {}", lines[0]);
        assert!(!lines[0].contains("password"), "{form:?} {}", lines[0]);
    }
}

#[test]
fn frequent_route_leaves_records_to_others() {
    let (mut log, lines) = log(Form::Text, 10);
    let finished = finished(2_000);
    for route in ["/often"; 50].into_iter().chain(["/rare", "/other", "/late"]) {
        log.take(&Seen { finished: &finished, route, entries: &[], now: 1, scene: None });
    }
    let lines = lines.lock().unwrap();
    let of = |route: &str| lines.iter().filter(|line| line.contains(route)).count();
    assert_eq!((of("\"/often\""), of("\"/rare\""), of("\"/other\"")), (8, 1, 1));
    assert_eq!(lines.len(), 10, "the rate is a limit");
}

#[test]
fn records_beyond_rate_are_counted_in_next_record() {
    let (mut log, lines) = log(Form::Text, 2);
    for now in [1, 1, 1, 1, 1, 2, 2] {
        take(&mut log, &finished(2_000), &[], now);
    }
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 4);
    assert!(lines[2].ends_with("; 3 more slow requests not logged"), "{}", lines[2]);
    assert!(!lines[3].contains("not logged"));
    let tally = log.tally();
    assert_eq!((tally.get(Fate::Passed), tally.get(Fate::Lost)), (4, 3));
}
