//! `samovar dev`: changes of a project reach the pages, and errors are shown to its developer only.

mod tls;

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, eventually};
use std::path::Path;
use tempfile::TempDir;

const TAG: &str = "<script src=\"/_samovar/dev.js?v=";

/// A project whose boot defines `TEXT`, in `src/text.php`.
fn project() -> TempDir {
    let project = tempfile::tempdir().expect("a folder");
    for folder in ["public", "src", "vendor"] {
        std::fs::create_dir(project.path().join(folder)).expect("our folder");
    }
    write(
        project.path(),
        "public/index.php",
        "<?php require __DIR__ . '/../src/text.php'; Samovar\\checkpoint();
        echo '<!doctype html><html><head><title>t</title></head><body>', TEXT, '</body></html>';",
    );
    write(project.path(), "src/text.php", "<?php const TEXT = 'first';");
    project
}

/// Writes a file as editors do: the new file replaces the old one.
fn write(project: &Path, file: &str, text: &str) {
    let (new, file) = (project.join("src/.new.tmp"), project.join(file));
    std::fs::write(&new, text).expect("our folder");
    std::fs::rename(new, file).expect("our folder");
}

fn dev(project: &Path) -> Start {
    Server::at(project.join("public")).dev().inside(project)
}

/// A request of a browser for a page.
fn page(server: &Server, target: &str) -> Response {
    server.client().request(&Request::get(target).header("Accept", "text/html,*/*;q=0.8"))
}

/// The stream of events that an open page reads.
struct Events(Client);

impl Events {
    fn of(server: &Server) -> Events {
        let mut client = server.client();
        client.send(&Request::get("/_samovar/events").bytes());
        let head = client.read_head().expect("a response");
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Events(client)
    }

    /// Waits for the next event: whether the boot has failed.
    fn next(&mut self) -> bool {
        let event = self.0.read_chunk().expect("an open stream").expect("an event");
        let event = String::from_utf8(event).expect("text");
        assert!(event.contains("event: state\ndata: {\"version\":\""), "{event}");
        event.contains("\"failed\":true")
    }
}

#[test]
fn edited_file_gives_fresh_page_and_event() {
    let project = project();
    let server = dev(project.path()).start();
    assert!(page(&server, "/").text().contains(">first<"));
    let mut events = Events::of(&server);
    assert!(!events.next(), "the state at the start");
    write(project.path(), "src/text.php", "<?php const TEXT = 'second';");
    assert!(!events.next());
    assert!(page(&server, "/").text().contains(">second<"), "the event follows the new version");
    std::fs::write(project.path().join("vendor/a.php"), "<?php").expect("our folder");
    std::fs::write(project.path().join("public/app.css"), "a{}").expect("our folder");
    assert!(!events.next());
    let lines = eventually("a line about the style sheet", || {
        Some(server.stdout()).filter(|lines| lines.contains("changed public/app.css\n"))
    });
    assert!(lines.contains("changed src/text.php: new version after "), "{lines}");
    assert!(!lines.contains("vendor") && !lines.contains('\x1b'), "{lines}");
    // Changes of a style sheet need no boot.
    assert_eq!(server.status()["generation"], 2);
}

#[test]
fn broken_boot_keeps_last_good_version_and_recovers() {
    let project = project();
    let server = dev(project.path()).start();
    let mut events = Events::of(&server);
    assert!(!events.next());
    let broken = "<?php function lost() { throw new DomainException('no <stock>'); } lost();";
    write(project.path(), "src/text.php", broken);
    assert!(events.next(), "the boot fails");
    assert!(page(&server, "/").text().contains(">first<"));
    let why = page(&server, "/_samovar/failure").text();
    for part in ["<h1>DomainException</h1>", "no &lt;stock&gt;", "src/text.php:1", "lost()"] {
        assert!(why.contains(part), "{part} is not in {why}");
    }
    write(project.path(), "src/text.php", "<?php const TEXT = ;");
    assert!(events.next());
    let why = page(&server, "/_samovar/failure").text();
    assert!(why.contains("<h1>Parse error</h1>"), "{why}");
    let lines = server.stdout();
    assert!(lines.contains("failed src/text.php: the last good version keeps serving"), "{lines}");
    write(project.path(), "src/text.php", "<?php const TEXT = 'mended';");
    assert!(!events.next());
    assert!(page(&server, "/").text().contains(">mended<"));
}

#[test]
fn server_that_never_booted_shows_error_and_recovers() {
    let project = project();
    write(project.path(), "src/text.php", "<?php const TEXT = ;");
    let server = dev(project.path()).start();
    let response = page(&server, "/");
    assert_eq!(response.status, 500);
    assert!(response.text().contains("syntax error"), "{}", response.text());
    let mut events = Events::of(&server);
    assert!(!events.next());
    write(project.path(), "src/text.php", "<?php const TEXT = 'mended';");
    assert!(!events.next());
    assert!(page(&server, "/").text().contains(">mended<"));
}

#[test]
fn script_is_added_to_whole_pages_only() {
    const PHP: &str = r#"<?php
        $page = '<!doctype html><html><head></head><body>text</body></html>';
        $what = $_GET['what'] ?? '';
        switch ($what) {
            case 'fragment': echo '<div>text</div>'; break;
            case 'json': header('Content-Type: application/json'); echo json_encode($page); break;
            case 'length':
                header('Content-Length: ' . strlen($page));
                header('ETag: "x"');
                echo $page;
                break;
            case 'gzip': header('Content-Encoding: gzip'); echo gzencode($page); break;
            case 'nonce':
            case 'blocked':
                $source = $what === 'nonce' ? "'nonce-abc'" : "'none'";
                header("Content-Security-Policy: script-src $source");
                echo $page;
                break;
            case 'long': echo $page, str_repeat('long ', 100_000); break;
            case 'slow':
                echo substr($page, 0, 30);
                while (ob_get_level()) ob_end_flush();
                flush();
                usleep(600_000);
                echo substr($page, 30);
                break;
            case 'encoding': echo $page, $_SERVER['HTTP_ACCEPT_ENCODING'] ?? 'none'; break;
            default: echo $page;
        }"#;
    let server = Server::script(PHP).dev().start();
    let browser = |what: &str| {
        Request::get(&format!("/?what={what}")).header("Accept", "text/html,*/*;q=0.8")
    };
    for (what, expected) in [
        ("page", true),
        ("length", true),
        ("nonce", true),
        ("long", true),
        ("slow", true),
        ("encoding", true),
        ("fragment", false),
        ("json", false),
        ("gzip", false),
        ("blocked", false),
    ] {
        let response = server.client().request(&browser(what));
        let text = String::from_utf8_lossy(&response.body).into_owned();
        assert_eq!(text.contains(TAG), expected, "{what}: {text:.300}");
        if expected {
            assert!(
                text.contains("<head><script src=\"/_samovar/dev.js?v="),
                "{what}: {text:.300}"
            );
            assert!(text.contains("text</body></html>"), "{what}");
            assert_eq!(response.header("cache-control"), Some("no-store"), "{what}");
            assert_eq!(response.header("etag"), None, "{what}");
        }
        if let Some(length) = response.header("content-length") {
            assert_eq!(length, response.body.len().to_string(), "{what}");
        }
    }
    let nonce = server.client().request(&browser("nonce")).text();
    assert!(nonce.contains("\" nonce=\"abc\"></script>"), "{nonce}");
    // PHP must not compress a page that is changed afterwards; the front compresses it.
    let encoding = server.client().request(&browser("encoding").header("Accept-Encoding", "gzip"));
    assert!(encoding.text().contains("</html>none"), "{}", encoding.text());
    let request = browser("page").header("Sec-Fetch-Dest", "empty");
    assert!(!server.client().request(&request).text().contains(TAG), "a request of a script");
    assert!(!server.get("/?what=page").text().contains(TAG), "not a browser");
    let script = server.get("/_samovar/dev.js");
    assert!(script.text().contains("EventSource"), "{}", script.text());
}

#[test]
fn uncaught_exception_shows_page_on_this_machine_only() {
    const PHP: &str = "<?php
        // The line <above>.
        function buy() { throw new LogicException('no <stock>'); }
        if (isset($_GET['late'])) { echo 'half ', 'a page'; }
        buy();";
    let server = Server::script(PHP).dev().args(["--editor", "phpstorm"]).start();
    for target in ["/shop?a=1", "/shop?late=1"] {
        let response = page(&server, target);
        assert_eq!(response.status, 500, "{target}");
        let text = response.text();
        for part in [
            "<h1>LogicException</h1>",
            "no &lt;stock&gt;",
            "// The line &lt;above&gt;.",
            "phpstorm://open?file=",
            target,
            TAG,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("half a page"), "{text}");
    }
    let elsewhere = Request::get("/").header("Accept", "text/html").header("Host", "shop.example");
    for request in [Request::get("/"), elsewhere] {
        let response = server.client().request(&request);
        assert!(!response.text().contains("<h1>"), "{}", response.text());
    }
    let elsewhere = Request::get("/_samovar/failure").header("Host", "shop.example");
    assert!(!server.client().request(&elsewhere).text().contains("The application boots"));
    let line = eventually("the lines of the requests", || {
        let lines = server.stdout();
        let line = lines.lines().find(|line| line.starts_with("GET    /shop "))?.to_owned();
        lines.contains("  LogicException: no <stock>  ").then_some(line)
    });
    assert!(line.contains(" 500 ") && line.contains(" ms") && line.contains(" MB"), "{line}");
}

#[test]
fn address_for_other_machines_is_refused() {
    for listen in ["0.0.0.0:0", "[::]:0", ":0"] {
        let start = Server::script("<?php").dev().args(["--listen", listen]);
        let (code, log) = start.refuse();
        assert_eq!(code, Some(2), "{log}");
        assert!(log.contains("`samovar dev` shows source code"), "{log}");
        assert!(log.contains("hint: use a loopback address such as --listen 127"), "{log}");
    }
}

#[test]
fn ignored_folder_is_not_watched() {
    let project = project();
    std::fs::create_dir(project.path().join("fixtures")).expect("our folder");
    let server = dev(project.path()).args(["--ignore", "fixtures"]).start();
    let mut events = Events::of(&server);
    assert!(!events.next());
    std::fs::write(project.path().join("fixtures/a.php"), "<?php").expect("our folder");
    std::fs::write(project.path().join("public/b.js"), "1").expect("our folder");
    assert!(!events.next());
    let lines = eventually("a line about the change", || {
        Some(server.stdout()).filter(|lines| lines.contains("changed"))
    });
    assert!(lines.contains("changed public/b.js\n") && !lines.contains("fixtures"), "{lines}");
}
