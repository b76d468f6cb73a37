//! php-fpm's status page in each of its formats, compared with a real php-fpm: names, order and
//! kinds of the values.

use samovar_testkit::{Fpm, Server, eventually};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Values that have no meaning here, or that the front does not know. They are listed in
/// docs/start/from-php-fpm.md.
const LEFT_OUT: &[&str] = &[
    "max children reached",
    "slow requests",
    "pid",
    "request duration",
    "request method",
    "request uri",
    "request URI",
    "content length",
    "user",
    "script",
    "last request cpu",
    "last request memory",
];
/// Reported for the server, not for its workers.
const OF_THE_SERVER: &[&str] = &["start time", "start since"];

#[test]
fn status_page_has_same_fields_as_php_fpm() {
    let (ours, theirs) = (Ours::start(), Fpm::start(2, "pm.status_path = /status"));
    let of_fpm = theirs.folder().join("fpm.sock");
    for query in
        ["", "full", "json", "json&full", "xml", "xml&full", "html", "html&full", "openmetrics"]
    {
        let (our_head, our_body) = ask(&ours.socket, query);
        let (their_head, their_body) = ask(&of_fpm, query);
        assert_eq!(headers(&our_head), headers(&their_head), "{query}");
        let (mine, wanted) = (fields(query, &our_body), wanted(fields(query, &their_body)));
        assert_eq!(mine, wanted, "{query}\n{our_body}\n{their_body}");
    }
}

struct Ours {
    _server: Server,
    _folder: TempDir,
    socket: std::path::PathBuf,
}

impl Ours {
    fn start() -> Ours {
        let folder = TempDir::with_prefix("samovar-status-").expect("a temporary folder");
        let socket = folder.path().join("fcgi.sock");
        let listen = format!("fcgi-unix:{}", socket.display());
        let start = Server::script("<?php echo 'ok';").workers(2);
        let server = start.args(["--listen", &listen, "--fastcgi-status-path", "/status"]).start();
        eventually("both workers", || {
            let workers = server.status()["workers"].as_array().map(Vec::len);
            (workers == Some(2)).then_some(())
        });
        Ours { _server: server, _folder: folder, socket }
    }
}

/// Requests the status page. Returns head and body.
fn ask(socket: &Path, query: &str) -> (String, String) {
    let mut asking = Command::new("cgi-fcgi");
    asking.args(["-bind", "-connect"]).arg(socket).env_clear().stdin(Stdio::null());
    for (name, value) in [
        ("REQUEST_METHOD", "GET"),
        ("SCRIPT_NAME", "/status"),
        ("SCRIPT_FILENAME", "/status"),
        ("QUERY_STRING", query),
    ] {
        asking.env(name, value);
    }
    let output = asking.output().expect("cgi-fcgi is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
    (head.to_owned(), body.to_owned())
}

/// Content type and caching headers: names and values in lower case and without blanks.
fn headers(head: &str) -> Vec<String> {
    let of_page = ["content-type", "expires", "cache-control"];
    let lines = head.lines().map(|line| line.to_lowercase().replace("; ", ";"));
    let mut all: Vec<_> =
        lines.filter(|line| of_page.iter().any(|name| line.starts_with(name))).collect();
    all.sort();
    all
}

/// Name and kind of each value, in order. Values of the second and later processes are left out;
/// they have the same names.
fn fields(query: &str, body: &str) -> Vec<(String, &'static str)> {
    let pairs = match query.split('&').next() {
        Some("json") => of_json(body),
        Some("xml") => of_tags(body, '-'),
        Some("html") => of_html(body),
        Some("openmetrics") => return of_metrics(body),
        _ => of_text(body),
    };
    let mut seen = Vec::new();
    for (name, value) in pairs {
        let of_process = seen.iter().any(|(known, _)| *known == "state");
        if !(of_process && seen.iter().any(|(known, _)| *known == name)) {
            seen.push((name, kind(&value)));
        }
    }
    seen
}

fn kind(value: &str) -> &'static str {
    match value {
        "" => "nothing",
        number if number.bytes().all(|b| b.is_ascii_digit()) => "number",
        _ => "text",
    }
}

fn of_text(body: &str) -> Vec<(String, String)> {
    let pairs = body.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()
}

/// Names and values in their order in the text. A parsed object would lose the order.
fn of_json(body: &str) -> Vec<(String, String)> {
    serde_json::from_str::<serde_json::Value>(body).unwrap_or_else(|e| panic!("{e}: {body}"));
    let flat = body.replace("\"processes\":[", "").replace(['{', '}', ']'], "");
    let pairs = flat.split(",\"").filter_map(|pair| pair.split_once("\":"));
    pairs.map(|(name, value)| (name.trim_matches('"').to_owned(), value.to_owned())).collect()
}

fn of_tags(body: &str, blank: char) -> Vec<(String, String)> {
    let parts = body.split('<').filter_map(|part| part.split_once('>'));
    let whole = parts.filter(|(name, value)| {
        !name.starts_with(['/', '?']) && body.contains(&format!("<{name}>{value}</{name}>"))
    });
    whole.map(|(name, value)| (name.replace(blank, " "), value.to_owned())).collect()
}

fn of_html(body: &str) -> Vec<(String, String)> {
    let cells = of_tags(body, ' ');
    let texts = cells.iter().filter(|(name, _)| name == "th" || name == "td");
    let (names, values): (Vec<_>, Vec<_>) = texts.partition(|(name, _)| name == "th");
    names.into_iter().zip(values).map(|(name, value)| (name.1.clone(), value.1.clone())).collect()
}

/// Names of the values, and their metric types.
fn of_metrics(body: &str) -> Vec<(String, &'static str)> {
    let kind_of = |name: &str| {
        let is_counter = body.contains(&format!("# TYPE {name} counter\n"));
        if is_counter { "counter" } else { "gauge" }
    };
    let names = body.lines().filter(|line| !line.starts_with('#'));
    let names = names.filter_map(|line| line.split_once(' ')).map(|(name, _)| name);
    names.map(|name| (name.replace("phpfpm_", "").replace('_', " "), kind_of(name))).collect()
}

/// The subset of php-fpm's values that Samovar reports, too.
fn wanted(theirs: Vec<(String, &'static str)>) -> Vec<(String, &'static str)> {
    let mut all: Vec<(String, &'static str)> = Vec::new();
    for (name, kind) in theirs {
        let is_again =
            OF_THE_SERVER.contains(&&*name) && all.iter().any(|(known, _)| *known == name);
        if !LEFT_OUT.contains(&&*name) && !is_again {
            all.push((name, kind));
        }
    }
    all
}
