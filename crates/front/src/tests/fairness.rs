//! Tests of the queue that is fair by client.

use super::*;
use std::net::Ipv4Addr;

/// A server whose only worker records the clients that it serves, and waits in `/gate` until the
/// test releases it.
fn gated(change: impl FnOnce(&mut Settings)) -> (Server, Sender<()>, Arc<Mutex<Vec<String>>>) {
    let (go, gate) = channel::<()>();
    let (gate, ran) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&ran);
    let server = Server::with(64, |settings| {
        settings.limits.client_share = 90;
        settings.trusted_proxies = vec!["127.0.0.1/32".parse().expect("a network")];
        change(settings);
    })
    .work(move |job| {
        noted.lock().unwrap().push(job.field("remote_addr"));
        if job.field("target") == "/gate" {
            let _ = gate.lock().unwrap().recv_timeout(WATCHDOG);
        }
        job.respond("ok")
    });
    (server, go, ran)
}

fn ask(server: &Server, target: &str, from: u8) -> Client {
    let mut client = server.client();
    let from = Ipv4Addr::new(203, 0, 113, from);
    let request = format!("GET {target} HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: {from}\r\n\r\n");
    client.send(request.as_bytes());
    client
}

/// Occupies the worker.
fn close_gate(server: &Server, ran: &Mutex<Vec<String>>) -> Client {
    let gate = ask(server, "/gate", 1);
    until("it runs", || ran.lock().unwrap().len() == 1);
    gate
}

fn wait_for(server: &Server, in_flight: u64) {
    until("all wait", || server.handle.counters().pool.in_flight == in_flight);
}

/// One HTTP/2 connection carries all requests that wait, so one thread orders them. How soon a
/// second thread gets a core would otherwise decide about the order.
#[test]
fn request_of_quiet_client_overtakes_queue_of_greedy_one() {
    for threads in [1, 2] {
        let (server, go, ran) = gated(|settings| settings.front_threads = threads);
        let _gate = close_gate(&server, &ran);
        let mut proxy = Client::begin(&server, 1 << 16);
        (0..40).for_each(|n| proxy.ask_for_client(2 * n + 1, 9));
        wait_for(&server, 41);
        proxy.ask_for_client(81, 10);
        wait_for(&server, 42);
        go.send(()).unwrap();
        proxy.ends_of(41);
        let order = ran.lock().unwrap().clone();
        assert_eq!(order.len(), 42);
        let at = order.iter().position(|client| client == "203.0.113.10").expect("it ran");
        assert!(at <= 12, "its place was {at} of {}", order.len());
    }
}

#[test]
fn clients_of_fair_queue_take_turns() {
    let (server, go, ran) = gated(|_| {});
    let _gate = close_gate(&server, &ran);
    let mut all: Vec<_> = (0..45).map(|n| ask(&server, "/", if n < 30 { 7 } else { 8 })).collect();
    wait_for(&server, 46);
    go.send(()).unwrap();
    assert!(all.iter_mut().all(|client| client.reply(false).status == 200));
    let order = ran.lock().unwrap().clone();
    // Some requests of the first client were in the ring before the second one came.
    let second = order[..40].iter().filter(|client| *client == "203.0.113.8").count();
    assert!(second >= 13, "{second} of 15 are among the first 40");
}

#[test]
fn requests_of_fair_queue_expire() {
    let (server, go, ran) = gated(|settings| settings.timeouts.queue = Duration::from_millis(300));
    let _gate = close_gate(&server, &ran);
    let mut waiting: Vec<_> = (0..20).map(|_| ask(&server, "/", 9)).collect();
    assert!(waiting.iter_mut().all(|client| client.reply(false).status == 503));
    go.send(()).unwrap();
    until("no slot is in use", || server.handle.counters().pool.slots_in_use == 0);
}

#[test]
fn withdrawn_requests_leave_fair_queue() {
    let (server, go, ran) = gated(|_| {});
    let _gate = close_gate(&server, &ran);
    let gone: Vec<_> = (0..20).map(|_| ask(&server, "/", 9)).collect();
    wait_for(&server, 21);
    drop(gone);
    wait_for(&server, 1);
    go.send(()).unwrap();
    for from in 9..12 {
        assert_eq!(ask(&server, "/", from).reply(false).status, 200);
    }
    until("no slot is in use", || server.handle.counters().pool.slots_in_use == 0);
}

#[test]
fn worker_deaths_leave_no_request_in_fair_queue() {
    let server = Server::with(16, |settings| {
        settings.limits.client_share = 50;
        settings.limits.retries_max = 1;
    })
    .work(|job| match job.field("target").as_str() {
        "/die" => After::Die,
        _ => job.respond("ok"),
    });
    for _ in 0..5 {
        let ask = |n: usize| {
            let mut client = server.client();
            let target = if n.is_multiple_of(2) { "/die" } else { "/" };
            client.send(format!("GET {target} HTTP/1.1\r\nHost: t\r\n\r\n").as_bytes());
            client
        };
        let mut all: Vec<_> = (0..8).map(ask).collect();
        for (n, client) in all.iter_mut().enumerate() {
            let expected = if n.is_multiple_of(2) { 502 } else { 200 };
            assert_eq!(client.reply(false).status, expected);
        }
    }
}
