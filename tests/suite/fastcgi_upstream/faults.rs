//! A php-fpm that dies, hangs, is overloaded, is absent, or sends too much.

use super::*;

#[test]
fn killed_php_fpm_process_is_reported() {
    let site = Passing::start(2, |start| start);
    let response = site.get("/old/?do=kill");
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(site.trouble("closed"), 1);
    site.server.wait_for_log("upstream request failed: connection closed before the end");
    // In the middle of a response: the truncated response must not look complete.
    let mut client = site.server.client();
    client.send(&Request::get("/old/?do=kill&after=1").bytes());
    let response = client.read(false);
    assert_eq!((response.status, response.complete), (200, false));
    eventually("it is counted", || (site.trouble("closed") == 2).then_some(()));
    site.server.wait_for_log("incomplete response from php-fpm: connection closed before the end");
    // Another process has replaced it.
    eventually("another process", || {
        (site.get("/old/b.php").text() == "old /old/b.php").then_some(())
    });
    assert_eq!(site.in_use(), 0);
    assert_eq!(site.get("/").text(), "new /", "others notice nothing");
}

#[test]
fn wrong_content_length_truncates_response() {
    let site = Passing::start(2, |start| start);
    let response = site.get("/old/?do=length&bytes=100");
    assert_eq!(
        (response.status, response.complete, response.text().as_str()),
        (200, false, "ten bytes!")
    );
}

#[test]
fn hanging_php_fpm_request_times_out() {
    let site = Passing::start(3, |start| {
        start.args(["--response-timeout", "1s", "--path-timeout", "/old/slow/*=1s"])
    });
    let gate = site.gate("never");
    let response = site.get(&format!("/old/?do=wait&gate={gate}"));
    assert_eq!((response.status, site.trouble("quiet")), (504, 1));
    let response = site.get(&format!("/old/slow/?do=wait&gate={gate}"));
    assert_eq!((response.status, site.trouble("long")), (504, 1));
    site.server.wait_for_log("no byte received within timeouts.response");
    // In the middle of a response.
    let response = site.get(&format!("/old/?do=flush&gate={gate}"));
    assert_eq!((response.status, response.complete), (200, false));
    eventually("it is counted", || (site.trouble("quiet") == 2).then_some(()));
    assert_eq!(site.in_use(), 0);
    site.open("never");
}

/// The response waits in a spill file, and php-fpm's process is free for other requests.
#[test]
fn client_that_reads_nothing_occupies_no_php_fpm_process() {
    let site = Passing::start(1, |start| start);
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("a request at php-fpm", || (site.in_use() == 1).then_some(()));
    eventually("php-fpm has sent its response", || (site.in_use() == 0).then_some(()));
    assert!(site.get("/old/").text().starts_with("old "), "by its only process");
    let response = slow.read(false);
    assert_eq!((response.status, response.complete), (200, true));
    let expected: Vec<u8> = (0..200u32).flat_map(|i| vec![b'a' + (i % 26) as u8; 50_000]).collect();
    assert!(response.body == expected, "{} bytes", response.body.len());
}

/// Time in which php-fpm waits for a slow client does not count towards php-fpm's timeouts.
#[test]
fn wait_for_slow_client_does_not_count_as_timeout() {
    let limits = ["--response-memory-bytes-max", "64K", "--response-spill-bytes-max", "0"];
    let times = ["--request-timeout", "1s", "--response-timeout", "1s"];
    let site = Passing::start(2, |start| start.args(limits).args(times));
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("a request at php-fpm", || (site.in_use() == 1).then_some(()));
    // This request's timeout shows that the time is over.
    let late = site.get(&format!("/old/?do=wait&gate={}", site.gate("never")));
    assert_eq!(late.status, 504);
    let response = slow.read(false);
    assert_eq!((response.status, response.complete, response.body.len()), (200, true, 10_000_000));
    assert_eq!(site.trouble("long") + site.trouble("quiet"), 1, "of the other");
    site.open("never");
}

#[test]
fn full_php_fpm_backlog_is_retried_until_connect_timeout() {
    let root = site();
    let fpm = Fpm::start(1, "listen.backlog = 1");
    let start = server(root.path(), &fpm.address());
    let server = start.args(["--fastcgi-connect-timeout", "1s"]).start();
    let gate = root.path().join("gate");
    let wait = Request::get(&format!("/old/?do=wait&gate={}", gate.display()));
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(&wait.bytes());
    }
    // The kernel accepts a few more connections than the backlog.
    eventually("some are refused", || (trouble(&server, "unaccepted") >= 3).then_some(()));
    std::fs::write(&gate, "").expect("our own folder");
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.read(false).status).collect();
    let of = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(of(200) + of(504), 6, "{statuses:?}");
    assert!(of(200) >= 2, "{statuses:?}");
    server.wait_for_log(
        "upstream request failed: no connection accepted within fastcgi.connect_timeout",
    );
    assert_eq!(server.get("/old/b.php").status, 200);
}

#[test]
fn request_beyond_connection_limit_waits_for_connection() {
    let site = Passing::start(3, |start| {
        start.args(["--fastcgi-connections-max", "1", "--fastcgi-connect-timeout", "1s"])
    });
    let wait = Request::get(&format!("/old/?do=wait&gate={}", site.gate("gate")));
    let mut first = site.server.client();
    first.send(&wait.bytes());
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    let second = site.get("/old/b.php");
    assert_eq!((second.status, site.trouble("full")), (503, 1));
    assert_eq!(site.get("/").status, 200);
    site.open("gate");
    assert_eq!(first.read(false).text(), "waited");
    assert_eq!(site.get("/old/b.php").status, 200);
}

#[test]
fn client_disconnect_closes_upstream_connection() {
    let site = Passing::start(3, |start| start);
    for what in ["wait", "flush"] {
        let mut client = site.server.client();
        client.send(&Request::get(&format!("/old/?do={what}&gate={}", site.gate("gate"))).bytes());
        eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
        client.abort();
        eventually("its connection is closed", || (site.in_use() == 0).then_some(()));
    }
    // A client that reads nothing blocks php-fpm until it disconnects.
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    slow.abort();
    eventually("its connection is closed", || (site.in_use() == 0).then_some(()));
    site.open("gate");
}

#[test]
fn oversized_upstream_head_is_rejected() {
    let site = Passing::start(2, |start| start);
    let response = site.get("/old/?do=many");
    assert_eq!((response.status, site.trouble("head")), (502, 1));
    assert_eq!(site.get("/old/b.php").status, 200);
}

#[test]
fn php_fpm_stderr_is_logged() {
    let site = Passing::start(2, |start| start);
    assert_eq!(site.get("/old/?do=log").text(), "logged");
    site.server.wait_for_log("by the script");
    let log = site.server.log();
    assert!(log.contains("message from php-fpm: PHP message: said"), "{log}");
}

#[test]
fn absent_php_fpm_is_reported() {
    let root = site();
    let start = server(root.path(), "unix:/nowhere/fpm.sock");
    let server = start.args(["--admin", "127.0.0.1:0"]).start();
    let response = server.get("/old/");
    assert_eq!((response.status, trouble(&server, "unreachable")), (502, 1));
    server.wait_for_log("upstream request failed: connection failed");
    assert!(server.log().contains("upstream=unix:/nowhere/fpm.sock"), "{}", server.log());
    assert_eq!(server.get("/").text(), "new /");
    let admin = server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    let metrics = Client::connect(admin.expect("an address")).get("/metrics").text();
    for sample in [
        "samovar_upstream_requests_total 1",
        "samovar_upstream_connections 0",
        "samovar_upstream_errors_total{reason=\"unreachable\"} 1",
        "samovar_upstream_errors_total{reason=\"closed\"} 0",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
}
