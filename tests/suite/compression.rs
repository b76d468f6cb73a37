//! Compressed responses, precompressed files next to the originals, and files sent on behalf of
//! scripts.

mod advice;
mod sendfile;

use samovar_testkit::http::{Request, Response};
use samovar_testkit::{Server, Start, eventually};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const ALL: &str = "[compression]\ncodings = [\"zstd\", \"br\", \"gzip\"]\n";

const APP: &str = r#"<?php
$bytes = (int) ($_GET['bytes'] ?? 5000);
header('Content-Type: ' . ($_GET['type'] ?? 'text/html; charset=utf-8'));
foreach ($_GET['headers'] ?? [] as $line) {
    header($line);
}
http_response_code((int) ($_GET['status'] ?? 200));
if (isset($_GET['die'])) {
    echo str_repeat('x', 300000);
    flush();
    posix_kill(getmypid(), 9);
}
if (isset($_GET['pieces'])) {
    for ($i = 0; $i < (int) $_GET['pieces']; $i++) {
        echo "piece $i;";
        ob_flush();
        flush();
        while (!file_exists("{$_GET['gate']}.$i")) {
            usleep(1000);
        }
    }
    return;
}
for ($i = 0, $left = $bytes; $left > 0; $i++) {
    $text = "line %d of %08x and some text that is said again and again\n";
    $line = substr(sprintf($text, $i, crc32("$i")), 0, $left);
    $left -= strlen($line);
    echo $line;
}
"#;

/// The same text that the application writes.
fn text(bytes: usize) -> Vec<u8> {
    let mut table = [0u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        *entry = (0..8)
            .fold(index as u32, |c, _| if c & 1 == 1 { 0xedb8_8320 ^ (c >> 1) } else { c >> 1 });
    }
    let crc = |text: &str| {
        !text
            .bytes()
            .fold(!0u32, |c, byte| table[((c ^ u32::from(byte)) & 255) as usize] ^ (c >> 8))
    };
    let mut all = Vec::with_capacity(bytes + 80);
    for line in 0.. {
        if all.len() >= bytes {
            break;
        }
        let sum = crc(&line.to_string());
        let _ =
            writeln!(all, "line {line} of {sum:08x} and some text that is said again and again");
    }
    all.truncate(bytes);
    all
}

fn server() -> Server {
    start().start()
}

fn start() -> Start {
    Server::script(APP).workers(2).config(ALL)
}

fn ask(server: &Server, target: &str, accept: &str) -> Response {
    server.client().request(&Request::get(target).header("Accept-Encoding", accept))
}

/// Decompresses `bytes` with a separate program.
fn unpacked(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let program = if coding == "br" { "brotli" } else { coding };
    let mut command = Command::new(program);
    command.args(["-d", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{program} is installed: {e}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = bytes.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it runs");
    let written = writer.join().expect("a thread");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && written.is_ok(), "{program}: {said}");
    output.stdout
}

/// Decodes as much as possible from the first bytes of a response.
fn beginning(coding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match coding {
        "br" => Box::new(brotli::Decompressor::new(bytes, 4096)),
        "zstd" => Box::new(zstd::Decoder::new(bytes).expect("a decoder")),
        _ => Box::new(flate2::read::GzDecoder::new(bytes)),
    };
    let (mut out, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        out.extend_from_slice(&buffer[..read]);
    }
    out
}

fn check(response: &Response, coding: &str, expected: &[u8]) {
    assert_eq!(response.header("content-encoding"), Some(coding));
    assert_eq!(response.header("vary"), Some("Accept-Encoding"));
    assert!(response.body.len() < expected.len(), "{} bytes", response.body.len());
    assert!(unpacked(coding, &response.body) == expected, "{coding}: not what was written");
}

#[test]
fn response_is_compressed_in_each_coding_and_size() {
    let server = server();
    for coding in ["zstd", "br", "gzip"] {
        // Sizes: sent in one piece; compressed by a thread; in several pieces; larger than the
        // slot's window.
        for bytes in [1_024, 5_000, 16_384, 16_385, 100_000, 2_000_000] {
            let response = ask(&server, &format!("/?bytes={bytes}"), coding);
            assert_eq!(response.status, 200);
            check(&response, coding, &text(bytes));
        }
    }
    assert_eq!(server.status()["responses_compressed_total"], 18);
    for (accept, expected) in [
        ("gzip, deflate, br, zstd", Some("zstd")),
        ("gzip;q=1, br;q=0.5", Some("gzip")),
        ("deflate", None),
        ("gzip;q=0", None),
        ("*", Some("zstd")),
    ] {
        let response = ask(&server, "/", accept);
        assert_eq!(response.header("content-encoding"), expected, "{accept}");
        assert_eq!(response.header("vary"), Some("Accept-Encoding"), "{accept}");
    }
}

#[test]
fn unsuitable_responses_are_not_compressed() {
    let server = server();
    for target in [
        "/?bytes=1000",
        "/?bytes=0",
        "/?type=image/png",
        "/?type=text/event-stream",
        "/?status=204",
        "/?status=206",
        "/?status=304",
        "/?headers[]=Content-Encoding:%20gzip",
        "/?headers[]=Cache-Control:%20public,no-transform",
        "/?headers[]=Content-Range:%20bytes%200-1/5",
    ] {
        let plain = server.get(target);
        let response = ask(&server, target, "gzip");
        assert_eq!(response.status, plain.status, "{target}");
        assert_eq!(response.body, plain.body, "{target}");
        assert_eq!(
            response.header("content-encoding"),
            plain.header("content-encoding"),
            "{target}"
        );
        assert_eq!(response.header("content-length"), plain.header("content-length"), "{target}");
        // A cache may combine a part with the whole content, which may be compressed.
        let vary = if response.status == 206 { Some("Accept-Encoding") } else { None };
        assert_eq!(response.header("vary"), vary, "{target}");
    }
    let head = Request::new("HEAD", "/").header("Accept-Encoding", "gzip");
    let head = server.client().request(&head);
    assert_eq!(
        (head.header("content-encoding"), head.header("vary")),
        (None, Some("Accept-Encoding"))
    );
    let mut client = server.client();
    client.send(b"GET / HTTP/1.0\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n");
    assert_eq!(client.read(false).header("content-encoding"), None);
}

#[test]
fn compressed_response_has_matching_etag_length_and_vary() {
    let server = server();
    let target =
        "/?headers[]=ETag:%20%22a%22&headers[]=Vary:%20Cookie&headers[]=Content-Length:%205000";
    let response = ask(&server, target, "br");
    assert_eq!(response.header("etag"), Some("W/\"a\""));
    assert_eq!(response.all("vary"), ["Cookie", "Accept-Encoding"]);
    assert_eq!(unpacked("br", &response.body), text(5000));
    assert_eq!(response.header("content-length"), Some(response.body.len().to_string().as_str()));
    // The script announced more bytes than it wrote. The connection is cut, with and without
    // compression.
    let mut client = server.client();
    let target = "/?headers[]=Content-Length:%2090000";
    let cut = client.request(&Request::get(target).header("Accept-Encoding", "gzip"));
    assert!(!cut.complete, "half an answer looks whole");
}

/// Each flushed piece can be decompressed before the next one is written.
#[test]
fn flushed_output_is_decodable_at_once() {
    let server = server();
    for coding in ["gzip", "br", "zstd"] {
        let gate = server.folder().join(format!("gate-{coding}"));
        let target = format!("/?pieces=3&gate={}", gate.display());
        let mut client = server.client();
        client.send(
            format!("GET {target} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {coding}\r\n\r\n")
                .as_bytes(),
        );
        let head = client.read_head().expect("a head");
        assert_eq!(head.header("content-encoding"), Some(coding));
        let mut packed = Vec::new();
        let mut expected = String::new();
        for piece in 0..3 {
            expected.push_str(["piece 0;", "piece 1;", "piece 2;"][piece]);
            while beginning(coding, &packed) != expected.as_bytes() {
                packed.extend(client.read_chunk().expect("bytes").expect("not the end"));
            }
            std::fs::write(format!("{}.{piece}", gate.display()), "").expect("our own file");
        }
        while let Some(bytes) = client.read_chunk().expect("bytes").filter(|b| !b.is_empty()) {
            packed.extend(bytes);
        }
        assert_eq!(unpacked(coding, &packed), expected.as_bytes(), "{coding}");
    }
}

#[test]
fn worker_death_truncates_compressed_response() {
    let server = server();
    for coding in ["gzip", "br", "zstd"] {
        let request = Request::get("/?die=1").header("Accept-Encoding", coding);
        let cut = server.client().request(&request);
        assert!(!cut.complete, "half an answer looks whole");
    }
    assert_eq!(ask(&server, "/", "gzip").status, 200);
    eventually("nothing is left in flight", || (server.status()["in_flight"] == 0).then_some(()));
}

/// Usage of compressed requests reaches the access log like that of others.
#[test]
fn access_log_has_compressed_size_and_usage() {
    let server = start().args(["--access-log", "access.log", "--access-log-format", "json"]);
    let folder = server.folder().to_owned();
    let log = folder.join("access.log").display().to_string();
    let server = server.args(["--access-log", &log]).start();
    let response = ask(&server, "/?bytes=900000", "gzip");
    let line = eventually("a line", || {
        let text = std::fs::read_to_string(&log).ok()?;
        text.lines().next().map(str::to_owned)
    });
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    let bytes = line["bytes"].as_u64().or_else(|| line["body_bytes"].as_u64());
    assert_eq!(bytes, Some(response.body.len() as u64), "{line}");
    let costs = ["cpu_us", "cpu_ms", "cpu"].iter().any(|key| !line[*key].is_null());
    assert!(costs, "{line}");
}

#[test]
fn location_can_disable_compression() {
    let forbidden = "[[location]]\npath = \"/account/*\"\ncompression = false\n";
    let server = start().config(forbidden).start();
    assert_eq!(ask(&server, "/account/a", "gzip").header("content-encoding"), None);
    assert_eq!(ask(&server, "/other", "gzip").header("content-encoding"), Some("gzip"));
}

#[test]
fn compression_is_off_by_default() {
    let server = Server::script(APP).workers(1).start();
    let response = ask(&server, "/", "gzip, br, zstd");
    assert_eq!((response.header("content-encoding"), response.header("vary")), (None, None));
}

fn write(folder: &Path, name: &str, bytes: &[u8], age_s: u64) {
    let file = std::fs::File::create(folder.join(name)).expect("our own file");
    (&file).write_all(bytes).expect("room");
    let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age_s);
    file.set_modified(time).expect("our own file");
}

#[test]
fn static_files_are_compressed() {
    let server = server();
    let root = server.folder().join("root");
    write(&root, "a.css", &text(200_000), 100);
    write(&root, "a.png", &text(200_000), 100);
    for coding in ["gzip", "br", "zstd"] {
        let response = ask(&server, "/a.css", coding);
        check(&response, coding, &text(200_000));
        let tag = response.header("etag").expect("a tag").to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        assert_eq!(response.header("accept-ranges"), None);
        let again = Request::get("/a.css").header("Accept-Encoding", coding);
        let again = server.client().request(&again.header("If-None-Match", &tag));
        assert_eq!(again.status, 304);
        // Caches select the stored response by the headers of this 304.
        let told = [again.header("etag"), again.header("vary")];
        assert_eq!(told, [Some(tag.as_str()), Some("Accept-Encoding")]);
        let plain = Request::get("/a.css").header("If-None-Match", tag.trim_start_matches("W/"));
        let plain = server.client().request(&plain);
        assert_eq!((plain.status, plain.header("etag")), (304, tag.strip_prefix("W/")));
        assert_eq!(plain.header("vary"), Some("Accept-Encoding"), "as the answer had it");
    }
    assert_eq!(ask(&server, "/a.png", "gzip").header("content-encoding"), None);
    let part =
        Request::get("/a.css").header("Accept-Encoding", "gzip").header("Range", "bytes=1-3");
    let part = server.client().request(&part);
    assert_eq!((part.status, part.header("content-encoding")), (206, None));
    assert_eq!(part.body, text(4)[1..]);
}

#[test]
fn precompressed_files_are_served() {
    // `Vary` values of a location are kept.
    let config = "[compression]\nprecompressed = true\n[[location]]\npath = \"/by-cookie.css\"\n\
                  headers = { Vary = \"Cookie\" }\n";
    let server = Server::script(APP).workers(1).config(config).start();
    let root = server.folder().join("root");
    write(&root, "by-cookie.css", b"plain", 100);
    write(&root, "by-cookie.css.gz", b"as gzip", 100);
    for accept in ["gzip", "identity"] {
        let response = ask(&server, "/by-cookie.css", accept);
        assert_eq!(response.all("vary"), ["Cookie", "Accept-Encoding"], "{accept}");
    }
    write(&root, "a.css", b"plain", 100);
    write(&root, "a.css.br", b"as br", 100);
    write(&root, "a.css.gz", b"as gzip", 50);
    write(&root, "a.css.zst", b"stale", 200);
    write(&root, "alone.css", b"alone", 100);
    std::os::unix::fs::symlink("a.css.gz", root.join("alone.css.gz")).expect("a link");
    for (accept, coding, body) in [
        ("br, gzip, zstd", Some("br"), "as br"),
        ("gzip", Some("gzip"), "as gzip"),
        ("gzip, br;q=0.5", Some("gzip"), "as gzip"),
        ("zstd", None, "plain"),
        ("identity", None, "plain"),
    ] {
        let response = ask(&server, "/a.css", accept);
        assert_eq!(response.header("content-encoding"), coding, "{accept}");
        assert_eq!((response.text().as_str(), response.status), (body, 200), "{accept}");
        assert_eq!(response.header("content-type"), Some("text/css"));
        assert_eq!(response.header("vary"), Some("Accept-Encoding"));
        let tag = response.header("etag").expect("a tag");
        assert!(!tag.starts_with("W/"), "its bytes are always the same: {tag}");
    }
    let tag = |accept: &str| ask(&server, "/a.css", accept).header("etag").map(str::to_owned);
    assert_ne!(tag("br"), tag("gzip"));
    assert_ne!(tag("br"), tag("identity"));
    let part = Request::get("/a.css").header("Accept-Encoding", "gzip").header("Range", "bytes=3-");
    let part = server.client().request(&part);
    assert_eq!((part.status, part.text().as_str()), (206, "gzip"));
    let head = Request::new("HEAD", "/a.css").header("Accept-Encoding", "gzip");
    assert_eq!(server.client().request(&head).header("content-length"), Some("7"));
    // A response without a body has no content coding.
    for (name, value, status) in
        [("If-Match", "\"x\"", 412), ("Range", "bytes=99-", 416), ("If-None-Match", "*", 304)]
    {
        let none = Request::get("/a.css").header("Accept-Encoding", "gzip").header(name, value);
        let none = server.client().request(&none);
        assert_eq!((none.status, none.header("content-encoding")), (status, None));
        assert_eq!(none.header("vary"), Some("Accept-Encoding"));
    }
    // A symbolic link does not count as a precompressed file.
    let alone = ask(&server, "/alone.css", "gzip");
    assert_eq!((alone.text().as_str(), alone.header("vary")), ("alone", None));
    // A precompressed file requested by its own name is sent as it is.
    assert_eq!(ask(&server, "/a.css.gz", "gzip").header("content-encoding"), None);
}

/// A cache that validates its stored response with HEAD compares these headers with those of a GET.
#[test]
fn head_response_matches_compressed_get() {
    let server = server();
    write(&server.folder().join("root"), "a.css", &text(200_000), 100);
    let script = "/?headers[]=ETag:%20%22a%22&headers[]=Content-Length:%205000";
    for target in ["/a.css", script] {
        let head = Request::new("HEAD", target).header("Accept-Encoding", "gzip");
        let head = server.client().request(&head);
        let got = ask(&server, target, "gzip");
        for name in ["etag", "content-encoding", "vary", "accept-ranges", "content-type"] {
            assert_eq!(head.header(name), got.header(name), "{target} {name}");
        }
        assert_eq!(head.header("content-encoding"), Some("gzip"), "{target}");
        assert_eq!(head.header("content-length"), None, "{target}: that of other bytes");
        let plain = server.client().request(&Request::new("HEAD", target));
        let length = if target == script { "5000" } else { "200000" };
        assert_eq!(plain.header("content-length"), Some(length));
    }
}

/// As the guide says: some compressors do not keep the full precision of a file's time.
#[test]
fn precompressed_files_of_common_programs_are_served() {
    let config = "[compression]\nprecompressed = true\n";
    let server = Server::script(APP).workers(1).config(config).start();
    let root = server.folder().join("root");
    let then = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_999);
    for (program, args, coding) in [
        ("brotli", &["--best", "--keep"][..], "br"),
        ("gzip", &["--best", "--keep"], "gzip"),
        ("zstd", &["-q", "--keep"], "zstd"),
    ] {
        let name = format!("{coding}.css");
        let file = std::fs::File::create(root.join(&name)).expect("our own file");
        (&file).write_all(&text(5000)).expect("room");
        file.set_modified(then).expect("our own file");
        let packed = Command::new(program).args(args).arg(root.join(&name)).status();
        assert!(packed.expect("it is installed").success(), "{program}");
        let response = ask(&server, &format!("/{name}"), "br, gzip, zstd");
        check(&response, coding, &text(5000));
    }
}
