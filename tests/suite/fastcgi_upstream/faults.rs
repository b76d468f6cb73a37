//! A php-fpm that dies, hangs, is full, is not there, or says too much.

use super::*;

#[test]
fn one_that_is_killed_is_told_of() {
    let site = Passing::start(2, |start| start);
    let answer = site.get("/old/?do=kill");
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(site.trouble("closed"), 1);
    site.server.wait_for_log("php-fpm did not answer: it closed the connection");
    // In the middle of its answer: half an answer does not look whole.
    let mut client = site.server.client();
    client.send(&Request::get("/old/?do=kill&after=1").bytes());
    let answer = client.read(false);
    assert_eq!((answer.status, answer.complete), (200, false));
    eventually("it is counted", || (site.trouble("closed") == 2).then_some(()));
    site.server.wait_for_log("php-fpm's answer broke off: it closed the connection");
    // Another process has taken its place.
    eventually("another process", || {
        (site.get("/old/b.php").text() == "old /old/b.php").then_some(())
    });
    assert_eq!(site.in_use(), 0);
    assert_eq!(site.get("/").text(), "new /", "others notice nothing");
}

#[test]
fn a_length_that_is_not_kept_cuts_the_connection() {
    let site = Passing::start(2, |start| start);
    let answer = site.get("/old/?do=length&bytes=100");
    assert_eq!(
        (answer.status, answer.complete, answer.text().as_str()),
        (200, false, "ten bytes!")
    );
}

#[test]
fn one_that_hangs_is_given_up() {
    let site = Passing::start(3, |start| {
        start.args(["--answer-timeout", "1s", "--path-timeout", "/old/slow/*=1s"])
    });
    let gate = site.gate("never");
    let answer = site.get(&format!("/old/?do=wait&gate={gate}"));
    assert_eq!((answer.status, site.trouble("quiet")), (504, 1));
    let answer = site.get(&format!("/old/slow/?do=wait&gate={gate}"));
    assert_eq!((answer.status, site.trouble("long")), (504, 1));
    site.server.wait_for_log("it gave no byte within timeouts.answer");
    // In the middle of an answer.
    let answer = site.get(&format!("/old/?do=flush&gate={gate}"));
    assert_eq!((answer.status, answer.complete), (200, false));
    eventually("it is counted", || (site.trouble("quiet") == 2).then_some(()));
    assert_eq!(site.in_use(), 0);
    site.open("never");
}

/// Its answer waits in a file, and php-fpm's process is there for others.
#[test]
fn one_whose_client_reads_nothing_is_free() {
    let site = Passing::start(1, |start| start);
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("a request at php-fpm", || (site.in_use() == 1).then_some(()));
    eventually("php-fpm has given its answer", || (site.in_use() == 0).then_some(()));
    assert!(site.get("/old/").text().starts_with("old "), "by its only process");
    let answer = slow.read(false);
    assert_eq!((answer.status, answer.complete), (200, true));
    let expected: Vec<u8> = (0..200u32).flat_map(|i| vec![b'a' + (i % 26) as u8; 50_000]).collect();
    assert!(answer.body == expected, "{} bytes", answer.body.len());
}

/// What a client takes of a request's time is none of php-fpm's, where php-fpm has to wait for it.
#[test]
fn one_that_waits_for_its_client_is_not_late() {
    let limits = ["--answer-memory-bytes-max", "64K", "--answer-file-bytes-max", "0"];
    let times = ["--request-timeout", "1s", "--answer-timeout", "1s"];
    let site = Passing::start(2, |start| start.args(limits).args(times));
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("a request at php-fpm", || (site.in_use() == 1).then_some(()));
    // By this one it is seen that the time is over.
    let late = site.get(&format!("/old/?do=wait&gate={}", site.gate("never")));
    assert_eq!(late.status, 504);
    let answer = slow.read(false);
    assert_eq!((answer.status, answer.complete, answer.body.len()), (200, true, 10_000_000));
    assert_eq!(site.trouble("long") + site.trouble("quiet"), 1, "of the other");
    site.open("never");
}

#[test]
fn a_full_queue_is_waited_for_and_no_longer() {
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
    // The kernel takes some more than the backlog says.
    eventually("some are refused", || (trouble(&server, "unaccepted") >= 3).then_some(()));
    std::fs::write(&gate, "").expect("our own folder");
    let statuses: Vec<u16> = clients.iter_mut().map(|client| client.read(false).status).collect();
    let of = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(of(200) + of(504), 6, "{statuses:?}");
    assert!(of(200) >= 2, "{statuses:?}");
    server.wait_for_log(
        "php-fpm did not answer: it took no connection within fastcgi.connect_timeout",
    );
    assert_eq!(server.get("/old/b.php").status, 200);
}

#[test]
fn beyond_the_limit_requests_wait_for_a_connection() {
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
fn a_client_that_leaves_takes_its_request_with_it() {
    let site = Passing::start(3, |start| start);
    for what in ["wait", "flush"] {
        let mut client = site.server.client();
        client.send(&Request::get(&format!("/old/?do={what}&gate={}", site.gate("gate"))).bytes());
        eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
        client.abort();
        eventually("its connection is closed", || (site.in_use() == 0).then_some(()));
    }
    // One that takes nothing holds php-fpm up, and is cut off in the end.
    let mut slow = site.server.client();
    slow.send(&Request::get("/old/?do=long").bytes());
    eventually("it is at php-fpm", || (site.in_use() == 1).then_some(()));
    slow.abort();
    eventually("its connection is closed", || (site.in_use() == 0).then_some(()));
    site.open("gate");
}

#[test]
fn heads_have_a_limit() {
    let site = Passing::start(2, |start| start);
    let answer = site.get("/old/?do=many");
    assert_eq!((answer.status, site.trouble("head")), (502, 1));
    assert_eq!(site.get("/old/b.php").status, 200);
}

#[test]
fn what_php_fpm_says_is_in_the_log() {
    let site = Passing::start(2, |start| start);
    assert_eq!(site.get("/old/?do=log").text(), "logged");
    site.server.wait_for_log("by the script");
    let log = site.server.log();
    assert!(log.contains("php-fpm says: PHP message: said"), "{log}");
}

#[test]
fn one_that_is_not_there_is_told_of() {
    let root = site();
    let start = server(root.path(), "unix:/nowhere/fpm.sock");
    let server = start.args(["--admin", "127.0.0.1:0"]).start();
    let answer = server.get("/old/");
    assert_eq!((answer.status, trouble(&server, "unreachable")), (502, 1));
    server.wait_for_log("php-fpm did not answer: it cannot be reached");
    assert!(server.log().contains("upstream=unix:/nowhere/fpm.sock"), "{}", server.log());
    assert_eq!(server.get("/").text(), "new /");
    let admin = server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    let metrics = Client::connect(admin.expect("an address")).get("/metrics").text();
    for sample in [
        "samovar_fastcgi_passes_total 1",
        "samovar_fastcgi_passes_open 0",
        "samovar_fastcgi_pass_troubles_total{reason=\"unreachable\"} 1",
        "samovar_fastcgi_pass_troubles_total{reason=\"closed\"} 0",
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
}
