//! `[[intake]]`: requests that the front stores as jobs, without PHP.

use samovar_testkit::http::Request;
use samovar_testkit::{Server, binary, eventually, family, http2};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

const CONSUMES: &str = "<?php
Samovar\\consume(function (Samovar\\Job ...$jobs) {
    $lines = '';
    foreach ($jobs as $job) {
        $lines .= json_encode([count($jobs), $job->payload()]) . \"\\n\";
    }
    file_put_contents(__DIR__ . '/../ran', $lines, FILE_APPEND);
});
";

struct Site(TempDir);

impl Site {
    fn new() -> Site {
        let site = Site(TempDir::with_prefix("samovar-intake-").expect("a folder"));
        for folder in ["public", "jobs"] {
            std::fs::create_dir(site.at(folder)).expect("a folder");
        }
        let page = "<?php echo $_SERVER['REQUEST_METHOD'], ' by PHP';";
        std::fs::write(site.at("public/index.php"), page).expect("a script");
        std::fs::write(site.at("jobs/work.php"), CONSUMES).expect("a script");
        site
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self, jobs: &str, intake: &str, queue: &str) -> Server {
        let config = format!(
            "access_log = '{}'\n[jobs]\nstore = '{}'\n{jobs}\n\
             [[queue]]\nname = 'clicks'\nhandler = '{}'\n{queue}\n\
             [[intake]]\nmatch = ['POST /track', 'GET /pixel/*']\nqueue = 'clicks'\n{intake}\n",
            self.at("access.log").display(),
            self.at("state/jobs.sqlite").display(),
            self.at("jobs/work.php").display(),
        );
        Server::at(self.at("public")).workers(1).config(&config).start()
    }

    /// Lines that jobs have written.
    fn ran(&self, count: usize) -> Vec<Value> {
        eventually(&format!("{count} jobs"), || {
            let text = std::fs::read_to_string(self.at("ran")).unwrap_or_default();
            let ran: Vec<Value> =
                text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            Some(ran).filter(|ran| ran.len() >= count)
        })
    }
}

fn post(server: &Server, target: &str, body: &str) -> samovar_testkit::http::Response {
    server.client().request(&Request::post(target, "text/plain", body))
}

fn counter(server: &Server, name: &str) -> u64 {
    server.status()[name].as_u64().expect(name)
}

#[test]
fn request_becomes_a_job_without_php() {
    let site = Site::new();
    let server = site.start("", "headers = ['Content-Type', 'x-absent']", "");
    let stored = post(&server, "/%74rack?a=1&b=%20", "hällo\0");
    assert_eq!((stored.status, stored.text().as_str()), (204, ""));
    let job = site.ran(1)[0][1].clone();
    assert_eq!(job["method"], "POST");
    assert_eq!((&job["path"], &job["query"]), (&json!("/track"), &json!("a=1&b=%20")));
    assert_eq!(job["headers"], json!({ "content-type": "text/plain" }));
    assert_eq!((&job["body"], &job["client"]), (&json!("hällo\0"), &json!("127.0.0.1")));
    // Other methods and paths belong to PHP.
    assert_eq!(server.get("/track").text(), "GET by PHP");
    assert_eq!(post(&server, "/other", "x").text(), "POST by PHP");
    let pixel = server.get("/pixel/a?b");
    assert_eq!((pixel.status, site.ran(2)[1][1]["path"].clone()), (204, json!("/pixel/a")));
    assert_eq!(counter(&server, "intake_requests_total"), 2);
    eventually("a line in the access log", || {
        let log = std::fs::read_to_string(site.at("access.log")).ok()?;
        log.lines().any(|line| line.contains("rack") && line.contains("204")).then_some(())
    });
    server.stop();
}

#[test]
fn gif_is_an_image_and_is_not_cached() {
    let site = Site::new();
    let server = site.start("", "response = 'gif'", "");
    let pixel = server.get("/pixel/1");
    assert_eq!(pixel.status, 200);
    assert_eq!(pixel.header("content-type"), Some("image/gif"));
    assert_eq!(pixel.header("cache-control"), Some("no-store"));
    assert!(pixel.body.starts_with(b"GIF89a") && pixel.body.ends_with(b";"), "{pixel:?}");
    assert_eq!(pixel.body.len(), 43);
    server.stop();
}

#[test]
fn body_above_the_limit_gets_413_and_binary_body_is_encoded() {
    let site = Site::new();
    let server = site.start("", "body_bytes_max = '40K'", "");
    assert_eq!(post(&server, "/track", &"x".repeat(40 << 10)).status, 204);
    assert_eq!(post(&server, "/track", &"x".repeat((40 << 10) + 1)).status, 413);
    // Escapes make it larger than a payload may be.
    assert_eq!(post(&server, "/track", &"\u{1}".repeat(20 << 10)).status, 413);
    let binary = Request::post("/track", "text/plain", vec![0xff_u8, 0]);
    assert_eq!(server.client().request(&binary).status, 204);
    assert_eq!(site.ran(2)[1][1]["body_base64"], "/wA=");
    assert_eq!(counter(&server, "intake_requests_total"), 2);
    server.stop();
}

#[test]
fn full_store_rejects_or_drops() {
    for (overload, status) in [("reject", 503), ("drop", 204)] {
        let site = Site::new();
        let intake = format!("overload = '{overload}'");
        let server = site.start("bytes_max = '1M'", &intake, "");
        let paused = Command::new(binary())
            .args(["queue", "pause", "clicks", "--control"])
            .arg(server.control())
            .status();
        assert!(paused.expect("the command runs").success());
        let body = "x".repeat(16 << 10);
        let last = eventually("the store is full", || {
            let response = post(&server, "/track", &body);
            let is_full = counter(&server, "intake_dropped_total") > 0 || response.status != 204;
            is_full.then_some(response)
        });
        assert_eq!(last.status, status);
        if status == 503 {
            assert_eq!(last.header("retry-after"), Some("1"));
            assert!(server.status()["rejected_reasons"]["intake"].as_u64() > Some(0));
            assert_eq!(counter(&server, "intake_dropped_total"), 0);
        }
        assert_eq!(server.get("/").text(), "GET by PHP");
        server.stop();
    }
}

#[test]
fn handler_gets_batches_of_requests() {
    let site = Site::new();
    let server = site.start("", "", "batch = 1000\nlinger = '300ms'");
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let mut client = server.client();
            std::thread::spawn(move || {
                for number in 0..100 {
                    let body = format!("{thread} {number}");
                    let response = client.request(&Request::post("/track", "text/plain", &*body));
                    assert_eq!(response.status, 204);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    let ran = site.ran(800);
    let mut bodies: Vec<&str> = ran.iter().filter_map(|job| job[1]["body"].as_str()).collect();
    bodies.sort_unstable();
    bodies.dedup();
    assert_eq!(bodies.len(), 800);
    assert!(ran.iter().any(|job| job[0].as_u64() > Some(8)), "{:?}", ran[0]);
    server.stop();
}

/// Clients that open streams without reading responses, and cancel every second one.
#[test]
fn flood_over_http2_uses_bounded_memory_and_leaves_room_for_others() {
    const CONNECTIONS: usize = 8;
    const STREAMS: u32 = 3_000;
    for overload in ["reject", "drop"] {
        let site = Site::new();
        let server = site.start("", &format!("overload = '{overload}'"), "batch = 1000");
        assert_eq!(server.get("/").text(), "GET by PHP");
        let before = family::own_memory_bytes(server.pid()).expect("it runs");
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                let server = &server;
                scope.spawn(move || {
                    let mut flood =
                        http2::Connection::open(server.address()).expect("a connection");
                    for number in 0..STREAMS {
                        let stream = 2 * number + 1;
                        let sent = flood.get(stream, "/pixel/flood");
                        let sent = sent.and_then(|()| match number % 2 {
                            0 => flood.cancel(stream),
                            _ => Ok(()),
                        });
                        // The server may end a connection that cancels so much.
                        if sent.is_err() {
                            break;
                        }
                    }
                });
            }
            assert_eq!(post(&server, "/track", "in between").status, 204);
            assert_eq!(server.get("/").text(), "GET by PHP");
        });
        let after = family::own_memory_bytes(server.pid()).expect("it runs");
        assert!(after < before + (64 << 20), "{before} → {after}");
        assert!(counter(&server, "intake_requests_total") > 0);
        assert_eq!(post(&server, "/track", "after").status, 204);
        server.stop();
    }
}

#[test]
fn slow_and_broken_bodies_store_nothing() {
    let site = Site::new();
    let server = site.start("", "", "");
    let mut broken = TcpStream::connect(server.address()).expect("a connection");
    broken
        .write_all(b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        .expect("written");
    drop(broken);
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut slow = TcpStream::connect(server.address()).expect("a connection");
            slow.write_all(b"POST /track HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nx")
                .expect("written");
            slow
        })
        .collect();
    // The others do not wait for them.
    assert_eq!(post(&server, "/track", "fast").status, 204);
    assert_eq!(site.ran(1)[0][1]["body"], "fast");
    for stream in &mut slow {
        stream.write_all(b"late").expect("written");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("a response");
        assert_eq!(&head, b"HTTP/1.1 204");
    }
    assert_eq!(site.ran(21).len(), 21);
    assert_eq!(counter(&server, "intake_requests_total"), 21);
    server.stop();
}
