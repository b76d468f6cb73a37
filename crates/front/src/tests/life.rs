//! Tests of the front itself: limits, log, drain.

use super::*;
use crate::KillReason;
use samovar_config::{AccessLogFormat, LogTarget};
use samovar_ring::Overrun;

#[test]
fn drain_finishes_requests_in_flight() {
    let (told, heard) = channel();
    let (go, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let mut server = Server::new().work(move |job| {
        told.send(()).unwrap();
        gate.lock().unwrap().recv_timeout(WATCHDOG).unwrap();
        job.respond("done")
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
fn drain_ends_at_its_timeout() {
    let mut server = Server::with(4, |o| o.timeouts.drain = Duration::from_millis(200));
    let mut client = server.client();
    client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    until("in flight", || server.handle.counters().pool.in_flight == 1);
    server.stop();
    assert_eq!(client.rest(), "");
}

/// Sends the whole promised response; the script then continues.
fn response_and_go_on(job: &mut Job<'_>) {
    job.head(200, "Content-Length: 3\n");
    job.write(b"bye");
    assert!(job.flush());
}

#[test]
fn drain_waits_for_scripts_that_run_after_response() {
    let mut server = Server::new();
    let address = server.address;
    let (ended, has_ended) = channel::<()>();
    let (said, waited) = channel();
    let has_ended = Mutex::new(has_ended);
    server = server.work(move |job| {
        response_and_go_on(job);
        until("the listener is closed", || TcpStream::connect(address).is_err());
        let ended = has_ended.lock().unwrap().recv_timeout(Duration::from_millis(500));
        said.send(ended.is_err()).unwrap();
        After::Finish
    });
    assert_eq!(server.get("/").text(), "bye");
    server.stop();
    ended.send(()).unwrap();
    assert!(waited.recv_timeout(WATCHDOG).unwrap(), "the front ended while a script went on");
}

#[test]
fn script_running_after_drain_timeout_is_killed() {
    let mut server = Server::with(4, |o| {
        o.timeouts.drain = Duration::from_millis(200);
        o.timeouts.grace = Duration::from_millis(100);
    })
    .work(|job| {
        response_and_go_on(job);
        After::Hang
    });
    assert_eq!(server.get("/a").text(), "bye");
    server.stop();
    let FrontEvent::Overrun { run, overrun: Overrun::Drain, request, ran, .. } = server.event()
    else {
        panic!("it is told to end first")
    };
    assert_eq!(request, "GET /a");
    assert!(ran >= Duration::from_millis(199), "it runs since before the stop: {ran:?}");
    let FrontEvent::KillWorker { incarnation, reason } = server.event() else { panic!("no kill") };
    assert_eq!((incarnation, reason), (run.worker, KillReason::Overrun(run, Overrun::Drain)));
    let counters = server.handle.counters();
    assert_eq!((counters.pool.drain_timeouts_total, counters.pool.overrun_kills_total), (1, 1));
}

#[test]
fn connections_beyond_limit_wait_for_idle_ones() {
    let server = Server::with(4, |o| o.limits.connections_max = 2).work(|job| job.respond("ok"));
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    // Two clients are served. Their connections are then idle, and are closed to make room for the
    // others.
    for client in &mut clients {
        assert_eq!(client.reply(false).text(), "ok");
    }
    let counters = server.handle.counters();
    assert!(
        counters.server.connections <= 2 && counters.server.connections_reclaimed_total >= 2,
        "{counters:?}"
    );
}

/// All clients are connected and none waits. An idle connection stays open, even after the idle
/// time at which another client could take its place.
#[test]
fn idle_connections_stay_open_if_no_client_waits() {
    let server = Server::with(4, |o| o.limits.connections_max = 3).work(|job| job.respond("ok"));
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    let ask = |client: &mut Client| {
        client.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        client.reply(false).text().to_owned()
    };
    for client in &mut clients {
        assert_eq!(ask(client), "ok");
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(ask(&mut clients[0]), "ok");
    }
    for client in &mut clients {
        assert_eq!(ask(client), "ok");
    }
    assert_eq!(server.handle.counters().server.connections_total, 3);
}

#[test]
fn counters_match_served_requests() {
    let server = Server::new().work(|job| job.respond("ok"));
    for _ in 0..5 {
        server.get("/");
    }
    until("all are over", || server.handle.counters().server.connections == 0);
    let counters = server.handle.counters();
    assert_eq!((counters.pool.requests_total, counters.pool.in_flight), (5, 0));
    assert_eq!((counters.server.connections_total, counters.pool.responses_5xx_total), (5, 0));
}

fn log_of(format: AccessLogFormat, ask: impl Fn(&Server)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = LogTarget::File(path.clone());
    let change = move |o: &mut Settings| (o.access_log, o.access_log_format) = (log, format);
    let mut server = Server::with(4, change).work(|job| job.respond("hello"));
    ask(&server);
    server.stop();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn access_log_writes_json() {
    let text = log_of(AccessLogFormat::Json, |server| {
        server.ask(
            "GET /a?b HTTP/1.1\r\nHost: t\r\nUser-Agent: evil\"\\\r\nX-Request-Id: id-1\r\n\
             Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nConnection: close\r\n\r\n",
        );
    });
    for part in [
        "\"method\":\"GET\",\"uri\":\"/a?b\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"host\":\"t\",\
         \"user\":\"Aladdin\",\"bytes\":5",
        "\"user_agent\":\"evil\\\"\\\\\"",
        "\"cpu_ms\":1.500,\"memory_bytes\":4096,\"model\":\"script\",\"route\":\"index.php /a\"",
        "\"request_id\":\"id-1\",\"attempts\":1,\"aborted\":false}\n",
        "\"remote\":\"127.0.0.1\"",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn access_log_writes_combined_format() {
    let text = log_of(AccessLogFormat::Combined, |server| {
        server.get("/a");
        server.get("/b\"");
        // The user name is `a "b`.
        server.ask(
            "GET /c HTTP/1.1\r\nHost: t\r\nAuthorization: Basic YSAiYjpw\r\n\
             Connection: close\r\n\r\n",
        );
    });
    assert!(text.starts_with("127.0.0.1 - - ["), "{text}");
    assert!(text.contains("127.0.0.1 - a\\x20\\x22b ["), "{text}");
    assert!(text.contains("] \"GET /a HTTP/1.1\" 200 5 \"-\" \"-\" "), "{text}");
    assert!(text.contains(" memory=4096 model=script route=\"index.php /a\" id="), "{text}");
    assert!(text.contains(" route=\"index.php /b\\x22\" id="), "{text}");
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn access_log_has_a_line_for_each_refused_head() {
    let refused = |server: &Server| {
        for head in ["G@T /a HTTP/1.1\"\r\n\r\n", "GET / HTTP/9\r\n\r\n"] {
            assert_eq!(server.ask(head).status, 400, "{head}");
        }
        assert_eq!(server.handle.counters().server.heads_refused_total, 2);
    };
    let text = log_of(AccessLogFormat::Combined, refused);
    for part in
        ["] \"G@T /a HTTP/1.1\\x22\" 400 62 \"-\" \"-\" ", "] \"GET / HTTP/9\" 400 62 \"-\" \"-\" "]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text.lines().count(), 2, "{text}");
    let text = log_of(AccessLogFormat::Json, refused);
    let part = "\"remote\":\"127.0.0.1\",\"refused\":\"GET / HTTP/9\",\"status\":400,\"bytes\":62";
    assert!(text.contains(part), "{text}");
}

#[test]
fn access_log_is_reopened_after_rotation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = LogTarget::File(path.clone());
    let server = Server::with(4, |o| o.access_log = log).work(|job| job.respond("hello"));
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
