//! What strangers and full disks can do to the figures: nothing that a request would notice.

use super::{page, sample, udp_port};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually, may_mount};
use std::net::UdpSocket;

#[test]
fn invented_urls_fill_the_routes_and_no_more() {
    let server = page("[insight]\nroutes_max = 50\n").start();
    let mut client = server.client();
    for n in 0..3_000 {
        assert_eq!(client.request(&Request::get(&format!("/x{n}y"))).status, 200);
    }
    eventually("all are counted", || {
        let of_others = "samovar_http_requests_total{route=\"(other)\",class=\"2xx\"}";
        (sample(&server, of_others) == 2_950).then_some(())
    });
    assert_eq!(sample(&server, "samovar_routes"), 50);
    assert_eq!(sample(&server, "samovar_routes_beyond_total"), 2_950);
    server.stop();
}

#[test]
fn a_flood_of_garbage_for_pinba_is_counted_and_requests_go_on() {
    let port = udp_port();
    let server = page(&format!("[insight]\npinba_listen = '127.0.0.1:{port}'\n")).start();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let mut client = server.client();
    for n in 0..20_000_u32 {
        let garbage = [n.to_le_bytes(); 40].concat();
        // What the kernel has no room for is not sent.
        let _ = stranger.send_to(&garbage[..(n % 160) as usize], ("127.0.0.1", port));
        if n % 500 == 0 {
            assert_eq!(client.request(&Request::get("/page")).status, 200);
        }
    }
    let fate = |fate| {
        sample(
            &server,
            &format!("samovar_insight_records_total{{way=\"pinba_in\",fate=\"{fate}\"}}"),
        )
    };
    eventually("garbage is refused", || (fate("refused") > 100).then_some(()));
    assert_eq!(sample(&server, "samovar_insight_requests_lost_total"), 0);
    server.stop();
}

#[test]
fn a_history_on_a_full_disk_says_so_and_nobody_waits() {
    const DISK_BYTES: u64 = 2 << 20;
    if may_mount().is_err() {
        return;
    }
    let server = Server::script("<?php echo 1;")
        .disk("small", DISK_BYTES)
        .config("admin = '127.0.0.1:0'\n[insight]\nstore = 'small/history.sqlite'\n")
        .start();
    eventually("the history is there", || {
        server.disk("small").path("history.sqlite").exists().then_some(())
    });
    server.disk("small").fill();
    let mut client = server.client();
    for n in 0..500 {
        assert_eq!(client.request(&Request::get(&format!("/x{n}y"))).status, 200);
    }
    // The last minute is written at the end, or said to be lost.
    let log = server.stop();
    assert!(log.contains("history"), "{log}");
}
