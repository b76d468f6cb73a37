//! HTTP/2 responses equal HTTP/1.1 responses, in the clear and over TLS, for all sources of
//! responses and all kinds of requests.
//!
//! hyper handles some details for one version only. For HEAD it omitted the body in HTTP/1.1;
//! HTTP/2 clients treated the extra body as a broken stream.

use super::*;
use std::collections::BTreeMap;

/// Headers that belong to the connection, or differ for each response.
const OF_THE_CONNECTION: [&str; 5] =
    ["connection", "date", "keep-alive", "transfer-encoding", "x-request-id"];

/// A site with all kinds of responses: from scripts, from files, compressed, sent on behalf of a
/// script, and the server's own.
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

/// A response as the client sees it: curl's exit code, status, headers, and the body's length.
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
        // Each response has its own boundary.
        let value = value.split_once("; boundary=").map_or(value, |(kind, _)| kind);
        if !OF_THE_CONNECTION.contains(&name.as_str()) {
            headers.entry(name).or_default().push(value.to_owned());
        }
    }
    // HTTP/2 may omit a length of zero: there are no DATA frames.
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
    // No request body: curl 7.88 and similar versions may miss a response that is sent before the
    // body has been read. They miss it behind nginx, too.
    &["-X", "POST"],
    &["-X", "OPTIONS"],
    &["-X", "DELETE"],
    &["-X", "TRACE"],
];

#[test]
fn http2_responses_equal_http1_responses() {
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

/// A HEAD response has the length of the GET response if it is known in advance.
#[test]
fn head_response_has_length_of_get_where_known() {
    let folder = folder();
    let (start, config) = site(folder.path());
    let server = start.config(&config).start();
    let clear = format!("http://{}", server.address());
    let packed =
        std::fs::metadata(folder.path().join("files/packed.txt.gz")).expect("our own file");
    for (target, coding, length) in [
        ("/?accel=/sent/sent.txt", "gzip", "26"),
        ("/files/long.txt", "identity", "250000"),
        // Compressed while it is sent (RFC 9110, 8.6), so no length is sent.
        ("/files/long.txt", "gzip", ""),
        ("/files/empty.txt", "gzip", "0"),
        ("/files/packed.txt", "gzip", &packed.len().to_string()),
        ("/files/none.txt", "gzip", "49"),
        ("/denied/a", "gzip", "52"),
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
