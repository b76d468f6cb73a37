//! Jobs in traces: the context of the push, the spans of batches, and their display.

use super::{Site, queue, wait_for_figure};
use samovar_testkit::collector::Collector;
use samovar_testkit::http::Request;
use samovar_testkit::protoc::{self, TRACES};
use samovar_testkit::{Server, eventually};
use serde_json::{Value, json};

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Pushes a job, and returns the trace that the request has.
const FRONT: &str = r"<?php
    Samovar\queue('work')->push($_GET['do'] ?? 'nothing');
    echo json_encode([$_SERVER['TRACEPARENT'] ?? null, $_SERVER['TRACESTATE'] ?? null]);
";

/// Writes a line per batch: the traces of its jobs, and that of requests that it makes.
const HANDLER: &str = r"<?php
Samovar\consume(function (Samovar\Job ...$jobs) {
    $own = [$_SERVER['HTTP_TRACEPARENT'] ?? null, $_SERVER['HTTP_TRACESTATE'] ?? null];
    $traces = array_map(fn ($job) => [$job->traceparent(), $job->tracestate()], $jobs);
    $line = ['own' => $own, 'jobs' => $traces, 'payload' => $jobs[0]->payload()];
    file_put_contents(__DIR__ . '/../ran', json_encode($line) . PHP_EOL, FILE_APPEND);
    match ($jobs[0]->payload()) {
        'push' => Samovar\queue('work')->push('pushed by a job'),
        'fail' => $jobs[0]->fail('not today'),
        'throw' => throw new LogicException('this job is poison'),
        default => null,
    };
});
";

fn site() -> Site {
    let site = Site::new(FRONT);
    std::fs::write(site.at("jobs/work.php"), HANDLER).expect("a script");
    site
}

fn sent(server: &Server, target: &str) -> Value {
    let traceparent = format!("00-{ID}-{PARENT}-01");
    let request = Request::get(target)
        .header("traceparent", &traceparent)
        .header("tracestate", "vendor=\"1\"");
    serde_json::from_str(&server.client().request(&request).text()).expect("JSON")
}

const TRUSTED: &str = "[insight]\ntrace_from = 'all'\n";

#[test]
fn job_has_the_trace_of_a_trusted_client_without_collector() {
    let site = site();
    let server = site.start(TRUSTED);
    let expected = json!([format!("00-{ID}-{PARENT}-01"), "vendor=\"1\""]);
    assert_eq!(sent(&server, "/?do=push"), expected);
    // The job that pushes passes the trace on.
    let ran = site.wait_for(2);
    for batch in &ran {
        assert_eq!((&batch["jobs"], &batch["own"]), (&json!([expected]), &expected), "{ran:?}");
    }
    assert_eq!(ran[1]["payload"], "pushed by a job");
    sent(&server, "/?do=fail");
    wait_for_figure(&server, "dead", 1);
    let shown = queue(&server, &["show", "work"]);
    assert!(shown.contains(&format!("  traceparent 00-{ID}-{PARENT}-01\n")), "{shown}");
    let shown: Value =
        serde_json::from_str(&queue(&server, &["show", "work", "--json"])).expect("JSON");
    assert_eq!(shown["jobs"][0]["tracestate"], "vendor=\"1\"");
    server.stop();
}

#[test]
fn job_of_an_intake_has_the_trace_of_its_request() {
    let site = site();
    let intake = "[[intake]]\nmatch = 'POST /track'\nqueue = 'work'\n";
    let server = site.start(&format!("{intake}{TRUSTED}"));
    let traceparent = format!("00-{ID}-{PARENT}-01");
    for header in ["traceparent", "x-other"] {
        let request = Request::post("/track", "text/plain", "a").header(header, &traceparent);
        assert_eq!(server.client().request(&request).status, 204);
    }
    let ran = site.wait_for(2);
    let traces: Vec<&Value> = ran.iter().map(|batch| &batch["jobs"][0][0]).collect();
    assert!(traces.contains(&&json!(traceparent)) && traces.contains(&&Value::Null), "{ran:?}");
    server.stop();
}

#[test]
fn job_has_no_trace_of_an_untrusted_client() {
    let site = site();
    let server = site.start("[insight]\ntrace_from = 'nobody'\n");
    assert_eq!(sent(&server, "/"), json!([null, null]));
    let ran = site.wait_for(1);
    assert_eq!((&ran[0]["jobs"], &ran[0]["own"]), (&json!([[null, null]]), &json!([null, null])));
    server.stop();
}

/// The text of the spans sent to the collector, if one is a batch with this text.
fn spans_of_batch(collector: &Collector, wanted: &str) -> String {
    eventually(&format!("the span of a batch with {wanted}"), || {
        let posted = collector.posted();
        let of_traces = posted.iter().filter(|one| one.head.starts_with("post /v1/traces "));
        let texts = of_traces.map(|one| protoc::decode(TRACES, &one.body));
        let spans = texts.flat_map(|text| {
            let spans = text.split("    spans {").map(str::to_owned);
            spans.collect::<Vec<_>>()
        });
        spans.into_iter().find(|span| span.contains("SPAN_KIND_CONSUMER") && span.contains(wanted))
    })
}

fn collected(collector: &Collector) -> String {
    format!("{TRUSTED}otlp = '{}'\notlp_interval = '50ms'\n", collector.endpoint)
}

fn span_of(traceparent: &Value) -> String {
    let text = traceparent.as_str().expect("a traceparent");
    text.split('-').nth(2).expect("a span").to_owned()
}

/// Bytes in the notation of protoc.
fn escaped(hex: &str) -> String {
    let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16));
    let of = |byte: u8| match byte {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'"' | b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    bytes.map(|byte| of(byte.expect("hexadecimal digits"))).collect()
}

#[test]
fn batch_of_one_job_continues_the_trace_of_its_push() {
    let collector = Collector::start([]);
    let site = site();
    let server = site.start(&collected(&collector));
    let pushed = sent(&server, "/?do=throw");
    let ran = site.wait_for(1);
    assert_eq!(ran[0]["jobs"][0], pushed);
    let own = ran[0]["own"][0].as_str().expect("a trace");
    assert!(own.starts_with(&format!("00-{ID}-")) && own.ends_with("-01"), "{own}");
    assert_ne!(span_of(&ran[0]["own"][0]), span_of(&pushed[0]));
    let span = spans_of_batch(&collector, &escaped(&span_of(&ran[0]["own"][0])));
    for expected in [
        format!("trace_id: \"{}\"", escaped(ID)),
        format!("parent_span_id: \"{}\"", escaped(&span_of(&pushed[0]))),
        "name: \"process work\"".to_owned(),
        "\"messaging.message.id\"".to_owned(),
        "\"LogicException\"".to_owned(),
    ] {
        assert!(span.contains(&expected), "{expected} in {span}");
    }
    server.stop();
}

#[test]
fn batch_of_several_jobs_links_to_their_pushes() {
    let collector = Collector::start([]);
    let site = site();
    let server = site.start(&format!("batch = 10\n{}", collected(&collector)));
    queue(&server, &["pause", "work"]);
    let pushed: Vec<Value> = (0..3).map(|_| sent(&server, "/")).collect();
    queue(&server, &["resume", "work"]);
    let ran = site.wait_for(1);
    assert_eq!(ran[0]["jobs"], json!(pushed));
    let own = ran[0]["own"][0].as_str().expect("a trace");
    assert!(!own.contains(ID), "its own trace: {own}");
    assert_eq!(ran[0]["own"][1], Value::Null);
    let span = spans_of_batch(&collector, &escaped(&span_of(&ran[0]["own"][0])));
    assert_eq!(span.matches("links {").count(), 3, "{span}");
    for push in &pushed {
        let link = format!("span_id: \"{}\"", escaped(&span_of(&push[0])));
        assert!(span.contains(&link), "{link} in {span}");
    }
    assert!(!span.contains("parent_span_id") && !span.contains("status {"), "{span}");
    server.stop();
}

#[test]
fn depth_counts_jobs_of_the_queue() {
    let site = Site::new(
        "<?php try { echo json_encode(Samovar\\queue($_GET['queue'] ?? 'work')->depth()); }
         catch (ValueError $e) { echo $e->getMessage(); }",
    );
    std::fs::write(site.at("public/push.php"), format!("<?php {}", super::PUSHES)).expect("a file");
    let server = site.start("");
    let push = |job: Value| super::push(&server, "/push.php", &job);
    push(json!({ "payload": { "do": "wait" } }));
    site.wait_for(1);
    push(json!({ "payload": { "do": "wait" }, "delay": 100 }));
    queue(&server, &["pause", "work"]);
    push(json!({ "payload": 1 }));
    push(json!({ "payload": 2 }));
    let depth: Value = serde_json::from_str(&server.get("/").text()).expect("JSON");
    assert_eq!(depth, json!({ "ready": 2, "delayed": 1, "running": 1 }));
    let text = server.get("/?queue=other").text();
    assert!(text.contains("there is no queue `other`"), "{text}");
    site.go();
    server.stop();
}
