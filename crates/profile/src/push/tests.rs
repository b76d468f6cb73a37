//! Pushes minutes to a Pyroscope that accepts them, and to peers that do not. Other programs check
//! the received bodies: `protoc`, and Go's pprof.

use super::{PushOptions, Pusher};
use crate::current_minute::{Minute, Row};
use crate::sample::{At, Sample};
use samovar_insight::{Fate, Model};
use samovar_spy::profile::Weight;
use samovar_spy::{Activity, Frame, Function};
use samovar_testkit::collector::{Collector, CollectorReply};
use samovar_testkit::protoc::{self, PUSH};
use samovar_testkit::{eventually, go_tool_pprof};
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AT: u64 = 1_800_000_000;

type Reports = Arc<Mutex<Vec<String>>>;

fn pusher(endpoint: &str, change: impl FnOnce(&mut PushOptions)) -> (Pusher, Reports) {
    let told = Reports::default();
    let into = Arc::clone(&told);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut options = PushOptions {
        endpoint: endpoint.to_owned(),
        headers: vec![pair("authorization", "Bearer xyz")],
        labels: vec![pair("env", "prod")],
        service: "shop".to_owned(),
        host: "web1".to_owned(),
        timeout: Duration::from_mins(10),
        bytes_max: 1 << 20,
        back_off: Duration::from_millis(10),
        spread: Duration::ZERO,
        roots: None,
        trouble: Box::new(move |text| into.lock().expect("no panic").push(text.to_owned())),
    };
    change(&mut options);
    (Pusher::start(options).expect("a thread"), told)
}

fn frame(class: &str, name: &str, line: u32) -> Frame {
    let (class, name, file) = (class.to_owned(), name.to_owned(), "/srv/a.php".to_owned());
    Frame { function: Arc::new(Function { class, name, file, line: 1 }), line }
}

/// A row of one route: 60 and 30 ns of CPU time, and 1000 ns of waiting.
fn row(generation: u64) -> Row {
    let mut row = Row { generation, model: Model::Checkpoint, requests: 3, ..Row::default() };
    let stack = |name: &str| [frame("Shop", name, 7), frame("", "{main}", 3)];
    let waits = Activity::Waiting { call: "flock".into(), peer: "/srv/lock".into() };
    for (name, activity, cpu_ns, wall_ns) in [
        ("six", &Activity::Running, 60, 100),
        ("three<&\"'\n>", &Activity::Running, 30, 100),
        ("rest", &waits, 0, 1_000),
    ] {
        row.profile.add(&stack(name), activity, Weight { samples: 1, wall_ns, cpu_ns });
    }
    row
}

fn minute(routes: &[&str]) -> Minute {
    let rows = routes.iter().map(|route| (Box::from(*route), row(2)));
    Minute { at: AT, rows: rows.collect() }
}

fn fates(pusher: &Pusher) -> (u64, u64, u64) {
    let [passed, lost, refused] = Fate::ALL.map(|fate| pusher.tally().get(fate));
    (passed, lost, refused)
}

fn await_fates(pusher: &Pusher, expected: (u64, u64, u64)) {
    eventually(&format!("profiles fare as {expected:?}"), || {
        (fates(pusher) == expected).then_some(())
    });
}

/// Returns the bytes of a text in protoc's output.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, left)) = rest.split_first() {
        rest = left;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let (second, left) = rest.split_first().expect("something is escaped");
        rest = left;
        match second {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'0'..=b'7' => {
                let digits =
                    std::str::from_utf8(&[&[*second], &rest[..2]].concat()).map(str::to_owned);
                let digits = digits.expect("digits");
                bytes.push(u8::from_str_radix(&digits, 8).expect("octal digits"));
                rest = &rest[2..];
            }
            other => bytes.push(*other),
        }
    }
    bytes
}

/// Returns the output of Go's pprof for each profile in a body, with its `__name__` and route.
fn tops(body: &[u8]) -> Vec<(String, String, String)> {
    let text = protoc::decode(PUSH, body);
    let value = |series: &str, name: &str| {
        let (_, rest) = series.split_once(&format!("name: \"{name}\"")).expect("a label");
        let (_, rest) = rest.split_once("value: \"").expect("its value");
        rest.split_once('"').expect("its end").0.to_owned()
    };
    let read = |series: &str| {
        let (_, raw) = series.split_once("raw_profile: \"").expect("a profile");
        let (raw, _) = raw.split_once("\"\n").expect("its end");
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&unescaped(raw)).expect("written");
        let top = go_tool_pprof().arg("-top").arg(file.path()).output().expect("Go is there");
        let top = String::from_utf8(top.stdout).expect("text");
        (value(series, "__name__"), value(series, "route"), top)
    };
    text.split("series {").skip(1).map(read).collect()
}

#[test]
fn pushed_profiles_are_readable_by_protoc_and_pprof() {
    let collector = Collector::start([]);
    let (pusher, told) = pusher(&collector.endpoint, |_| ());
    pusher.put(&minute(&["shop_show"]), AT + 60);
    let posted = collector.await_posted(1).remove(0);
    for line in [
        "post /push.v1.pusherservice/push http/1.1\r\n",
        "content-type: application/proto\r\n",
        "authorization: bearer xyz\r\n",
    ] {
        assert!(posted.head.contains(line), "{line} is not in {}", posted.head);
    }
    let text = protoc::decode(PUSH, &posted.body);
    for (name, value) in [
        ("service_name", "shop"),
        ("hostname", "web1"),
        ("env", "prod"),
        ("model", "checkpoint"),
        ("generation", "2"),
    ] {
        let pair = format!("name: \"{name}\"\n    value: \"{value}\"");
        assert_eq!(text.matches(&pair).count(), 2, "{pair} in {text}");
    }
    let tops = tops(&posted.body);
    let kinds: Vec<_> = tops.iter().map(|(kind, route, _)| (&**kind, &**route)).collect();
    assert_eq!(kinds, [("process_cpu", "shop_show"), ("wall", "shop_show")]);
    let cpu = &tops[0].2;
    assert!(cpu.contains("Type: cpu") && cpu.contains("Duration: 60s"), "{cpu}");
    assert!(cpu.contains("66.67%") && cpu.contains("Shop::six"), "{cpu}");
    assert!(!cpu.contains("Shop::rest"), "who waits uses no CPU time: {cpu}");
    let wall = &tops[1].2;
    assert!(wall.contains("Type: wall") && wall.contains("[flock /srv/lock]"), "{wall}");
    await_fates(&pusher, (2, 0, 0));
    assert!(told.lock().expect("no panic").is_empty());
}

#[test]
fn push_skips_empty_rows_and_bounds_routes() {
    let collector = Collector::start([]);
    let (pusher, _) = pusher(&collector.endpoint, |_| ());
    pusher.put(&Minute { at: AT, rows: vec![("r".into(), Row::default())] }, AT + 60);
    let names: Vec<_> = (0..300).map(|n| format!("route {n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    pusher.put(&minute(&names), AT + 60);
    await_fates(&pusher, (2 * 101, 0, 0));
    let text: String =
        collector.posted().iter().map(|posted| protoc::decode(PUSH, &posted.body)).collect();
    assert_eq!(text.matches("value: \"(other)\"").count(), 2, "all others are one");
    let ids: std::collections::BTreeSet<_> =
        text.lines().filter(|line| line.contains("ID: \"")).collect();
    assert_eq!(ids.len(), 202);
    for id in ids {
        let (_, id) = id.split_once('"').expect("a text");
        let parts: Vec<_> = id.trim_end_matches('"').split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
    }
}

#[test]
fn push_is_retried_after_overload_or_invalid_response() {
    let collector = Collector::start([
        CollectorReply::With(429, "retry-after: 1\r\n", br#"{"message":"slow\ndown"}"#.to_vec()),
        CollectorReply::With(503, "", Vec::new()),
        CollectorReply::Garbage,
        CollectorReply::Close,
    ]);
    let (pusher, told) = pusher(&collector.endpoint, |_| ());
    pusher.put(&minute(&["r"]), AT + 60);
    await_fates(&pusher, (2, 0, 0));
    let posted = collector.posted();
    assert_eq!(posted.len(), 5);
    assert!(posted[1].at - posted[0].at >= Duration::from_secs(1));
    assert!(posted.iter().all(|again| again.body == posted[0].body));
    let told = told.lock().expect("no panic");
    let [away, again] = &told[..] else { panic!("{told:?}") };
    assert!(away.ends_with("does not accept profiles: status 429 slowdown"), "{away}");
    assert!(again.ends_with("accepts profiles again"), "{again}");
}

#[test]
fn rejected_push_is_not_retried_and_reported_once() {
    let message = br#"{"code":"invalid_argument","message":"profile is too old"}"#;
    let refusal = || CollectorReply::With(400, "", message.to_vec());
    let collector = Collector::start([refusal(), refusal()]);
    let (pusher, told) = pusher(&collector.endpoint, |_| ());
    for n in 1..=2 {
        pusher.put(&minute(&["r"]), AT + 60);
        await_fates(&pusher, (0, 0, 2 * n));
    }
    pusher.put(&minute(&["r"]), AT + 60);
    await_fates(&pusher, (2, 0, 4));
    assert_eq!(collector.posted().len(), 3);
    let told = told.lock().expect("no panic");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].ends_with("rejects profiles: status 400 profile is too old"), "{told:?}");
}

#[test]
fn hanging_collector_does_not_block_and_oldest_are_dropped() {
    let collector = Collector::start(vec![CollectorReply::Hang; 10]);
    let (pusher, _) = pusher(&collector.endpoint, |options| options.bytes_max = 20_000);
    pusher.put(&minute(&["first"]), AT + 60);
    collector.await_posted(1);
    // Queueing never blocks, and the queue has a limit.
    for _ in 0..100 {
        pusher.put(&minute(&["next"]), AT + 60);
    }
    let (passed, lost, refused) = fates(&pusher);
    assert_eq!((passed, refused), (0, 0));
    assert!((100..200).contains(&lost), "{lost}");
    assert!(pusher.desk.queue(|waiting| (waiting.bytes, false)) <= 20_000);
    pusher.finish();
    assert_eq!(fates(&pusher).1, 200, "what was queued is lost in the end; one hangs");
    let bytes = pusher.desk.queue(|waiting| (waiting.bytes, false));
    assert_eq!(bytes, 0);
}

#[test]
fn finish_sends_queued_bodies() {
    let collector = Collector::start([]);
    let (pusher, _) = pusher(&collector.endpoint, |options| {
        options.spread = Duration::from_hours(10_000);
    });
    pusher.put(&minute(&["r"]), AT + 60);
    assert!(collector.posted().is_empty());
    pusher.finish();
    assert_eq!(fates(&pusher), (2, 0, 0));
    assert_eq!(tops(&collector.posted()[0].body).len(), 2);
}

#[test]
fn push_options_with_bad_address_or_header_are_rejected() {
    for (endpoint, header, expected) in [
        ("127.0.0.1:4040", "a", "hint: http://127.0.0.1:4040"),
        ("http://127.0.0.1:4040", "a b", "HTTP does not allow"),
    ] {
        let options = PushOptions {
            endpoint: endpoint.to_owned(),
            headers: vec![(header.to_owned(), "x".to_owned())],
            labels: Vec::new(),
            service: "shop".to_owned(),
            host: String::new(),
            timeout: Duration::from_secs(1),
            bytes_max: 1,
            back_off: Duration::from_secs(1),
            spread: Duration::ZERO,
            roots: None,
            trouble: Box::new(|_| ()),
        };
        let wrong = Pusher::check(&options).expect_err("it cannot work").to_string();
        assert!(wrong.contains(expected), "{wrong}");
    }
}

#[test]
fn large_profiles_keep_their_heaviest_stacks() {
    let mut row = Row { generation: 1, ..Row::default() };
    for n in 0..3_000_u64 {
        let name = format!("{n}{}", "x".repeat(2_000));
        let ns = if n == 2_999 { 1_000_000 } else { 1 + n };
        let weight = Weight { samples: 1, wall_ns: ns, cpu_ns: ns };
        row.profile.add(&[frame("", &name, 1)], &Activity::Running, weight);
    }
    let minute = Minute { at: AT, rows: vec![("r".into(), row)] };
    let bodies = super::bodies::of(&minute, &[], AT + 60);
    assert_eq!(bodies.iter().map(|(_, profiles)| profiles).sum::<u64>(), 2);
    let (_, _, top) = tops(&bodies[0].0).remove(0);
    // The heavier half: 1501 to 2999 ns, and the heaviest.
    assert!(top.contains("2999x") && top.contains("of 4.37ms total"), "{top}");
}

#[test]
fn finished_profiles_are_pushed_with_last_minute() {
    let collector = Collector::start([]);
    let (pusher, _) = pusher(&collector.endpoint, |_| ());
    let profiles = crate::Profiles::start(crate::Options {
        path: None,
        bytes_max: 1 << 20,
        keep: Duration::from_hours(1),
        hertz: 49,
        default_pool: "default",
        is_told: false,
        trouble: Box::new(|_| {}),
        handover_gate: samovar_insight::HandoverGate::now(),
        push: Some(Arc::new(pusher)),
    });
    let profiles = profiles.expect("a thread");
    profiles.add(&Sample {
        pool: "",
        generation: 1,
        model: Model::Script,
        is_boot: false,
        request: Some(("id", "/index.php", "/a")),
        at: At::Php(&[frame("", "work", 3)], &Activity::Running),
        weight: Weight { samples: 1, wall_ns: 1, cpu_ns: 1 },
    });
    profiles.finish();
    let tops = tops(&collector.posted()[0].body);
    assert_eq!(tops[0].1, "index.php /a");
    assert!(tops[0].2.contains(" work"), "{}", tops[0].2);
}
