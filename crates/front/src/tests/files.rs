//! Tests of static files over HTTP.

use super::*;
use samovar_config::Location;

fn server() -> Server {
    let server = Server::new();
    server.file("a.txt", b"0123456789");
    server.file("big.bin", &pattern(1_000_000));
    server.file("dir/index.html", b"<p>");
    server.file("empty/x/y", b"");
    server.file(".env", b"secret");
    server
}

fn ask(server: &Server, method: &str, path: &str, more: &str) -> Reply {
    server.ask(&format!("{method} {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{more}\r\n"))
}

#[test]
fn file_response_has_validators_and_honors_conditions() {
    let server = server();
    let reply = server.get("/a.txt");
    assert_eq!((reply.status, reply.text()), (200, "0123456789"));
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(reply.header("accept-ranges"), Some("bytes"));
    let etag = reply.header("etag").unwrap().to_owned();
    assert!(etag.ends_with("-a\""), "{etag}");
    let modified = reply.header("last-modified").unwrap();
    for condition in [format!("If-None-Match: {etag}"), format!("If-Modified-Since: {modified}")] {
        let reply = ask(&server, "GET", "/a.txt", &format!("{condition}\r\n"));
        assert_eq!((reply.status, reply.header("etag")), (304, Some(&*etag)), "{condition}");
    }
    let head = ask(&server, "HEAD", "/a.txt", "");
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
    assert_eq!(ask(&server, "GET", "/a.txt", "If-Match: \"x\"\r\n").status, 412);
}

#[test]
fn range_requests_return_requested_parts() {
    let server = server();
    let one = ask(&server, "GET", "/a.txt", "Range: bytes=2-4\r\n");
    assert_eq!((one.status, one.text()), (206, "234"));
    assert_eq!(one.header("content-range"), Some("bytes 2-4/10"));
    let two = ask(&server, "GET", "/a.txt", "Range: bytes=0-1,-2\r\n");
    assert_eq!((two.status, two.is_complete), (206, true));
    assert!(two.header("content-type").unwrap().starts_with("multipart/byteranges; boundary="));
    assert!(two.text().contains("Content-Range: bytes 0-1/10\r\n\r\n01\r\n"), "{}", two.text());
    assert!(two.text().contains("Content-Range: bytes 8-9/10\r\n\r\n89\r\n"));
    let again = ask(&server, "GET", "/a.txt", "Range: bytes=0-1,-2\r\n");
    assert_ne!(two.header("content-type"), again.header("content-type"), "a new boundary");
    let none = ask(&server, "GET", "/a.txt", "Range: bytes=10-\r\n");
    assert_eq!((none.status, none.header("content-range")), (416, Some("bytes */10")));
    let other = ask(&server, "GET", "/a.txt", "Range: bytes=2-4\r\nIf-Range: \"old\"\r\n");
    assert_eq!((other.status, other.text()), (200, "0123456789"));
}

/// A cache may combine a 206 with the 200 (RFC 9110, 15.3.7).
#[test]
fn partial_content_varies_like_whole_content() {
    let compress = |o: &mut Settings| o.compression.codings = vec![samovar_config::Coding::Gzip];
    let server = Server::with(64, compress).work(|job| {
        let whole = "Content-Type: text/plain\nContent-Length: 4000\n";
        let part = "Content-Type: text/plain\nContent-Range: bytes 0-4/4000\n";
        match job.field("target").as_str() {
            "/whole" => job.head(200, whole),
            _ => job.head(206, part),
        }
        job.write("01234".repeat(if job.field("target") == "/whole" { 800 } else { 1 }).as_bytes());
        After::Finish
    });
    server.file("long.txt", &pattern(100_000));
    for (path, range) in [
        ("/long.txt", ""),
        ("/long.txt", "Range: bytes=0-4\r\n"),
        ("/long.txt", "Range: bytes=0-4,-5\r\n"),
        ("/whole", ""),
        ("/part", ""),
    ] {
        let reply = ask(&server, "GET", path, range);
        assert_eq!(reply.header("vary"), Some("Accept-Encoding"), "{path} {range}: {}", reply.head);
    }
    server.file("short.txt", b"01234");
    assert_eq!(ask(&server, "GET", "/short.txt", "Range: bytes=0-1\r\n").header("vary"), None);
}

#[test]
fn large_file_is_sent_completely() {
    let server = server();
    assert!(server.get("/big.bin").body == pattern(1_000_000));
    let part = ask(&server, "GET", "/big.bin", "Range: bytes=300000-899999\r\n");
    assert!(part.body == pattern(1_000_000)[300_000..900_000]);
}

#[test]
fn directories_redirect_and_hidden_files_reach_application() {
    let server = server().work(|job| job.respond(&format!("app {}", job.field("script_name"))));
    let redirect = server.get("/dir?a=b");
    assert_eq!((redirect.status, redirect.header("location")), (301, Some("/dir/?a=b")));
    assert_eq!(server.get("/dir/").text(), "<p>");
    assert_eq!(server.get("/empty/").status, 403);
    assert_eq!(server.get("/.env").text(), "app /index.php");
    assert_eq!(server.get("/nothing").text(), "app /index.php");
    assert_eq!(server.get("/%2e%2e/x").status, 400);
    let post = ask(&server, "POST", "/a.txt", "Content-Length: 0\r\n");
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn symlink_out_of_root_requires_listed_target() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("f.txt"), "outside").unwrap();
    for (targets, status) in [(vec![], 403), (vec![outside.path().to_owned()], 200)] {
        let server = Server::with(4, |o| o.link_targets = targets);
        std::os::unix::fs::symlink(outside.path(), server.root.path().join("link")).unwrap();
        assert_eq!(server.get("/link/f.txt").status, status);
    }
}

/// The type set by a location applies to the content: to each part of a multipart response, but not
/// to an error page.
#[test]
fn location_content_type_applies_to_content_only() {
    let server = Server::with(64, |settings| {
        let of_content = [("content-type", "text/x-own"), ("content-disposition", "attachment")];
        let headers = of_content.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let paths = vec!["*.txt".to_owned()];
        let fallback = Some(samovar_config::Fallback::Nothing);
        settings.locations = vec![Location { paths, headers, fallback, ..Location::default() }];
    });
    server.file("a.txt", b"0123456789");
    let whole = server.get("/a.txt");
    assert_eq!(whole.header("content-type"), Some("text/x-own"));
    assert_eq!(whole.header("content-disposition"), Some("attachment"));
    let one = ask(&server, "GET", "/a.txt", "Range: bytes=2-4\r\n");
    assert_eq!((one.status, one.header("content-type")), (206, Some("text/x-own")));
    let two = ask(&server, "GET", "/a.txt", "Range: bytes=0-1,-2\r\n");
    assert!(two.header("content-type").unwrap().starts_with("multipart/byteranges; boundary="));
    assert_eq!(two.text().matches("Content-Type: text/x-own\r\n").count(), 2, "{}", two.text());
    let missing = ask(&server, "GET", "/none.txt", "Accept: text/html\r\n");
    assert_eq!((missing.status, missing.header("content-disposition")), (404, None));
    assert_eq!(missing.header("content-type"), Some("text/html; charset=utf-8"));
}
