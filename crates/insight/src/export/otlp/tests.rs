use super::identity::Identity;
use super::message::{ExportTraceServiceRequest, Span, Value};
use super::spans::{CHILDREN_MAX, ERROR, Spans, derived};
use crate::finished::{Finished, Numbers};
use crate::report::{
    BOOTS_MAX, Boot, Entry, ErrorKind, ReportedError, SpanKind, Statement, StatementKind,
    TimedSpan, TimedSpans, Wait, WaitKind,
};
use prost::Message as _;
use std::collections::HashSet;

const SPAN: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn numbers() -> Numbers {
    Numbers {
        began_unix_us: 1_000_000,
        status: 500,
        worker: 7,
        wall_ns: 9_000,
        queue_ns: 1_000,
        run_ns: 7_000,
        trace_id: [0xab; 16],
        is_sampled: true,
        span_id: SPAN,
        parent_span_id: [9; 8],
        ..Numbers::default()
    }
}

fn spans(numbers: Numbers, entries: &[Entry]) -> Vec<Span> {
    let finished = Finished { numbers, method: "GET", path: "/p/1", ..Finished::default() };
    let identity = Identity {
        service: "shop".into(),
        version: "1.2.3".into(),
        host: "web1".into(),
        ..Identity::default()
    };
    let mut spans = Spans::default();
    spans.add(&finished, "shop_show", entries);
    let body = spans.encode(&identity);
    let request = ExportTraceServiceRequest::decode(&body[..]).expect("what was encoded");
    let resource = &request.resource_spans[0];
    assert_eq!(resource.resource.as_ref().map(|r| r.attributes.len()), Some(5));
    resource.scope_spans[0].spans.clone()
}

fn value(span: &Span, key: &str) -> Option<Value> {
    let found = span.attributes.iter().find(|a| a.key == key)?;
    found.value.clone()?.value
}

#[test]
fn request_is_server_span_with_queue_and_php_children() {
    let entries = [
        Entry::Wait(Wait { kind: WaitKind::Tcp, peer: "db:5432", times: 3, ns: 5_000 }),
        Entry::Timer {
            hits: 2,
            wall_ns: 100,
            user_ns: 10,
            system_ns: 5,
            tags: vec![("group", "mysql")],
        },
    ];
    let all = spans(numbers(), &entries);
    let names: Vec<_> = all.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["GET shop_show", "queue", "php", "wait tcp db:5432", "mysql"]);
    let [server, queue, php, wait, timer] = &all[..] else { panic!("{all:?}") };
    assert_eq!((&server.parent_span_id[..], &server.span_id[..]), (&[9; 8][..], &SPAN[..]));
    assert_eq!(server.status.as_ref().map(|s| s.code), Some(ERROR));
    assert_eq!(value(server, "http.response.status_code"), Some(Value::Number(500)));
    assert_eq!(server.start_time_unix_nano, 1_000_000_000);
    assert_eq!(server.end_time_unix_nano, 1_000_009_000);
    assert_eq!((&queue.parent_span_id, &php.parent_span_id), (&server.span_id, &server.span_id));
    assert_eq!(php.start_time_unix_nano, queue.end_time_unix_nano);
    assert_eq!(php.end_time_unix_nano, 1_000_008_000);
    assert_eq!((&wait.parent_span_id, &timer.parent_span_id), (&php.span_id, &php.span_id));
    assert_eq!(value(wait, "samovar.times"), Some(Value::Number(3)));
    assert_eq!(value(wait, "server.address"), Some(Value::Text("db".to_owned())));
    assert_eq!(value(wait, "server.port"), Some(Value::Number(5432)));
    assert_eq!(value(server, "url.scheme"), Some(Value::Text("http".to_owned())));
    assert_eq!(value(server, "error.type"), Some(Value::Text("500".to_owned())));
    assert_eq!(value(timer, "samovar.cpu_ns"), Some(Value::Number(15)));
}

#[test]
fn exception_is_event_of_server_span() {
    let error = |kind, class| {
        Entry::Error(ReportedError {
            kind,
            class,
            file: "/srv/Shop.php",
            line: 12,
            message: "no stock".into(),
            stack: "#0 /srv/index.php(3): show()",
        })
    };
    let entries = [error(ErrorKind::Uncaught, "OutOfStock"), error(ErrorKind::Previous, "Inner")];
    let server = &spans(numbers(), &entries)[0];
    assert_eq!(value(server, "error.type"), Some(Value::Text("OutOfStock".to_owned())));
    let [event] = &server.events[..] else { panic!("{:?}", server.events) };
    assert_eq!((event.name.as_str(), event.time_unix_nano), ("exception", 1_000_009_000));
    let of_event = |key: &str| {
        let found = event.attributes.iter().find(|a| a.key == key)?;
        found.value.clone()?.value
    };
    for (key, expected) in [
        ("exception.type", "OutOfStock"),
        ("exception.message", "no stock"),
        ("exception.escaped", "true"),
        (
            "exception.stacktrace",
            "OutOfStock: no stock in /srv/Shop.php:12\nStack trace:\n\
             #0 /srv/index.php(3): show()\n\nCaused by Inner: no stock in /srv/Shop.php:12",
        ),
    ] {
        assert_eq!(of_event(key), Some(Value::Text(expected.to_owned())), "{key}");
    }
}

#[test]
fn boots_and_rollbacks_within_request_are_spans() {
    let of = |numbers, boots: &[Boot]| {
        let entries: Vec<_> = boots.iter().map(|boot| Entry::Boot(*boot)).collect();
        let all = spans(numbers, &entries);
        let begin = all[0].start_time_unix_nano;
        let place =
            |span: &Span| (span.start_time_unix_nano - begin, span.end_time_unix_nano - begin);
        let named: Vec<_> =
            all.iter().map(|s| (s.name.clone(), place(s), s.parent_span_id.clone())).collect();
        let php = all.iter().find(|s| s.name == "php").expect("a worker ran it").span_id.clone();
        (named, php)
    };
    let server = SPAN.to_vec();
    // The worker began to boot before the request arrived. The script's boot took the first 2 µs of
    // its run.
    let (all, php) =
        of(numbers(), &[Boot { ago_ns: 5_000, ns: 4_500 }, Boot { ago_ns: 0, ns: 2_000 }]);
    assert!(all.contains(&("boot".into(), (0, 500), server.clone())), "{all:?}");
    assert!(all.contains(&("boot".into(), (1_000, 3_000), php)), "{all:?}");
    // This boot ended before the request arrived.
    let (all, _) = of(numbers(), &[Boot { ago_ns: 9_000, ns: 4_500 }]);
    assert!(!all.iter().any(|(name, ..)| name == "boot"), "{all:?}");
    for (rollback_ns, place) in [(400, Some((600, 1_000))), (4_000, Some((0, 1_000))), (0, None)] {
        let (all, _) = of(Numbers { rollback_ns, rollback_pages: 3, ..numbers() }, &[]);
        let found = all.iter().find(|(name, ..)| name == "rollback").map(|(_, place, _)| *place);
        assert_eq!(found, place, "{all:?}");
    }
    // A worker's report may contain nonsense; the result must stay valid.
    let wild = [Boot { ago_ns: u64::MAX, ns: u64::MAX }; 50];
    let (all, _) = of(numbers(), &wild);
    assert_eq!(all.iter().filter(|(name, ..)| name == "boot").count(), BOOTS_MAX);
    let (all, _) = of(numbers(), &[Boot { ago_ns: 0, ns: u64::MAX }]);
    assert!(all.iter().all(|(_, (_, end), _)| *end <= 9_000), "{all:?}");
}

#[test]
fn attributes_follow_semantic_conventions() {
    for (kind, peer, address, port) in [
        (WaitKind::Udp, "[::1]:53", Some("::1"), Some(53)),
        (WaitKind::Unix, "/run/db.sock", Some("/run/db.sock"), None),
        (WaitKind::Lock, "/srv/lock:7", None, None),
    ] {
        let all = spans(numbers(), &[Entry::Wait(Wait { kind, peer, times: 1, ns: 1 })]);
        let address = address.map(|text| Value::Text(text.to_owned()));
        assert_eq!(value(&all[3], "server.address"), address, "{peer}");
        assert_eq!(value(&all[3], "server.port"), port.map(Value::Number), "{peer}");
        assert_eq!(value(&all[3], "samovar.wait.peer"), Some(Value::Text(peer.to_owned())));
    }
    let finished = Finished { numbers: numbers(), method: "BREW", ..Finished::default() };
    let mut spans = Spans::default();
    spans.add(&finished, "pot", &[]);
    assert_eq!(spans.0[0].name, "HTTP pot");
    let (said, original) = ("http.request.method", "http.request.method_original");
    assert_eq!(value(&spans.0[0], said), Some(Value::Text("_OTHER".to_owned())));
    assert_eq!(value(&spans.0[0], original), Some(Value::Text("BREW".to_owned())));
}

#[test]
fn request_without_trace_has_no_spans() {
    assert!(spans(Numbers { is_sampled: false, ..numbers() }, &[]).is_empty());
}

#[test]
fn request_without_worker_is_one_span() {
    let all = spans(Numbers { worker: 0, parent_span_id: [0; 8], ..numbers() }, &[]);
    assert_eq!(all.len(), 1);
    assert!(all[0].parent_span_id.is_empty());
}

#[test]
fn child_spans_are_limited_and_have_unique_ids() {
    let peers: Vec<String> = (0..2 * CHILDREN_MAX).map(|n| n.to_string()).collect();
    let entries: Vec<_> = peers
        .iter()
        .map(|peer| Entry::Wait(Wait { kind: WaitKind::Udp, peer, times: 1, ns: 1 }))
        .collect();
    let all = spans(numbers(), &entries);
    assert_eq!(all.len(), 3 + CHILDREN_MAX);
    let ids: HashSet<_> = all.iter().map(|s| s.span_id.clone()).collect();
    assert_eq!(ids.len(), all.len());
    assert_ne!(derived([0; 8], 0), [0; 8]);
}

#[test]
fn statements_and_waits_are_spans_at_their_times() {
    let statement = |kind, text| {
        let (file, line) = ("/srv/list.php", 40);
        Entry::Statement(Statement {
            kind,
            text,
            calls: 2,
            ns: 9,
            rows: 0,
            place_calls: 2,
            file,
            line,
        })
    };
    let span = |kind, index, from_us, us| TimedSpan { kind, index, from_us, us };
    let bytes = TimedSpans::encode(&[
        span(SpanKind::Wait, 1, 6, 2),
        span(SpanKind::Statement, 0, 5, 4),
        span(SpanKind::Statement, 1, 1, 3),
        span(SpanKind::Statement, 9, 0, 1), // refers to nothing
        span(SpanKind::Wait, u16::MAX, u32::MAX, u32::MAX),
    ]);
    let entries = [
        Entry::Wait(Wait { kind: WaitKind::Sleep, peer: "", times: 3, ns: 5_000 }),
        statement(StatementKind::Sql, "SELECT ?"),
        Entry::Wait(Wait { kind: WaitKind::Tcp, peer: "db:5432", times: 1, ns: 2_000 }),
        statement(StatementKind::Http, "GET h/x"),
        Entry::Spans(TimedSpans::of(&bytes).expect("whole spans")),
        Entry::CpuDelay(u64::MAX),
    ];
    let all = spans(numbers(), &entries);
    let names: Vec<_> = all[2..].iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["php", "GET h/x", "SELECT ?", "wait tcp db:5432", "wait sleep"]);
    let [php, http, sql, wait, sum] = &all[2..] else { panic!("{all:?}") };
    let after = |span: &Span| span.start_time_unix_nano - php.start_time_unix_nano;
    let ns = |span: &Span| span.end_time_unix_nano - span.start_time_unix_nano;
    assert_eq!([after(http), after(sql), after(wait), after(sum)], [1_000, 5_000, 6_000, 0]);
    assert_eq!([ns(http), ns(sql), ns(wait), ns(sum)], [3_000, 4_000, 2_000, 5_000]);
    assert!(all[3..].iter().all(|span| span.parent_span_id == php.span_id));
    assert_eq!(value(sql, "db.query.text"), Some(Value::Text("SELECT ?".to_owned())));
    assert_eq!(value(sql, "code.lineno"), Some(Value::Number(40)));
    assert_eq!(value(http, "url.template"), Some(Value::Text("h/x".to_owned())));
    let delay = i64::try_from(numbers().run_ns).ok().map(Value::Number);
    assert_eq!(value(php, "samovar.cpu_delay_ns"), delay, "not more than the run");
}
