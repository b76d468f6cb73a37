//! The front's own life: limits, log, drain.

use super::*;
use samovar_config::{AccessLogFormat, LogTarget};

#[test]
fn a_drain_finishes_what_is_in_flight() {
    let (told, heard) = channel();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let mut server = Server::new().work(move |job| {
        told.send(()).unwrap();
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        job.answer("done")
    });
    let mut idle = server.client();
    let mut busy = server.client();
    busy.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    heard.recv_timeout(WATCHDOG).unwrap();
    assert!(server.handle.is_ready());
    server.handle.drain();
    assert_eq!(idle.rest(), "", "idle connections are closed");
    until("not ready", || !server.handle.is_ready());
    until("the listener is closed", || TcpStream::connect(server.address).is_err());
    go.send(()).unwrap();
    let reply = busy.reply(false);
    assert_eq!((reply.text(), reply.header("connection")), ("done", Some("close")));
    server.stop();
}

#[test]
fn a_drain_ends() {
    let mut server = Server::with(4, |o| o.timeouts.drain = Duration::from_millis(200));
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    until("in flight", || server.handle.counters().in_flight == 1);
    server.stop();
    assert_eq!(client.rest(), "");
}

#[test]
fn beyond_the_limit_connections_wait() {
    let server = Server::with(4, |o| o.limits.connections_max = 2).work(|job| job.answer("ok"));
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    // Two are served; idle then, they are closed to make room for the others.
    for client in &mut clients {
        assert_eq!(client.reply(false).text(), "ok");
    }
    assert!(server.handle.counters().connections <= 2);
}

#[test]
fn counters_count() {
    let server = Server::new().work(|job| job.answer("ok"));
    for _ in 0..5 {
        server.get("/");
    }
    until("all are over", || server.handle.counters().connections == 0);
    let counters = server.handle.counters();
    assert_eq!((counters.requests_total, counters.in_flight), (5, 0));
    assert_eq!((counters.connections_total, counters.responses_5xx_total), (5, 0));
}

fn log_of(format: AccessLogFormat, ask: impl Fn(&Server)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = LogTarget::File(path.clone());
    let change = move |o: &mut Settings| (o.access_log, o.access_log_format) = (log, format);
    let mut server = Server::with(4, change).work(|job| job.answer("hello"));
    ask(&server);
    server.stop();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_access_log_as_json() {
    let text = log_of(AccessLogFormat::Json, |server| {
        server.ask(
            "GET /a?b HTTP/1.1\r\nHost: t\r\nUser-Agent: evil\"\\\r\nX-Request-Id: id-1\r\n\
             Connection: close\r\n\r\n",
        );
    });
    for part in [
        "\"method\":\"GET\",\"uri\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":5",
        "\"user_agent\":\"evil\\\"\\\\\"",
        "\"cpu_ms\":1.500,\"memory_bytes\":4096",
        "\"request_id\":\"id-1\",\"attempts\":1,\"aborted\":false}\n",
        "\"remote\":\"127.0.0.1\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_access_log_as_combined() {
    let text = log_of(AccessLogFormat::Combined, |server| {
        server.get("/a");
        server.get("/b\"");
    });
    assert!(text.starts_with("127.0.0.1 - - ["), "{text}");
    assert!(text.contains("] \"GET /a HTTP/1.1\" 200 5 \"-\" \"-\" "), "{text}");
    assert!(text.contains("ms cpu=1.500ms memory=4096 id="), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn the_log_follows_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = LogTarget::File(path.clone());
    let server = Server::with(4, |o| o.access_log = log).work(|job| job.answer("hello"));
    server.get("/one");
    let has = |name: &std::path::Path, text: &str| {
        std::fs::read_to_string(name).is_ok_and(|log| log.contains(text))
    };
    until("the first line", || has(&path, "/one"));
    let moved = folder.path().join("access.log.1");
    std::fs::rename(&path, &moved).unwrap();
    server.handle.reopen_logs();
    server.get("/two");
    until("the second line", || has(&path, "/two"));
    assert!(!has(&moved, "/two"));
}
