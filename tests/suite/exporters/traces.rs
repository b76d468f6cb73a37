//! Traces: accepted from trusted sources, otherwise started here, and passed to PHP and all logs.

use super::{PAGE, ask_admin, page, posted, sample};
use samovar_testkit::collector::Collector;
use samovar_testkit::http::Request;
use samovar_testkit::protoc::TRACES;
use samovar_testkit::{Server, eventually};

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn sent(flags: &str) -> String {
    format!("00-{ID}-{PARENT}-{flags}")
}

type Handed = (Option<String>, Option<String>);

/// `traceparent` and `tracestate` as PHP received them. The headers must equal the variables, which
/// exist only for trusted sources.
fn handed(server: &Server, lines: &[(&str, &str)]) -> Handed {
    let (headers, variables) = headers_and_variables(server, lines);
    assert_eq!(headers, variables);
    headers
}

fn headers_and_variables(server: &Server, lines: &[(&str, &str)]) -> (Handed, Handed) {
    let mut request = Request::get("/p/7");
    for (name, value) in lines {
        request = request.header(name, value);
    }
    let response = server.client().request(&request);
    let [parent, in_server, in_environment, state, state_in_server, state_in_environment] =
        serde_json::from_str(&response.text()).expect("six values as JSON");
    assert_eq!((&in_server, &state_in_server), (&in_environment, &state_in_environment));
    ((parent, state), (in_server, state_in_server))
}

fn parts(traceparent: Option<String>) -> Vec<String> {
    let text = traceparent.expect("a traceparent");
    let parts: Vec<_> = text.split('-').map(str::to_owned).collect();
    assert_eq!(parts.iter().map(String::len).collect::<Vec<_>>(), [2, 32, 16, 2], "{text}");
    parts
}

fn collected(collector: &Collector, more: &str) -> String {
    format!("[insight]\notlp = '{}'\notlp_interval = '50ms'\n{more}", collector.endpoint)
}

#[test]
fn trusted_trace_continues_in_php_spans_logs_and_exemplars() {
    let collector = Collector::start([]);
    let settings = collected(&collector, "slow_request = '1ms'\nslow_log = 'slow.txt'\n");
    let server = page(&format!(
        "trusted_proxies = ['127.0.0.0/8']\naccess_log = 'access.txt'\n\
         access_log_format = 'json'\n{settings}"
    ))
    .start();
    let lines = [("traceparent", &*sent("01")), ("tracestate", "vendor=1")];
    let (traceparent, state) = handed(&server, &lines);
    let parts = parts(traceparent);
    assert_eq!((&*parts[1], &*parts[3], state.as_deref()), (ID, "01", Some("vendor=1")));
    assert_ne!(parts[2], PARENT, "the parent is this server's span");
    // The bytes 0x4b 0xf9 0x2f, and those of the parent, as protoc prints them.
    let spans = posted(&collector, "/v1/traces", TRACES, "trace_id: \"K\\371/");
    assert!(spans.contains("parent_span_id: \"\\000\\360g\\252"), "{spans}");
    let read = |name: &str| std::fs::read_to_string(server.folder().join(name)).unwrap_or_default();
    eventually("the access log has it", || {
        read("access.txt").contains(&format!("\"trace_id\":\"{ID}\"")).then_some(())
    });
    let slow = [("traceparent", &*sent("01"))];
    let request = Request::get("/p/7?slow").header(slow[0].0, slow[0].1);
    assert_eq!(server.client().request(&request).status, 200);
    eventually("the slow log has it", || {
        read("slow.txt").contains(&format!("trace={ID}")).then_some(())
    });
    let open = Request::get("/metrics").header("Accept", "application/openmetrics-text");
    let metrics = ask_admin(&server, &open).text();
    assert!(metrics.contains(&format!("trace_id=\"{ID}\"")), "{metrics}");
    server.stop();
}

#[test]
fn untrusted_trace_context_is_replaced() {
    let collector = Collector::start([]);
    let server = page(&collected(&collector, "")).start();
    let lines = [("traceparent", &*sent("01")), ("tracestate", "vendor=1")];
    let (traceparent, state) = handed(&server, &lines);
    assert_ne!(parts(traceparent)[1], ID);
    assert_eq!(state, None, "it belongs to the stranger's trace");
    server.stop();
}

#[test]
fn trace_from_all_accepts_every_valid_trace_context() {
    let collector = Collector::start([]);
    let settings = collected(&collector, "trace_from = 'all'\ntrace_share = '0%'\n");
    let server = page(&settings).start();
    let (traceparent, _) = handed(&server, &[("traceparent", &sent("01"))]);
    assert_eq!(parts(traceparent)[1], ID);
    let (zeros, loud) = (format!("00-{}-{PARENT}-01", "0".repeat(32)), sent("01").to_uppercase());
    for hostile in [&*zeros, &*loud, &*format!("{}-x", sent("01")), "00", "", "ü"] {
        let (traceparent, state) =
            handed(&server, &[("traceparent", hostile), ("tracestate", "vendor=1")]);
        let parts = parts(traceparent);
        assert!(parts[1] != ID && parts[3] != "01" && state.is_none(), "{hostile}: {parts:?}");
    }
    let twice = [("traceparent", &*sent("01")), ("traceparent", &*sent("01"))];
    assert_ne!(parts(handed(&server, &twice).0)[1], ID, "two of them are none");
    // Only one of these traces is kept: the one that the client started. Its worker may have booted
    // meanwhile.
    eventually("its four or five spans have passed", || {
        let passed =
            sample(&server, "samovar_insight_records_total{way=\"otlp_spans\",fate=\"passed\"}");
        (4..=5).contains(&passed).then_some(())
    });
    server.stop();
}

#[test]
fn trace_headers_without_collector_are_passed_unchanged() {
    let server = page("").start();
    let strange = [("traceparent", &*sent("01")), ("tracestate", "vendor=1")];
    let ((traceparent, state), variables) = headers_and_variables(&server, &strange);
    assert_eq!((traceparent, state.as_deref()), (Some(sent("01")), Some("vendor=1")));
    assert_eq!(variables, (None, None), "a stranger's word is no variable");
    assert_eq!(handed(&server, &[]), (None, None));
    server.stop();
    let server = page("trusted_proxies = ['127.0.0.0/8']\n").start();
    assert_eq!(handed(&server, &strange), (Some(sent("01")), Some("vendor=1".to_owned())));
    server.stop();
}

#[test]
fn reload_changes_trace_sources() {
    let collector = Collector::start([]);
    let server = Server::script(PAGE).config(&collected(&collector, "")).start();
    let first = handed(&server, &[("traceparent", &sent("01"))]).0;
    assert_ne!(parts(first)[1], ID);
    let file = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&file).expect("the settings");
    std::fs::write(&file, format!("{text}\ntrace_from = 'all'\n")).expect("the settings");
    server.reload().expect("a reload");
    let then = handed(&server, &[("traceparent", &sent("01"))]).0;
    assert_eq!(parts(then)[1], ID);
    // The exporter is set up at the start only. A reload does not promise spans that are never
    // sent.
    let without = text.replace("otlp", "# otlp");
    std::fs::write(&file, without).expect("the settings");
    let said = server.reload().expect("a reload");
    assert!(said.contains("insight.otlp"), "{said}");
    assert_eq!(parts(handed(&server, &[]).0).len(), 4);
    server.stop();
}
