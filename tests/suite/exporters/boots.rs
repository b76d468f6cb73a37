//! The boot of a worker is a span of the request that waited for it.

use super::{Request, page, posted, sample};
use samovar_testkit::collector::Collector;
use samovar_testkit::protoc::TRACES;
use samovar_testkit::{Server, eventually};
use std::path::Path;
use std::thread;

/// On `?die`, the worker kills itself as soon as the file `go` exists.
const PAGE: &str = r"<?php
    if (isset($_GET['die'])) {
        touch('begun');
        while (!file_exists('go')) { clearstatcache(); usleep(1_000); }
        posix_kill(posix_getpid(), 9);
    }
    echo 1;";
/// Boots for [`BOOT_NS`], and then works for the same time.
const BESIDE: &str = "<?php usleep(30_000); Samovar\\checkpoint(); usleep(30_000); echo 1;";
const BOOT_NS: u64 = 30_000_000;

/// One span as printed by protoc.
struct Span {
    name: String,
    id: String,
    parent: String,
    begin: u64,
    end: u64,
    boot_ns: u64,
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1;
    Some(rest.split('\n').next()?.trim().trim_matches('"'))
}

fn spans(text: &str) -> Vec<Span> {
    let number = |text: Option<&str>| text.and_then(|n| n.parse().ok()).unwrap_or(0);
    let own = |text: &str| after(text, " name: ").unwrap_or_default().to_owned();
    let span = |text: &str| Span {
        name: own(text),
        id: after(text, " span_id: ").unwrap_or_default().to_owned(),
        parent: after(text, "parent_span_id: ").unwrap_or_default().to_owned(),
        begin: number(after(text, "start_time_unix_nano: ")),
        end: number(after(text, "end_time_unix_nano: ")),
        boot_ns: number(
            text.split_once("samovar.boot_ns").and_then(|(_, rest)| after(rest, "int_value: ")),
        ),
    };
    text.split("  spans {").skip(1).map(span).collect()
}

fn collected(collector: &Collector) -> String {
    format!("[insight]\notlp = '{}'\notlp_interval = '50ms'\n", collector.endpoint)
}

fn of_request<'a>(all: &'a [Span], name: &str) -> (&'a Span, &'a Span, Vec<&'a Span>) {
    let server = all.iter().find(|span| span.name.contains(name)).expect("the request's");
    let is_below = |span: &&Span| span.name == "php" && span.parent == server.id;
    let php = all.iter().find(is_below).expect("PHP's");
    (server, php, all.iter().filter(|span| span.name == "boot").collect())
}

#[test]
fn script_boot_span_is_first_part_of_php_span() {
    let collector = Collector::start([]);
    let server = page(&collected(&collector)).start();
    std::fs::write(server.folder().join("root/beside.php"), BESIDE).expect("a script");
    assert_eq!(server.get("/beside.php").status, 200);
    let text = posted(&collector, "/v1/traces", TRACES, "GET /beside.php");
    let all = spans(&text);
    let (_, php, boots) = of_request(&all, "GET /beside.php");
    let boot = boots.iter().find(|boot| boot.parent == php.id).expect("the script's boot");
    assert_eq!(boot.begin, php.begin, "{text}");
    assert!(boot.boot_ns >= BOOT_NS && boot.end - boot.begin == boot.boot_ns, "{text}");
    // Code below the checkpoint does not belong to the boot.
    assert!(php.end - boot.end >= BOOT_NS, "{text}");
    server.stop();
}

fn wait_for(path: &Path) {
    eventually("the script has come so far", || path.exists().then_some(()));
}

#[test]
fn request_waiting_for_new_worker_has_boot_span() {
    let collector = Collector::start([]);
    let server = Server::script(PAGE)
        .workers(1)
        .config(&format!("admin = '127.0.0.1:0'\n{}", collected(&collector)));
    let server = server.start();
    let root = server.folder().join("root");
    let address = server.address();
    let ask = |target: &'static str, method: &'static str| {
        thread::spawn(move || {
            let request = if method == "POST" {
                Request::post(target, "text/plain", "x")
            } else {
                Request::get(target)
            };
            samovar_testkit::http::Client::connect(address).request(&request).status
        })
    };
    let dying = ask("/dying?die", "POST");
    wait_for(&root.join("begun"));
    let waiting = ask("/waiting", "GET");
    eventually("it is queued", || (sample(&server, "samovar_queue_depth") == 1).then_some(()));
    std::fs::write(root.join("go"), "").expect("a file");
    assert_eq!(dying.join().expect("a status"), 502);
    assert_eq!(waiting.join().expect("a status"), 200);
    let text = posted(&collector, "/v1/traces", TRACES, "GET index.php /waiting");
    let all = spans(&text);
    let (request, php, boots) = of_request(&all, "GET index.php /waiting");
    let boot = boots.iter().find(|boot| boot.parent == request.id).expect("its worker's boot");
    assert!(boot.begin >= request.begin && boot.end <= php.begin, "{text}");
    assert!(boot.boot_ns > 0 && boot.end > boot.begin, "{text}");
    // The next request did not wait for a boot.
    assert_eq!(server.get("/later").status, 200);
    let text = posted(&collector, "/v1/traces", TRACES, "GET index.php /later");
    let all = spans(&text);
    let (request, _, boots) = of_request(&all, "GET index.php /later");
    assert!(boots.iter().all(|boot| boot.parent != request.id), "{text}");
    server.stop();
}
