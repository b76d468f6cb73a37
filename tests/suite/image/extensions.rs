//! Extensions that begin something when a request starts: traces of Xdebug are started for each
//! request of a booted application, others are a finding.

use crate::image::{image, script};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;

const MODELS: [(&str, &str); 3] = [
    ("checkpoint", "Samovar\\checkpoint(); answer();"),
    ("resident", "Samovar\\serve(function () { answer(); });"),
    ("loop", "while (frankenphp_handle_request(function () { answer(); }));"),
];

/// Traces have the name of the query.
fn xdebug(end: &str, mode: &str, starts: &str) -> Start {
    let start = script(&format!(
        "function answer() {{ echo 'hello ', strtoupper($_GET['name'] ?? 'you'); }}\n{end}"
    ));
    let folder = start.folder().to_string_lossy().into_owned();
    start
        .define("zend_extension", "xdebug.so")
        .define("xdebug.mode", mode)
        .define("xdebug.start_with_request", starts)
        .define("xdebug.output_dir", &folder)
        .define("xdebug.use_compression", "0")
        .define("xdebug.trace_output_name", "trace.%R")
        .define("xdebug.control_socket", "no")
}

/// Traces of requests that have ended, by the name in their request.
fn traces(server: &Server, of: &str) -> Vec<String> {
    let files = std::fs::read_dir(server.folder()).expect("our own folder").flatten();
    let named = files.filter(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        name.starts_with("trace.") && name.contains(of)
    });
    let text = |file: std::fs::DirEntry| std::fs::read_to_string(file.path()).unwrap_or_default();
    named.map(text).filter(|text| text.contains("TRACE END")).collect()
}

#[test]
fn xdebug_traces_each_request_that_asks() {
    for (model, end) in MODELS {
        let server = xdebug(end, "trace", "trigger").start();
        for name in ["ann", "bob"] {
            let target = format!("/?name={name}&XDEBUG_TRACE=1");
            assert_eq!(server.get(&target).text(), format!("hello {}", name.to_uppercase()));
            let found = eventually("a trace", || traces(&server, name).pop());
            assert!(found.contains("strtoupper("), "{model}: {found}");
        }
        assert_eq!(server.get("/?name=tom").text(), "hello TOM");
        assert_eq!(server.get("/?name=eve").text(), "hello EVE");
        assert_eq!(traces(&server, "tom"), [""; 0], "{model}");
        assert_eq!(server.status()["worker_restarts_total"], 0, "{model}\n{}", server.log());
        server.stop();
    }
}

#[test]
fn xdebug_traces_every_request() {
    for (model, end) in MODELS {
        let server = xdebug(end, "trace", "yes").start();
        for name in ["ann", "bob"] {
            assert_eq!(server.get(&format!("/?name={name}")).status, 200, "{}", server.log());
            let found = eventually("a trace", || traces(&server, name).pop());
            assert!(found.contains("strtoupper("), "{model}: {found}");
        }
        server.stop();
    }
}

#[test]
fn xdebug_profiler_is_a_finding() {
    for (mode, starts, expected) in
        [("profile", "trigger", 1), ("profile", "no", 0), ("debug", "trigger", 0)]
    {
        let server = xdebug(MODELS[0].1, mode, starts).start();
        assert_eq!(server.get("/").text(), "hello YOU");
        let image = image(&server);
        let of_extension = |f: &&Value| f["kind"] == "extension";
        let found = image["findings"].as_array().expect("a list");
        assert_eq!(found.iter().filter(of_extension).count(), expected, "{mode} {starts}: {image}");
        server.stop();
    }
}
