//! Pinba's packets, sent to a socket and received from the extension itself.

use crate::stage::{MS, Stage, report, request};
use samovar_insight::pinba::Sender;
use samovar_insight::pinba::listener::{PinbaIn, PinbaInOptions};
use samovar_insight::pinba::sender::{PinbaOut, PinbaOutOptions};
use samovar_insight::{Finished, Model, Numbers, Options};
use samovar_testkit::protoc::{self, PINBA};
use samovar_testkit::{eventually, php};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const PACKET: &str = r#"
    hostname: "fpm1" server_name: "shop.example" script_name: "/cart.php?token=abc"
    request_count: 4 document_size: 1000 memory_peak: 2097152
    request_time: 0.5 ru_utime: 0.25 ru_stime: 0.125 status: 500
    timer_hit_count: 3 timer_value: 0.25 timer_tag_count: 1 timer_tag_name: 0 timer_tag_value: 1
    dictionary: "group" dictionary: "mysql" dictionary: "country" dictionary: "de"
    tag_name: 2 tag_value: 3
"#;

fn sending_to(server: &str) -> Stage {
    let sender = Sender { host: "web1".into(), server: "shop.example".into() };
    let options = PinbaOutOptions { server: server.to_owned(), sender };
    let out = PinbaOut::start(options).expect("sockets");
    Stage::new(Options { sinks: vec![Box::new(out)], ..Options::default() })
}

fn listening(per_second_max: u32) -> (Stage, SocketAddr, UdpSocket) {
    let options = PinbaInOptions { per_second_max, ..PinbaInOptions::new("127.0.0.1:0") };
    let listener = PinbaIn::bind(&options).expect("a port");
    let address = listener.address().expect("an address");
    let stage = Stage::new(Options { pinba_in: Some(listener), ..Options::default() });
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
    client.connect(address).expect("UDP connects");
    (stage, address, client)
}

#[test]
fn sent_packets_are_readable_by_protoc() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(samovar_testkit::WATCHDOG)).expect("a time-out");
    let port = server.local_addr().expect("an address").port();
    let mut stage = sending_to(&format!("127.0.0.1:{port}"));
    // PHP did not run for a static file.
    stage.serve(&Finished { path: "/logo.svg", ..Finished::default() }, 1);
    stage.serve(&request(&report()), 1);
    let mut buffer = vec![0; 65_536];
    let length = server.recv(&mut buffer).expect("a packet");
    let text = protoc::decode(PINBA, &buffer[..length]);
    for expected in [
        "hostname: \"web1\"\n",
        "server_name: \"shop.example\"\n",
        "script_name: \"shop_show\"\n",
        "request_count: 1\n",
        "document_size: 1234\n",
        "memory_peak: 2097152\n",
        "request_time: 0.5\n",
        "ru_utime: 0.125\n",
        "status: 404\n",
        "timer_hit_count: 2\n",
        "timer_value: 0.25\n",
        "dictionary: \"mysql\"\n",
        "dictionary: \"(redacted)\"\n",
        "timer_ru_utime: 0.125\n",
        "tag_name: 4\n",
    ] {
        assert!(text.contains(expected), "{expected} is not in {text}");
    }
    assert_eq!(stage.fates("pinba_out"), (1, 0, 0));
    stage.finish();
}

#[test]
fn packets_are_lost_until_server_name_is_resolved() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = server.local_addr().expect("an address").port();
    let mut stage = sending_to(&format!("localhost:{port}"));
    // Packets are lost until the name is resolved.
    eventually("packets are sent", || {
        stage.serve(&request(&[]), 1);
        (stage.fates("pinba_out").0 > 0).then_some(())
    });
    stage.finish();
    let mut nowhere = sending_to("nowhere.invalid:30002");
    nowhere.serve(&request(&[]), 3);
    assert_eq!(nowhere.fates("pinba_out"), (0, 3, 0));
    nowhere.finish();
}

#[test]
fn received_packets_are_requests_of_other_machines() {
    let (mut stage, _, client) = listening(1_000);
    let within = format!("requests {{ {PACKET} }} requests {{ {PACKET} }}");
    let packet = protoc::encode(PINBA, &format!("{PACKET} {within}"));
    stage.serve(&request(&[]), 1);
    client.send(&packet).expect("UDP sends");
    eventually("packets are taken", || (stage.fates("pinba_in") == (3, 0, 0)).then_some(()));
    {
        let figures = stage.insight.figures();
        let route = figures.route("/cart.php").expect("its route, without the query string");
        assert_eq!((route.costs.requests, route.costs.elsewhere, route.costs.errors()), (3, 3, 3));
        assert_eq!((route.costs.cpu.sum_ns(), route.costs.wall.sum_ns()), (1_125 * MS, 1_500 * MS));
        assert_eq!(route.costs.queue.count(), 0);
        let timers: Vec<_> = route.timers().map(|(tags, t)| (tags, t.hits, t.wall_ns)).collect();
        assert_eq!(timers, [(vec![("group", "mysql")], 9, 750 * MS)]);
        assert_eq!(figures.of_model(Model::Elsewhere).requests, 3);
        assert_eq!(figures.total().requests, 4);
        let sources: Vec<_> = figures.sources().collect();
        let [(host, server, source)] = &sources[..] else { panic!("{sources:?}") };
        assert_eq!((*host, *server), ("fpm1", "shop.example"));
        assert_eq!((source.requests, source.errors), (3, 3));
        assert!(source.last_seen > 0);
    }
    stage.finish();
}

#[test]
fn packets_of_the_extension_are_accepted() {
    const SCRIPT: &str = r#"
        pinba_script_name_set("checkout");
        pinba_server_name_set("old.example");
        pinba_hostname_set("fpm7");
        $timer = pinba_timer_start(["group" => "mysql", "password" => "hunter2"]);
        pinba_timer_stop($timer);
        pinba_timer_add(["group" => "curl"], 0.25);
        pinba_tag_set("country", "de");
        $memory = str_repeat("x", 9 << 20);
    "#;
    if !has_extension() {
        return;
    }
    let (mut stage, address, _) = listening(1_000);
    let output = Command::new(php::program("php"))
        .args(["-n", "-d", "extension=pinba.so", "-d", "pinba.enabled=1"])
        .args(["-d", &format!("pinba.server={address}"), "-r", SCRIPT])
        .output()
        .expect("PHP's command line is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.is_empty(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr),
    );
    eventually("the packet is taken", || (stage.fates("pinba_in") == (1, 0, 0)).then_some(()));
    {
        let figures = stage.insight.figures();
        let route = figures.route("checkout").expect("the name that the script gave itself");
        assert!(route.costs.wall.sum_ns() > 0);
        assert!(route.costs.peak_bytes_max > 9 << 20, "{}", route.costs.peak_bytes_max);
        let mut timers: Vec<_> = route.timers().map(|(tags, t)| (tags, t.hits)).collect();
        timers.sort();
        let secret = vec![("group", "mysql"), ("password", "(redacted)")];
        assert_eq!(timers, [(vec![("group", "curl")], 1), (secret, 1)]);
        let added = route.timers().find(|(tags, _)| tags[0].1 == "curl");
        assert_eq!(added.map(|(_, timer)| timer.wall_ns), Some(250 * MS));
        let tags: Vec<_> = figures.sources().map(|(host, server, _)| (host, server)).collect();
        assert_eq!(tags, [("fpm7", "old.example")]);
    }
    stage.finish();
}

/// Debian has the extension for its PHP 8.2. With other versions the test is skipped, with a
/// message.
fn has_extension() -> bool {
    let config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".to_owned());
    let output = Command::new(config).arg("--extension-dir").output().expect("php-config is there");
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_there = Path::new(&folder).join("pinba.so").exists();
    if !is_there {
        assert_ne!(php::version(), "8.2", "no pinba.so\nhint: scripts/setup.sh test installs it");
        eprintln!("left out: PHP {} has no pinba.so", php::version());
    }
    is_there
}

#[test]
fn flood_is_accepted_up_to_limit_and_listener_survives() {
    const LIMIT: u32 = 50;
    let (mut stage, _, client) = listening(LIMIT);
    let packet = protoc::encode(PINBA, PACKET);
    let begun = Instant::now();
    for n in 0..20_000_u32 {
        let garbage = n.to_le_bytes();
        let _ = client.send(if n % 2 == 0 { &packet } else { &garbage });
    }
    let (passed, _, refused) = eventually("some are beyond the limit", || {
        Some(stage.fates("pinba_in")).filter(|(_, lost, _)| *lost > 0)
    });
    let seconds = begun.elapsed().as_secs() + 2;
    assert!(passed + refused <= u64::from(LIMIT) * seconds, "{passed} {refused} in {seconds} s");
    assert!(passed > 0 && refused > 0, "{passed} {refused}");
    let later = protoc::encode(PINBA, &PACKET.replace("fpm1", "fpm2"));
    eventually("a packet after the flood is taken", || {
        let _ = client.send(&later);
        let figures = stage.insight.figures();
        figures.sources().any(|(host, ..)| host == "fpm2").then_some(())
    });
    stage.finish();
}

#[test]
fn empty_packets_are_rejected() {
    let (mut stage, _, client) = listening(1_000);
    // Field 100, which no packet has; then a packet with as many empty inner packets as fit.
    client.send(&[0xa0, 0x06, 0x01]).expect("UDP sends");
    eventually("it is refused", || (stage.fates("pinba_in").2 == 1).then_some(()));
    client.send(&[0x92, 0x01, 0x00].repeat(20_000)).expect("UDP sends");
    // The maximum number of inner packets, and the outer one.
    eventually("all are refused", || (stage.fates("pinba_in").2 == 1_002).then_some(()));
    client.send(&protoc::encode(PINBA, PACKET)).expect("UDP sends");
    eventually("the port is alive", || (stage.fates("pinba_in").0 == 1).then_some(()));
    assert_eq!(stage.insight.figures().sources().count(), 1);
    stage.finish();
}

#[test]
fn invented_senders_and_words_keep_memory_bounded() {
    let (mut stage, _, client) = listening(1_000_000);
    for n in 0..300 {
        let packet = invented(n);
        client.send(&packet).expect("UDP sends");
        // One after another: the kernel's buffer is not tested here.
        eventually("it is taken", || (stage.fates("pinba_in").0 > u64::from(n)).then_some(()));
    }
    {
        let figures = stage.insight.figures();
        let hosts: Vec<_> = figures.sources().map(|(host, ..)| host).collect();
        assert_eq!((hosts.len(), hosts.last()), (101, Some(&"(other)")));
        assert!(hosts.iter().all(|host| host.len() <= 255));
        let route = figures.route("/cart.php").expect("its route");
        assert!(route.timers().count() <= 65);
        assert!(route.timers().all(|(tags, _)| tags.iter().all(|(_, v)| v.len() <= 255)));
    }
    stage.finish();
}

/// Returns a packet with unique long names, encoded by hand because `protoc` is slow.
fn invented(n: u32) -> Vec<u8> {
    let long = "x".repeat(1_000);
    let text = |field: u8, text: &str| {
        let length = text.len() as u32;
        let head = [field << 3 | 2, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8];
        [&head[..], text.as_bytes()].concat()
    };
    let float = |field: u8| [&[field << 3 | 5][..], &0.5_f32.to_le_bytes()].concat();
    let number = |field: u8, value: u8| vec![field << 3, value];
    [
        text(1, &format!("fpm{n}{long}")),
        text(2, &format!("shop{long}")),
        vec![3 << 3 | 2, 9],
        b"/cart.php".to_vec(),
        number(4, 0),
        number(5, 0),
        number(6, 0),
        float(7),
        float(8),
        float(9),
        number(10, 1),
        float(11),
        number(12, 1),
        number(13, 0),
        number(14, 1),
        vec![15 << 3 | 2, 5],
        b"group".to_vec(),
        text(15, &format!("{n}{long}")),
    ]
    .concat()
}

#[test]
fn requests_of_other_machines_are_not_exported() {
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    let mut stage = sending_to(&address.to_string());
    let numbers = Numbers { model: Model::Elsewhere, worker: 1, ..Numbers::default() };
    stage.serve(&Finished { numbers, ..Finished::default() }, 1);
    assert_eq!(stage.fates("pinba_out"), (0, 0, 0));
    server.set_read_timeout(Some(Duration::from_millis(1))).expect("a time-out");
    assert!(server.recv(&mut [0; 16]).is_err());
    stage.finish();
}
