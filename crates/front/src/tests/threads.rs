//! Tests of a front with several threads: distribution of connections, order of requests, and
//! limits that apply to all threads together.

use super::*;
use samovar_ring::WorkerState;

const THREADS: usize = 3;

fn server(change: impl FnOnce(&mut Settings)) -> Server {
    Server::with(64, |settings| {
        settings.front_threads = THREADS;
        change(settings);
    })
}

fn get(client: &mut Client, target: &str) {
    client.send(format!("GET {target} HTTP/1.1\r\nHost: t\r\n\r\n").as_bytes());
}

/// Number of requests that no worker has taken.
fn queued(server: &Server) -> u64 {
    Supervision::new(server.ring.clone()).queued(Lane::App)
}

/// Adds a worker that records the requests it runs and waits in `/gate` until the test releases it.
fn gated(server: Server) -> (Server, Sender<()>, Arc<Mutex<Vec<String>>>) {
    let (go, gate) = channel::<()>();
    let (gate, ran) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&ran);
    let server = server.work(move |job| {
        let target = job.field("target");
        noted.lock().unwrap().push(target.clone());
        if target == "/gate" {
            let _ = gate.lock().unwrap().recv_timeout(WATCHDOG);
        }
        job.respond(&target)
    });
    (server, go, ran)
}

#[test]
fn connections_are_distributed_and_counters_summed() {
    let server = server(|_| {}).work(|job| job.respond(&job.field("target")));
    let mut clients: Vec<_> = (0..2 * THREADS).map(|_| server.client()).collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            get(client, &format!("/{round}/{number}"));
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.reply(false).text(), format!("/{round}/{number}"));
        }
    }
    assert_eq!(server.handle.connections_by_thread(), [2; THREADS]);
    until("all are over", || server.handle.counters().pool.in_flight == 0);
    let counters = server.handle.counters();
    assert_eq!((counters.pool.requests_total, counters.server.connections_total), (18, 6));
    assert_eq!((counters.server.connections, counters.pool.responses_5xx_total), (6, 0));
    drop(clients);
    until("all have gone", || server.handle.counters().server.connections == 0);
}

#[test]
fn requests_of_all_threads_run_in_arrival_order() {
    let (server, go, ran) = gated(server(|_| {}));
    let mut clients: Vec<_> = (0..12).map(|_| server.client()).collect();
    get(&mut clients[0], "/gate");
    until("it runs", || ran.lock().unwrap().len() == 1);
    for (number, client) in clients.iter_mut().enumerate().skip(1) {
        get(client, &format!("/{number}"));
        until("it is queued", || queued(&server) == number as u64);
    }
    go.send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.reply(false).status, 200);
    }
    let expected: Vec<_> = (1..12).map(|number| format!("/{number}")).collect();
    assert_eq!(ran.lock().unwrap()[1..], expected);
    let threads = server.handle.connections_by_thread();
    assert!(threads.iter().all(|count| *count == 4), "{threads:?}");
}

#[test]
fn queue_limit_applies_to_all_threads_together() {
    let (server, go, ran) = gated(server(|settings| settings.limits.queue_max = 2));
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    get(&mut clients[0], "/gate");
    until("it runs", || ran.lock().unwrap().len() == 1);
    for (number, client) in clients.iter_mut().enumerate().skip(1) {
        get(client, "/");
        until("it is queued", || queued(&server) == number as u64);
    }
    for _ in 0..THREADS {
        assert_eq!(server.get("/").status, 503);
    }
    assert_eq!(server.handle.counters().pool.rejected_total, THREADS as u64);
    go.send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.reply(false).status, 200);
    }
    // A place that is released is available to all threads.
    for _ in 0..THREADS {
        assert_eq!(server.get("/").status, 200);
    }
}

/// Independent of which threads are idle and asleep.
#[test]
fn queue_depth_counts_waiting_request_of_any_thread() {
    for (runs, waits) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
        let (server, go, ran) = gated(server(|_| {}));
        let mut clients: Vec<_> = (0..THREADS).map(|_| server.client()).collect();
        for client in &mut clients {
            get(client, "/");
            assert_eq!(client.reply(false).text(), "/");
        }
        assert_eq!(server.handle.connections_by_thread(), [1; THREADS]);
        get(&mut clients[runs], "/gate");
        // An earlier request may still be counted as in flight, so that counter is not used here.
        until("the worker has it", || ran.lock().unwrap().iter().any(|target| target == "/gate"));
        get(&mut clients[waits], "/");
        until("it is told of", || server.handle.counters().pool.queue_depth == 1);
        go.send(()).unwrap();
        assert_eq!(clients[waits].reply(false).text(), "/");
        until("nobody waits", || server.handle.counters().pool.queue_depth == 0);
    }
}

#[test]
fn withdrawn_requests_do_not_fill_queue() {
    let (server, go, ran) = gated(server(|settings| settings.limits.queue_max = 2));
    let mut first = server.client();
    get(&mut first, "/gate");
    until("it runs", || ran.lock().unwrap().len() == 1);
    // Their entries stay in the ring's queue while no worker takes requests.
    for gone in 1..8 {
        let mut client = server.client();
        get(&mut client, "/gone");
        until("it is queued", || queued(&server) == gone);
        drop(client);
        until("it has gone", || server.handle.counters().pool.in_flight == 1);
    }
    let mut late = server.client();
    get(&mut late, "/late");
    until("it waits", || queued(&server) == 8);
    go.send(()).unwrap();
    assert_eq!((first.reply(false).status, late.reply(false).status), (200, 200));
    assert_eq!(*ran.lock().unwrap(), ["/gate", "/late"]);
}

#[test]
fn client_connection_limit_applies_to_all_threads_together() {
    const MOST: usize = 4;
    let server = server(|settings| settings.limits.client_connections_max = MOST)
        .work(|job| job.respond("ok"));
    for _ in 0..2 {
        let mut clients: Vec<_> = (0..MOST).map(|_| server.client()).collect();
        for client in &mut clients {
            get(client, "/");
            assert_eq!(client.reply(false).status, 200);
        }
        let before = server.handle.counters().server.connections_refused_total;
        for more in 1..=THREADS as u64 {
            let _refused = server.client();
            let refused = || server.handle.counters().server.connections_refused_total - before;
            until("it is refused", || refused() == more);
        }
        drop(clients);
        until("all have gone", || server.handle.counters().server.connections == 0);
    }
}

#[test]
fn full_server_closes_idle_connection_of_another_thread() {
    let server =
        server(|settings| settings.limits.connections_max = THREADS).work(|job| job.respond("ok"));
    let mut idle: Vec<_> = (0..THREADS).map(|_| server.client()).collect();
    for client in &mut idle {
        get(client, "/");
        assert_eq!(client.reply(false).status, 200);
    }
    assert_eq!(server.handle.connections_by_thread(), [1; THREADS]);
    // There is room for each client only after another connection is closed.
    for _ in 0..2 * THREADS {
        let mut client = server.client();
        get(&mut client, "/");
        assert_eq!(client.reply(false).status, 200);
        assert!(server.handle.counters().server.connections <= THREADS as u64);
    }
}

#[test]
fn worker_death_is_reported_to_thread_of_its_request() {
    let server = server(|_| {}).work(|job| match job.field("target").as_str() {
        "/die" => After::Die,
        target => job.respond(target),
    });
    let mut clients: Vec<_> = (0..2 * THREADS).map(|_| server.client()).collect();
    for client in &mut clients {
        client.send(b"POST /die HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.reply(false).status, 502);
        get(client, "/on");
        assert_eq!(client.reply(false).text(), "/on");
    }
}

#[test]
fn drain_of_all_threads_finishes_requests_in_flight() {
    let (mut server, go, ran) = gated(server(|_| {}));
    let mut clients: Vec<_> = (0..2 * THREADS).map(|_| server.client()).collect();
    get(&mut clients[0], "/gate");
    until("it runs", || ran.lock().unwrap().len() == 1);
    for (number, client) in clients.iter_mut().enumerate().skip(1) {
        get(client, "/");
        until("it is queued", || queued(&server) == number as u64);
    }
    assert!(server.handle.is_ready());
    server.handle.drain();
    until("nothing is accepted", || TcpStream::connect(server.address).is_err());
    go.send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.reply(false).status, 200);
    }
    server.stop();
    assert!(!server.handle.is_ready());
    let counters = server.handle.counters();
    assert_eq!((counters.server.connections, counters.pool.in_flight), (0, 0));
}

#[test]
fn new_settings_apply_to_all_threads() {
    let server = server(|_| {}).work(|job| job.respond(&job.field("server_name")));
    let mut clients: Vec<_> = (0..THREADS).map(|_| server.client()).collect();
    let settings = || {
        let mut settings = Settings::defaults(server.root.path()).unwrap();
        settings.deny_files = vec!["secret.txt".into()];
        crate::ValidSettings::new(settings).unwrap()
    };
    server.file("secret.txt", b"x");
    for client in &mut clients {
        get(client, "/secret.txt");
        assert_eq!(client.reply(false).status, 200);
    }
    server.handle.switch(&settings());
    assert!(server.handle.wait_for_switch(WATCHDOG));
    for client in &mut clients {
        get(client, "/secret.txt");
        assert_ne!(client.reply(false).text(), "x");
    }
}

#[test]
fn long_responses_are_streamed_on_each_thread() {
    const BYTES: usize = 600_000;
    let server = server(|_| {})
        .work(|job| {
            let body = job.body().map_or(0, |body| body.len());
            job.head(200, "");
            job.write(&pattern(BYTES));
            job.write(body.to_string().as_bytes());
            After::Finish
        })
        .work(|job| job.respond("other"));
    let mut clients: Vec<_> = (0..THREADS).map(|_| server.client()).collect();
    for client in &mut clients {
        let head = "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 300000\r\n\r\n";
        client.send(head.as_bytes());
        client.send(&pattern(300_000));
    }
    for client in &mut clients {
        let text = client.reply(false).body;
        assert!(text == b"other" || text.len() == BYTES + 6, "{}", text.len());
        get(client, "/again");
        assert_eq!(client.reply(false).status, 200);
    }
    let workers = Supervision::new(server.ring.clone());
    until("all workers rest", || {
        (0..2).filter_map(|at| workers.report(at)).all(|one| one.state == WorkerState::Idle)
    });
}

/// For any of the threads: no connection may remain in a thread that no longer handles deadlines
/// and the ring.
#[test]
fn panic_of_sweep_in_one_thread_ends_all_threads() {
    for breaking in 0..THREADS {
        let mut server = server(|_| {}).work(|job| job.respond(&job.field("target")));
        let mut clients: Vec<_> = (0..THREADS).map(|_| server.client()).collect();
        for client in &mut clients {
            get(client, "/");
            assert_eq!(client.reply(false).text(), "/");
        }
        assert_eq!(server.handle.connections_by_thread(), [1; THREADS]);
        get(&mut clients[breaking], "/break");
        for client in &mut clients {
            let mut rest = Vec::new();
            // The connection is reset or closed.
            let _ = client.stream.read_to_end(&mut rest);
        }
        let front = server.front.take().expect("it runs");
        let why = front.join().expect_err("it ends with an error");
        let why = why.downcast_ref::<String>().expect("the message of `unwrap`");
        assert!(
            why.contains("a required task of the front panicked")
                || why.contains("another front thread ended"),
            "{why}"
        );
    }
}
