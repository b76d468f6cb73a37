//! Spans and figures to a collector that takes them, and to those that do not.

use crate::stage::{Stage, report, request};
use samovar_insight::Options;
use samovar_insight::export::otlp::{Exporter, Identity, OtlpOptions};
use samovar_testkit::collector::{Answer, Collector};
use samovar_testkit::eventually;
use samovar_testkit::protoc::{self, ANSWER, METRICS, TRACES};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Spans of one request of `stage::request`: its own, queue, PHP, wait, timer.
const SPANS: u64 = 5;
const WAY: &str = "otlp_spans";

pub(crate) type Told = Arc<Mutex<Vec<String>>>;

pub(crate) fn stage(endpoint: &str, change: impl FnOnce(&mut OtlpOptions)) -> (Stage, Told) {
    let told = Told::default();
    let into = Arc::clone(&told);
    let identity =
        Identity { service: "shop".into(), version: "1.2.3".into(), host: "web1".into() };
    let trouble =
        Box::new(move |text: &str| into.lock().expect("nobody panicked").push(text.to_owned()));
    let mut options = OtlpOptions {
        every: Duration::from_millis(10),
        back_off: Duration::from_millis(10),
        figures_every: None,
        ..OtlpOptions::new(endpoint, identity, trouble)
    };
    change(&mut options);
    let exporter = Exporter::start(options).expect("an exporter");
    let options = Options { sinks: vec![Box::new(exporter)], ..Options::default() };
    (Stage::new(options), told)
}

pub(crate) fn await_fates(stage: &Stage, expected: (u64, u64, u64)) {
    eventually(&format!("spans fare as {expected:?}"), || {
        (stage.fates(WAY) == expected).then_some(())
    });
}

#[test]
fn spans_are_what_protoc_reads() {
    for gzip in [true, false] {
        let collector = Collector::start([]);
        let (mut stage, told) = stage(&collector.endpoint, |options| {
            options.gzip = gzip;
            options.headers = vec![("authorization".into(), "Bearer xyz".into())];
        });
        stage.serve(&request(&report()), 1);
        let posted = collector.await_posted(1).remove(0);
        for line in [
            "post /v1/traces http/1.1\r\n",
            "content-type: application/x-protobuf\r\n",
            "authorization: bearer xyz\r\n",
        ] {
            assert!(posted.head.contains(line), "{line} is not in {}", posted.head);
        }
        assert_eq!(posted.head.contains("content-encoding: gzip"), gzip);
        let text = protoc::decode(TRACES, &posted.body);
        for expected in [
            "string_value: \"shop\"",
            "name: \"GET shop_show\"",
            "kind: SPAN_KIND_SERVER",
            "name: \"wait tcp db:5432\"",
            "kind: SPAN_KIND_CLIENT",
            "name: \"mysql\"",
            "string_value: \"(redacted)\"",
            "end_time_unix_nano: 1500000000",
            "trace_id: \"\\253\\253\\253",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
        await_fates(&stage, (SPANS, 0, 0));
        stage.finish();
        assert!(told.lock().expect("nobody panicked").is_empty());
    }
}

#[test]
fn figures_are_the_families_of_prometheus() {
    let collector = Collector::start([]);
    let (mut stage, _) = stage(&collector.endpoint, |options| {
        options.figures_every = Some(Duration::ZERO);
        // No spans meanwhile.
        options.every = Duration::from_mins(10);
    });
    stage.serve(&request(&report()), 3);
    let text = eventually("figures of all requests come", || {
        let posted = collector.posted().pop()?;
        assert!(posted.head.starts_with("post /v1/metrics"), "{}", posted.head);
        let text = protoc::decode(METRICS, &posted.body);
        text.contains("as_double: 3").then_some(text)
    });
    for expected in [
        "name: \"samovar_http_requests\"",
        "name: \"samovar_http_request_duration_seconds\"",
        "unit: \"s\"",
        "is_monotonic: true",
        "aggregation_temporality: AGGREGATION_TEMPORALITY_CUMULATIVE",
        "explicit_bounds: 0.5",
        "count: 3",
        "string_value: \"shop_show\"",
        "as_double: 0.186",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    stage.finish();
}

#[test]
fn who_is_overloaded_is_asked_again_when_it_said_and_told_of_once() {
    let later = Answer::With(503, "retry-after: 1\r\n", Vec::new());
    let collector = Collector::start([later, Answer::With(429, "", Vec::new())]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 0));
    let posted = collector.posted();
    assert_eq!(posted.len(), 3);
    assert!(posted[1].at - posted[0].at >= Duration::from_secs(1));
    assert_eq!(posted[2].body, posted[0].body);
    stage.finish();
    let told = told.lock().expect("nobody panicked");
    let [away, again] = &told[..] else { panic!("{told:?}") };
    assert!(away.ends_with("takes nothing: it answers with status 503"), "{away}");
    assert!(again.ends_with("takes all again"), "{again}");
}

#[test]
fn who_speaks_no_http_or_hangs_up_is_asked_again() {
    let collector = Collector::start([Answer::Garbage, Answer::Close, Answer::Close]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 0));
    stage.finish();
    assert_eq!(told.lock().expect("nobody panicked").len(), 2);
}

#[test]
fn what_is_refused_is_not_sent_again_and_told_once() {
    let collector = Collector::start([
        Answer::With(400, "", b"\x12\x0cbad spans \xe2\x98\xba".to_vec()),
        Answer::With(401, "", Vec::new()),
    ]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    for n in 1..=2 {
        stage.serve(&request(&report()), 1);
        await_fates(&stage, (0, 0, n * SPANS));
    }
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 2 * SPANS));
    stage.finish();
    assert_eq!(collector.posted().len(), 3);
    let told = told.lock().expect("nobody panicked");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("refuses: status 400"), "{told:?}");
}

#[test]
fn a_partial_success_is_counted_as_one() {
    let answer = "partial_success { rejected_spans: 2 error_message: \"too old\" }";
    let collector = Collector::start([Answer::With(200, "", protoc::encode(ANSWER, answer))]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS - 2, 0, 2));
    stage.finish();
    let told = told.lock().expect("nobody panicked");
    assert!(told[0].ends_with("takes not all: it rejected 2 records: too old"), "{told:?}");
}

#[test]
fn who_hangs_holds_nothing_up() {
    let collector = Collector::start(vec![Answer::Hang; 1_000]);
    let (mut stage, _) = stage(&collector.endpoint, |options| {
        // Longer than the test may take: the request hangs from its beginning to its end.
        options.timeout = Duration::from_mins(10);
    });
    stage.serve(&request(&report()), 1);
    collector.await_posted(1);
    // `serve` waits until all are added up, which nothing holds up; the queue keeps the latest.
    stage.serve(&request(&report()), 10_000);
    let (passed, lost, _) = stage.fates(WAY);
    assert_eq!(passed, 0);
    assert!(lost >= 10_000 * SPANS - 20_000, "{lost}");
    stage.finish();
    assert_eq!(stage.fates(WAY).1, 10_000 * SPANS, "what was queued is lost in the end");
}

#[test]
fn a_time_out_ends_who_hangs() {
    let collector = Collector::start([Answer::Hang]);
    let (mut stage, _) =
        stage(&collector.endpoint, |options| options.timeout = Duration::from_millis(50));
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 0));
    stage.finish();
}

#[test]
fn the_end_of_the_server_sends_what_is_queued() {
    let collector = Collector::start([]);
    let (mut stage, _) =
        stage(&collector.endpoint, |options| options.every = Duration::from_mins(10));
    stage.serve(&request(&report()), 500);
    stage.finish();
    assert_eq!(stage.fates(WAY), (500 * SPANS, 0, 0));
    let text = protoc::decode(TRACES, &collector.posted()[0].body);
    assert_eq!(text.matches("SPAN_KIND_SERVER").count(), 400, "a batch full");
}
