//! Descriptors run out: new connections wait, idle ones are closed, and no request fails.

use crate::faults::stage::{app, is_hello};
use samovar_testkit::Server;
use samovar_testkit::http::{Client, Request};

/// Permits 152 connections.
const HARD: u64 = 256;

/// Each thread of the front needs some descriptors, and closes only its own idle connections.
const ONE_THREAD: [&str; 2] = ["--front-threads", "1"];

/// Clients that have sent one request each, and keep their connections open.
fn idle_clients(server: &Server, count: usize) -> Vec<Client> {
    let client = |_| {
        let mut client = server.client();
        assert!(is_hello(&client.get("/hello")));
        client
    };
    (0..count).map(client).collect()
}

#[test]
fn clients_beyond_descriptor_limit_are_served() {
    let server = app().workers(2).args(ONE_THREAD).open_files(64, HARD).start();
    assert!(server.log().contains("the limit of open files allows only 152 connections"));
    let idle = idle_clients(&server, 300);
    let connections = server.status()["connections"].as_u64().expect("a number");
    assert!(connections <= 152, "{connections}");
    assert!(is_hello(&server.get("/hello")), "a newcomer, while 300 are idle");
    server.reload().expect("there are descriptors left for a second generation");
    assert!(is_hello(&server.get("/hello")));
    drop(idle);
    server.stop();
}

#[test]
fn longest_idle_connection_is_closed_for_new_one() {
    let server = app().workers(2).args(ONE_THREAD).args(["--connections-max", "20"]).start();
    let mut oldest = idle_clients(&server, 1).remove(0);
    let mut others = idle_clients(&server, 19);
    // They become old enough to be closed, but stay younger than the oldest.
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    for client in &mut others[..18] {
        assert!(is_hello(&client.get("/hello")));
    }
    assert!(is_hello(&server.get("/hello")), "room was made");
    assert!(oldest.is_closed());
    for client in &mut others[..18] {
        let response = client.try_request(&Request::get("/hello"));
        assert!(response.as_ref().is_ok_and(is_hello), "{response:?}");
    }
}

#[test]
fn open_file_responses_leave_descriptors_for_reload() {
    let start = app().workers(1);
    let site = start.folder().join("site");
    std::fs::create_dir(&site).expect("ours");
    std::fs::write(site.join("big.bin"), vec![7; 20_000_000]).expect("room");
    std::fs::write(site.join("index.php"), "<?php echo 'hello from ', getmypid();").expect("room");
    // Enough for 16 connections.
    let server = Server::at(&site).workers(1).args(ONE_THREAD).open_files(100, 100).start();
    let mut holders: Vec<_> = (0..15).map(|_| server.client()).collect();
    for client in &mut holders {
        client.send(&Request::get("/big.bin").bytes());
        assert_eq!(client.read_head().expect("a head").status, 200);
    }
    assert!(is_hello(&server.get("/")));
    server.reload().expect("there are descriptors left for a second generation");
    assert!(is_hello(&server.get("/")));
    assert!(!server.log().contains("cannot"), "{}", server.log());
    drop(holders);
    server.stop();
}

#[test]
fn too_low_descriptor_limit_prevents_start() {
    let (code, log) = app().open_files(70, 70).refuse();
    assert_eq!(code, Some(1));
    assert!(log.contains("70 descriptors are too few to serve\nhint: raise"), "{log}");
}

#[test]
fn php_keeps_original_descriptor_limit() {
    let php =
        "<?php $is = posix_getrlimit(); echo $is['soft openfiles'], ' ', $is['hard openfiles'];";
    let server = Server::script(php).workers(1).open_files(300, 6_000).start();
    assert_eq!(server.get("/").text(), "300 6000");
}
