//! Hostile clients and full disks affect the statistics only, never a request.

use super::{page, sample, udp_port};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually, may_mount};
use std::net::UdpSocket;

#[test]
fn random_urls_fill_route_table_up_to_its_limit() {
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
    assert_eq!(sample(&server, "samovar_requests_over_routes_max_total"), 2_950);
    server.stop();
}

#[test]
fn unrouted_404s_share_one_route() {
    let server = page("[insight]\nroutes_max = 50\n").start();
    let mut client = server.client();
    for n in 0..200 {
        assert_eq!(client.request(&Request::get(&format!("/x{n}y?status=404"))).status, 404);
    }
    for path in ["/search", "/checkout"] {
        assert_eq!(client.request(&Request::get(path)).status, 200);
    }
    for (route, class, requests) in [
        ("(not found)", "4xx", 200),
        ("index.php /search", "2xx", 1),
        ("index.php /checkout", "2xx", 1),
    ] {
        eventually(&format!("{route} is counted"), || {
            let name =
                format!("samovar_http_requests_total{{route=\"{route}\",class=\"{class}\"}}");
            (sample(&server, &name) == requests).then_some(())
        });
    }
    assert_eq!(server.status()["routes_full"], false);
    server.stop();
}

#[test]
fn pinba_garbage_flood_is_counted_and_requests_are_served() {
    let port = udp_port();
    let server = page(&format!("[insight]\npinba_listen = '127.0.0.1:{port}'\n")).start();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let mut client = server.client();
    for n in 0..20_000_u32 {
        let garbage = [n.to_le_bytes(); 40].concat();
        // If the kernel's buffer is full, the packet is not sent.
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
    assert_eq!(sample(&server, "samovar_insight_requests_dropped_total"), 0);
    server.stop();
}

#[test]
fn history_on_full_disk_is_reported_and_requests_are_served() {
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
    // The last minute is written at the end, or logged as lost.
    let log = server.stop();
    assert!(log.contains("history"), "{log}");
}
