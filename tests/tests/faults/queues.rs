//! Queues that are full, slow, or hold what nobody wants any more.

use crate::stage::{
    app, assert_serves, create, file_of, is_hello, wait_for_busy, wait_for_in_flight,
};
use samovar_testkit::eventually;
use samovar_testkit::http::Request;

#[test]
fn a_queued_request_whose_client_has_gone_is_never_run() {
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
fn a_full_queue_is_503_at_once_and_the_rest_is_served() {
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
    let answers: Vec<_> = clients.iter_mut().map(|client| client.read(false)).collect();
    let waited = answers.iter().filter(|a| (a.status, a.text().as_str()) == (200, "waited"));
    assert_eq!(waited.count() as u64, kept);
    for shed in answers.iter().filter(|a| a.status != 200) {
        assert_eq!((shed.status, shed.header("retry-after")), (503, Some("1")));
        assert!(shed.complete && shed.header("connection") != Some("close"), "{shed:?}");
    }
    assert!(clients.iter_mut().all(|client| is_hello(&client.get("/hello"))));
    server.stop();
}

#[test]
fn a_request_that_no_worker_takes_in_time_is_503() {
    let server = app().workers(1).args(["--queue-timeout", "300ms"]).start();
    let go = file_of(&server, "go");
    let mut first = server.client();
    first.send(&Request::get(&format!("/wait?file={}", go.display())).bytes());
    wait_for_busy(&server);
    assert_eq!(server.get("/hello").status, 503);
    create(&go);
    assert_eq!(first.read(false).text(), "waited", "it is not the slow one that is shed");
}
