//! Spans and figures for a collector that accepts them, and for collectors that do not.

use crate::stage::{Stage, report, request};
use samovar_insight::Options;
use samovar_insight::export::otlp::{Exporter, Identity, OtlpOptions};
use samovar_testkit::collector::{Collector, CollectorReply};
use samovar_testkit::eventually;
use samovar_testkit::protoc::{self, METRICS, RESPONSE, TRACES};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Number of spans of one `stage::request`: its own, queue, PHP, wait, timer.
const SPANS: u64 = 5;
const WAY: &str = "otlp_spans";

pub(crate) type Reports = Arc<Mutex<Vec<String>>>;

pub(crate) fn stage(endpoint: &str, change: impl FnOnce(&mut OtlpOptions)) -> (Stage, Reports) {
    let told = Reports::default();
    let into = Arc::clone(&told);
    let identity = Identity {
        service: "shop".into(),
        version: "1.2.3".into(),
        host: "web1".into(),
        ..Identity::default()
    };
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
fn sent_spans_are_readable_by_protoc() {
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
fn sent_figures_have_the_families_of_prometheus() {
    let collector = Collector::start([]);
    let (mut stage, _) = stage(&collector.endpoint, |options| {
        options.figures_every = Some(Duration::ZERO);
        // No spans are sent meanwhile.
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
fn overloaded_collector_is_retried_after_its_delay_and_reported_once() {
    let later = CollectorReply::With(503, "retry-after: 1\r\n", Vec::new());
    let collector = Collector::start([later, CollectorReply::With(429, "", Vec::new())]);
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
    assert!(away.ends_with("is unavailable: returned status 503"), "{away}");
    assert!(again.ends_with("accepts all records again"), "{again}");
}

#[test]
fn collector_with_invalid_response_is_retried() {
    let collector =
        Collector::start([CollectorReply::Garbage, CollectorReply::Close, CollectorReply::Close]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 0));
    stage.finish();
    assert_eq!(told.lock().expect("nobody panicked").len(), 2);
}

#[test]
fn rejected_spans_are_not_retried_and_reported_once() {
    let collector = Collector::start([
        CollectorReply::With(400, "", b"\x12\x0cbad spans \xe2\x98\xba".to_vec()),
        CollectorReply::With(401, "", Vec::new()),
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
    assert!(told[0].contains("rejects the records: status 400"), "{told:?}");
}

#[test]
fn partial_success_counts_rejected_spans() {
    let response = "partial_success { rejected_spans: 2 error_message: \"too old\" }";
    let collector =
        Collector::start([CollectorReply::With(200, "", protoc::encode(RESPONSE, response))]);
    let (mut stage, told) = stage(&collector.endpoint, |_| ());
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS - 2, 0, 2));
    stage.finish();
    let told = told.lock().expect("nobody panicked");
    assert!(
        told[0].ends_with("accepted only part of the records: rejected 2 records: too old"),
        "{told:?}"
    );
}

#[test]
fn hanging_collector_does_not_block() {
    let collector = Collector::start(vec![CollectorReply::Hang; 1_000]);
    let (mut stage, _) = stage(&collector.endpoint, |options| {
        // Longer than the test takes: the request hangs during the whole test.
        options.timeout = Duration::from_mins(10);
    });
    stage.serve(&request(&report()), 1);
    collector.await_posted(1);
    // `serve` waits until all requests are added up, which nothing delays. The queue keeps the
    // latest.
    stage.serve(&request(&report()), 10_000);
    let (passed, lost, _) = stage.fates(WAY);
    assert_eq!(passed, 0);
    assert!(lost >= 10_000 * SPANS - 20_000, "{lost}");
    stage.finish();
    assert_eq!(stage.fates(WAY).1, 10_000 * SPANS, "what was queued is lost in the end");
}

#[test]
fn timeout_ends_request_to_hanging_collector() {
    let collector = Collector::start([CollectorReply::Hang]);
    let (mut stage, _) =
        stage(&collector.endpoint, |options| options.timeout = Duration::from_millis(50));
    stage.serve(&request(&report()), 1);
    await_fates(&stage, (SPANS, 0, 0));
    stage.finish();
}

#[test]
fn finish_sends_queued_spans() {
    let collector = Collector::start([]);
    let (mut stage, _) =
        stage(&collector.endpoint, |options| options.every = Duration::from_mins(10));
    stage.serve(&request(&report()), 500);
    stage.finish();
    assert_eq!(stage.fates(WAY), (500 * SPANS, 0, 0));
    let text = protoc::decode(TRACES, &collector.posted()[0].body);
    assert_eq!(text.matches("SPAN_KIND_SERVER").count(), 400, "a batch full");
}
