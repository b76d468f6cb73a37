//! Descriptors that run out: connections wait, are closed when they are idle, and nothing else notices.

use crate::faults::stage::{app, is_hello};
use samovar_testkit::Server;
use samovar_testkit::http::{Client, Request};

/// Allows 152 connections.
const HARD: u64 = 256;

/// Each thread of the front has some descriptors of its own, and closes those who are idle in it.
const ONE_THREAD: [&str; 2] = ["--front-threads", "1"];

/// Clients that have asked once, and stay.
fn idle_clients(server: &Server, count: usize) -> Vec<Client> {
    let client = |_| {
        let mut client = server.client();
        assert!(is_hello(&client.get("/hello")));
        client
    };
    (0..count).map(client).collect()
}

#[test]
fn more_clients_than_descriptors_are_all_served() {
    let server = app().workers(2).args(ONE_THREAD).open_files(64, HARD).start();
    assert!(server.log().contains("there are descriptors for 152 connections only"));
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
fn who_has_been_idle_for_longest_makes_room() {
    let server = app().workers(2).args(ONE_THREAD).args(["--connections-max", "20"]).start();
    let mut oldest = idle_clients(&server, 1).remove(0);
    let mut others = idle_clients(&server, 19);
    // They become old enough to be closed, but less so.
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    for client in &mut others[..18] {
        assert!(is_hello(&client.get("/hello")));
    }
    assert!(is_hello(&server.get("/hello")), "room was made");
    assert!(oldest.is_closed());
    for client in &mut others[..18] {
        let answer = client.try_request(&Request::get("/hello"));
        assert!(answer.as_ref().is_ok_and(is_hello), "{answer:?}");
    }
}

#[test]
fn clients_that_hold_files_leave_descriptors_for_others() {
    let start = app().workers(1);
    let site = start.folder().join("site");
    std::fs::create_dir(&site).expect("ours");
    std::fs::write(site.join("big.bin"), vec![7; 20_000_000]).expect("room");
    std::fs::write(site.join("index.php"), "<?php echo 'hello from ', getmypid();").expect("room");
    // For 16 connections.
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
fn too_few_descriptors_are_an_error_at_the_start() {
    let (code, log) = app().open_files(70, 70).refuse();
    assert_eq!(code, Some(1));
    assert!(log.contains("cannot serve with 70 descriptors\nhint: raise"), "{log}");
}

#[test]
fn php_has_the_limit_that_the_server_was_started_with() {
    let php =
        "<?php $is = posix_getrlimit(); echo $is['soft openfiles'], ' ', $is['hard openfiles'];";
    let server = Server::script(php).workers(1).open_files(300, 6_000).start();
    assert_eq!(server.get("/").text(), "300 6000");
}
