//! HTTP/2 answers as HTTP/1.1 does, in the clear and over TLS: whoever answers, and whatever is asked.
//!
//! hyper does some things for one version alone: of HEAD it left the body out for HTTP/1.1, and clients of HTTP/2 took what
//! came for a broken stream.

use super::*;
use std::collections::BTreeMap;

/// Headers that are the connection's, or other ones each time.
const OF_THE_CONNECTION: [&str; 5] =
    ["connection", "date", "keep-alive", "transfer-encoding", "x-request-id"];

/// All kinds of answers: of scripts, of files, packed, sent in a script's place, and the server's own.
fn site(folder: &Path) -> (Start, String) {
    let (start, _) = secure(folder);
    let files = folder.join("files");
    std::fs::create_dir(&files).expect("our own folder");
    for (name, text) in [
        ("sent.txt", "a file that a script sends"),
        ("404.html", "a page of our own"),
        ("long.txt", &"long ".repeat(50_000)),
        ("empty.txt", ""),
        ("packed.txt", "plain"),
        ("page/index.html", "a page of a folder"),
    ] {
        let path = files.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
        std::fs::write(path, text).expect("our own file");
    }
    let packed = Command::new("gzip").arg("--keep").arg(files.join("packed.txt")).status();
    assert!(packed.expect("gzip is installed").success());
    let config = r#"
[compression]
codings = ["gzip"]
precompressed = true
[sendfile]
"/sent/" = "FILES"
[[location]]
path = "/files/*"
alias = "FILES"
headers = { Cache-Control = "max-age=60" }
[[location]]
path = "/denied/*"
deny = true
[[location]]
path = "/none/*"
fallback = "none"
error_pages = { 404 = "FILES/404.html" }
[[location]]
path = "/old/*"
redirect = "/new/*"
"#;
    (start, config.replace("FILES", &files.display().to_string()))
}

/// What a client makes of an answer: curl's exit code, status, headers, and the body's length.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    code: i32,
    status: String,
    headers: BTreeMap<String, Vec<String>>,
    body: usize,
}

fn ask(version: &str, url: &str, asked: &[&str]) -> Seen {
    let (code, text) = curl(&[&[version, "-i", "--path-as-is"], asked, &[url]].concat());
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default().into();
    let mut headers = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        let name = name.to_lowercase();
        if !OF_THE_CONNECTION.contains(&name.as_str()) {
            headers.entry(name).or_default().push(value.to_owned());
        }
    }
    // HTTP/2 need not say it: there are no frames of data.
    let is_nothing = |values: &Vec<String>| values.len() == 1 && values[0] == "0";
    if headers.get("content-length").is_some_and(is_nothing) {
        headers.remove("content-length");
    }
    Seen { code, status, headers, body: body.len() }
}

const TARGETS: [&str; 18] = [
    "/?getenv=HOME",
    "/?accel=/sent/sent.txt",
    "/?accel=/sent/none",
    "/?accel=/elsewhere",
    "/?getenv=HOME&status=204",
    "/?getenv=HOME&status=304",
    "/?getenv=HOME&status=404",
    "/files/long.txt",
    "/files/empty.txt",
    "/files/packed.txt",
    "/files/page",
    "/files/page/",
    "/files/none.txt",
    "/denied/a",
    "/none/a",
    "/old/a?b=c",
    "/%zz",
    "/files/%00",
];

const REQUESTS: &[&[&str]] = &[
    &[],
    &["-I"],
    &["-I", "-H", "Accept-Encoding: gzip"],
    &["-I", "-H", "If-None-Match: *"],
    &["-I", "-H", "Range: bytes=0-3"],
    &["--compressed"],
    &["-H", "Accept-Encoding: identity;q=0"],
    &["-H", "Range: bytes=1-3"],
    &["-H", "Range: bytes=1-3,5-6"],
    &["-H", "Range: bytes=9999999-"],
    &["-H", "If-None-Match: *"],
    &["-H", "If-None-Match: *", "--compressed"],
    &["-H", "If-Match: \"x\""],
    &["-H", "If-Range: \"x\"", "-H", "Range: bytes=1-3"],
    &["-H", "Accept: text/html"],
    // With a body, curl 7.88 and the like may miss an answer that does not wait for it: behind nginx, too.
    &["-X", "POST"],
    &["-X", "OPTIONS"],
    &["-X", "DELETE"],
    &["-X", "TRACE"],
];

#[test]
fn each_answer_by_each_version() {
    let folder = folder();
    let (start, config) = site(folder.path());
    let server = start.config(&config).start();
    let clear = format!("http://{}", server.address());
    let secure = https(&server);
    for target in TARGETS {
        for asked in REQUESTS {
            let of = |version: &str, url: &str| ask(version, &format!("{url}{target}"), asked);
            let old = of("--http1.1", &clear);
            assert_eq!(old.code, 0, "{target} {asked:?}");
            assert_eq!(of("--http2-prior-knowledge", &clear), old, "{target} {asked:?}");
            assert_eq!(of("--http2", &secure), old, "over TLS: {target} {asked:?}");
        }
    }
}

/// A HEAD has the length of what a GET brings, where that is known before.
#[test]
fn head_tells_the_length() {
    let folder = folder();
    let (start, config) = site(folder.path());
    let server = start.config(&config).start();
    let clear = format!("http://{}", server.address());
    let packed =
        std::fs::metadata(folder.path().join("files/packed.txt.gz")).expect("our own file");
    for (target, coding, length) in [
        ("/?accel=/sent/sent.txt", "gzip", "26"),
        ("/files/long.txt", "identity", "250000"),
        // It is packed while it is sent (RFC 9110, 8.6): nothing is told.
        ("/files/long.txt", "gzip", ""),
        ("/files/empty.txt", "gzip", "0"),
        ("/files/packed.txt", "gzip", &packed.len().to_string()),
        ("/files/none.txt", "gzip", "49"),
        ("/denied/a", "gzip", "42"),
        ("/none/a", "gzip", "17"),
        ("/%zz", "gzip", "62"),
    ] {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let url = format!("{clear}{target}");
            let seen = ask(version, &url, &["-I", "-H", &format!("Accept-Encoding: {coding}")]);
            let told = seen.headers.get("content-length").map(|values| values.join(","));
            let untold = if length == "0" { "0" } else { "" };
            let told = told.as_deref().unwrap_or(untold);
            assert_eq!((seen.code, told), (0, length), "{version} {target} {coding}");
        }
    }
}
