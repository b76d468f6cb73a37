//! Queues that are full or slow, or contain requests of disconnected clients.

use crate::faults::stage::{
    Load, app, assert_serves, create, file_of, in_flight, is_hello, wait_for_busy,
    wait_for_in_flight,
};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};

#[test]
fn queued_request_of_disconnected_client_is_not_run() {
    let server = app().workers(1).start();
    let (go, mark) = (file_of(&server, "go"), file_of(&server, "mark"));
    let mut first = server.client();
    first.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(&server);
    let mut second = server.client();
    second.send(&Request::get(&format!("/mark?file={}", mark.display())).bytes());
    wait_for_in_flight(&server, 2);
    second.abort();
    wait_for_in_flight(&server, 1);
    create(&go);
    assert_eq!(first.read(false).text(), "waited");
    assert_serves(&server, "after a withdrawn request");
    assert!(!mark.exists(), "nobody wanted it any more");
}

#[test]
fn full_queue_gets_503_at_once_and_queued_requests_are_served() {
    const ALL: u64 = 60;
    let server = app().workers(1).args(["--queue-max", "16"]).start();
    let go = file_of(&server, "go");
    let target = format!("/wait?file={}", go.display());
    let mut clients: Vec<_> = (0..ALL).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(&Request::get(&target).bytes());
    }
    let status = eventually("requests that are shed", || {
        let status = server.status();
        let of = |key: &str| status[key].as_u64().unwrap_or(0);
        let all = of("rejected_total") + of("in_flight") == ALL && of("rejected_total") > 0;
        (all && of("queue_depth") > 0).then_some(status.clone())
    });
    let rejected = status["rejected_total"].as_u64().expect("a number");
    let kept = ALL - rejected;
    assert!((16..=32).contains(&kept), "about queue_max wait: {status}");
    assert!(status["queue_depth"].as_u64().is_some_and(|depth| depth >= 15), "{status}");
    create(&go);
    let responses: Vec<_> = clients.iter_mut().map(|client| client.read(false)).collect();
    let waited = responses.iter().filter(|a| (a.status, a.text().as_str()) == (200, "waited"));
    assert_eq!(waited.count() as u64, kept);
    for shed in responses.iter().filter(|a| a.status != 200) {
        assert_eq!((shed.status, shed.header("retry-after")), (503, Some("1")));
        assert!(shed.complete && shed.header("connection") != Some("close"), "{shed:?}");
    }
    assert!(clients.iter_mut().all(|client| is_hello(&client.get("/hello"))));
    server.stop();
}

#[test]
fn request_over_queue_timeout_gets_503() {
    let server = app().workers(1).args(["--queue-timeout", "1s"]).start();
    let go = file_of(&server, "go");
    let mut first = server.client();
    first.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(&server);
    assert_eq!(server.get("/hello").status, 503);
    create(&go);
    assert_eq!(first.read(false).text(), "waited", "it is not the slow one that is shed");
}

/// A request that a trusted proxy forwards for `client`.
fn from(client: &str, target: &str) -> Vec<u8> {
    Request::get(target).header("X-Forwarded-For", client).bytes()
}

fn rejected(server: &Server, reason: &str) -> u64 {
    server.status()["rejected_reasons"][reason].as_u64().expect("a number")
}

#[test]
fn flood_of_one_client_leaves_queue_room_for_others() {
    let limits = ["--queue-max", "40", "--client-share", "25", "--trusted-proxies", "127.0.0.1"];
    let server = app().workers(1).args(limits).start();
    let go = file_of(&server, "go");
    let wait = format!("/wait?file={}", go.display());
    let mut flood: Vec<_> = (0..60).map(|_| server.client()).collect();
    for client in &mut flood {
        client.send(&from("203.0.113.9", &wait));
    }
    eventually("a flood that is shed", || (rejected(&server, "share") >= 49).then_some(()));
    // An IPv6 network counts as one client; different networks are different clients.
    let mut others: Vec<_> = (0..20).map(|_| server.client()).collect();
    for (n, client) in others.iter_mut().enumerate() {
        client.send(&from(&format!("2001:db8:0:{n}::1"), "/hello"));
    }
    wait_for_in_flight(&server, 10 + 20);
    create(&go);
    for client in &mut others {
        assert!(is_hello(&client.read(false)));
    }
    let responses = flood.iter_mut().map(|client| client.read(false).status);
    assert_eq!(responses.filter(|status| *status == 200).count(), 10);
    assert_eq!(rejected(&server, "share"), 50);
    assert_eq!(server.status()["rejected_total"], 50);
    server.wait_for_log("one client sends too many requests");
    // The client's share of the queue is free again.
    let mut again = server.client();
    again.send(&from("203.0.113.9", "/hello"));
    assert!(is_hello(&again.read(false)));
    server.stop();
}

#[test]
fn priority_path_is_rejected_last() {
    let limits = ["--queue-max", "20", "--priority-paths", "/hello"];
    let server = app().workers(1).args(limits).start();
    let go = file_of(&server, "go");
    let wait = format!("/wait?file={}", go.display());
    let mut flood: Vec<_> = (0..60).map(|_| server.client()).collect();
    for client in &mut flood {
        client.send(&Request::get(&wait).bytes());
    }
    eventually("a flood that is shed", || {
        (rejected(&server, "full") + in_flight(&server) == 60).then_some(())
    });
    let before = in_flight(&server);
    let mut health = server.client();
    health.send(&Request::get("/hello").bytes());
    wait_for_in_flight(&server, before + 1);
    create(&go);
    assert!(is_hello(&health.read(false)));
    server.stop();
}

#[test]
fn request_that_would_wait_too_long_is_rejected_at_once() {
    let limits = ["--queue-max", "400", "--queue-timeout", "2s"];
    let server = app().workers(1).args(limits).start();
    // 20 requests a second: 36 can be served in time.
    let load = Load::start(server.address(), 60, &Request::get("/sleep?ms=50"));
    eventually("requests that are refused by time", || {
        (rejected(&server, "late") > 500).then_some(())
    });
    let refused = loop {
        let response = server.get("/sleep?ms=50");
        if response.status == 503 {
            break response;
        }
    };
    assert!(refused.header("retry-after").is_some_and(|s| s.parse::<u64>().is_ok()), "{refused:?}");
    for response in load.stop() {
        let status = response.expect("an answer").status;
        assert!(matches!(status, 200 | 503), "{status}");
    }
    let status = server.status();
    let of = |reason: &str| status["rejected_reasons"][reason].as_u64().expect("a number");
    assert!(of("waited") * 5 <= of("late"), "hardly any has waited in vain: {status}");
    assert_serves(&server, "after the flood");
    server.stop();
}

#[test]
fn connections_per_client_are_limited_except_for_trusted_proxy() {
    let server = app().workers(1).args(["--client-connections-max", "8"]).start();
    let mut kept: Vec<_> = (0..8).map(|_| server.client()).collect();
    for client in &mut kept {
        assert!(is_hello(&client.get("/hello")));
    }
    let mut ninth = server.client();
    ninth.send(&Request::get("/hello").bytes());
    assert!(ninth.is_closed(), "it is closed without a word");
    server.wait_for_log("connection limit of a client reached");
    assert!(is_hello(&kept[0].get("/hello")));
    kept.pop();
    eventually("a place", || {
        let mut client = server.client();
        client.send(&Request::get("/hello").bytes());
        (!client.is_closed()).then_some(())
    });
    server.stop();
    let limits = ["--client-connections-max", "1", "--trusted-proxies", "127.0.0.1"];
    let server = app().workers(1).args(limits).start();
    let mut many: Vec<_> = (0..8).map(|_| server.client()).collect();
    for client in &mut many {
        assert!(is_hello(&client.get("/hello")));
    }
    server.stop();
}

#[test]
fn request_during_first_boot_gets_503_with_reason() {
    let script = "<?php sleep(600); Samovar\\checkpoint(); echo 'up';";
    let server = Server::script(script)
        .workers(1)
        .args(["--queue-timeout", "300ms", "--boot-timeout", "200ms"])
        .start();
    let response = server.get("/");
    assert_eq!(response.status, 503);
    assert!(response.text().contains("is starting"), "{response:?}");
    server.wait_for_log("no worker has booted yet");
    assert!(rejected(&server, "starting") >= 1);
    server.stop();
}
