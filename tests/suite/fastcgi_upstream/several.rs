//! Several php-fpms for one location, one of which may be unreachable; host names instead of
//! addresses; and the queue in front of them.

use super::*;
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

fn several(addresses: &[&str]) -> String {
    let quoted: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
    let all = quoted.join(", ");
    format!(
        "[[location]]\npath = \"/old/*\"\nfallback = \"/old/index.php\"\nfastcgi_pass = [{all}]\n"
    )
}

fn fpm(which: &str) -> Fpm {
    Fpm::start(2, &format!("env[WHICH] = {which}"))
}

/// Number of responses of each php-fpm to `count` requests. All requests must succeed.
fn who_responses(server: &Server, count: usize) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for _ in 0..count {
        let response = server.get("/old/?do=server");
        assert_eq!(response.status, 200, "{}", response.text());
        let told: Value = serde_json::from_str(&response.text()).expect("JSON");
        *found.entry(told["WHICH"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    found
}

#[test]
fn upstreams_share_requests_and_unreachable_one_is_skipped() {
    let (root, first, second) = (site(), fpm("first"), fpm("second"));
    let link = root.path().join("second.sock");
    let socket = second.folder().join("fpm.sock");
    std::os::unix::fs::symlink(&socket, &link).expect("our own folder");
    let moving = format!("unix:{}", link.display());
    let config = several(&[&first.address(), &moving]);
    let server = Server::at(root.path()).workers(2).config(&config).start();
    let told = |pairs: [(&str, usize); 2]| pairs.map(|(who, n)| (who.to_owned(), n)).into();
    assert_eq!(who_responses(&server, 10), told([("first", 5), ("second", 5)]));
    std::fs::remove_file(&link).expect("it was made");
    // A request that cannot connect goes to the other php-fpm. This includes requests with a body,
    // which has not been sent yet.
    let responses: Vec<u16> = (0..12)
        .map(|_| server.client().request(&Request::form("/old/?do=echo", "a=b")).status)
        .collect();
    assert_eq!(responses, [200; 12]);
    // Most requests did not try to connect.
    let tries = trouble(&server, "unreachable");
    assert!((1..6).contains(&tries), "{tries}");
    server.wait_for_log("upstream request failed: connection failed");
    std::os::unix::fs::symlink(&socket, &link).expect("our own folder");
    eventually("it is tried again", || {
        who_responses(&server, 2).contains_key("second").then_some(())
    });
    assert_eq!(who_responses(&server, 10), told([("first", 5), ("second", 5)]));
    drop((first, second));
    let response = server.get("/old/");
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(server.get("/").text(), "new /");
}

/// Status entry of the upstream `address`.
pub(super) fn figures(server: &Server, address: &str) -> Value {
    let status = server.status();
    let all = status["upstreams"].as_array().unwrap_or_else(|| panic!("{status}"));
    all.iter().find(|one| one["address"] == address).unwrap_or_else(|| panic!("{status}")).clone()
}

/// The figures include all threads of the front, and outlive the upstream's route.
#[test]
fn each_upstream_has_own_figures() {
    let (root, first) = (site(), fpm("first"));
    let admin = ["--front-threads", "3", "--admin", "127.0.0.1:0"];
    let config = several(&[&first.address(), "unix:/nowhere/else.sock"]);
    let server = Server::at(root.path()).workers(2).config(&config).args(admin).start();
    assert_eq!(server.status()["upstreams"], Value::Null, "nobody was asked");
    who_responses(&server, 12);
    let good = figures(&server, &first.address());
    assert_eq!((&good["requests_total"], &good["responses_total"]), (&12.into(), &12.into()));
    assert!(good["waited_seconds"].as_f64() > Some(0.0), "{good}");
    assert_eq!((&good["connections"], &good["last_trouble"]), (&0.into(), &Value::Null));
    let gone = figures(&server, "unix:/nowhere/else.sock");
    let tries = gone["troubles"]["unreachable"].as_u64().expect("a number");
    assert_eq!((tries, &gone["requests_total"]), (trouble(&server, "unreachable"), &0.into()));
    assert_eq!(gone["last_trouble"]["reason"], "unreachable");
    let words = gone["last_trouble"]["words"].as_str().expect("a text");
    assert!(words.contains("No such file"), "{words}");
    let shown = shown(&server);
    let line = format!("php-fpm at {}: 12 requests  response heads after ", first.address());
    assert!(shown.contains(&line), "{shown}");
    let line = format!("failed {tries} (unreachable {tries}), the last ");
    assert!(shown.contains(&line) && shown.contains("No such file"), "{shown}");
    let address = server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    let metrics = Client::connect(address.expect("an address")).get("/metrics").text();
    let label = |address: &str| format!("{{pool=\"\",upstream=\"{address}\"}}");
    for sample in [
        format!("samovar_upstream_server_requests_total{} 12", label(&first.address())),
        format!("samovar_upstream_server_responses_total{} 12", label(&first.address())),
        format!("samovar_upstream_server_connections{} 0", label("unix:/nowhere/else.sock")),
        format!(
            "samovar_upstream_server_errors_total{{pool=\"\",\
             upstream=\"unix:/nowhere/else.sock\",reason=\"unreachable\"}} {tries}"
        ),
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
    // The figures outlive a reload that removes the route.
    let config = server.folder().join("samovar.toml");
    let limits = "[fastcgi]\nconnections_max = 7\nqueue_max = 5\n";
    std::fs::write(&config, limits).expect("our own file");
    server.reload().expect("a reload");
    assert_eq!(server.get("/old/").status, 200);
    let good = figures(&server, &first.address());
    assert_eq!(good["requests_total"], 12);
    assert_eq!((&good["connections_max"], &good["queue_max"]), (&7.into(), &5.into()));
    assert_eq!(good["addresses"], Value::Array(vec![]), "it has no name");
    server.stop();
}

/// Output of `samovar status`.
pub(super) fn shown(server: &Server) -> String {
    let mut command = std::process::Command::new(samovar_testkit::binary());
    command.args(["status", "--control"]).arg(server.folder().join("control.sock"));
    let output = command.output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn busy_upstream_gets_fewer_requests() {
    let (root, first, second) = (site(), fpm("first"), fpm("second"));
    let config = several(&[&first.address(), &second.address()]);
    let server = Server::at(root.path()).workers(2).config(&config).start();
    let gate = root.path().join("gate");
    let mut busy = server.client();
    busy.send(&Request::get(&format!("/old/?do=wait&gate={}", gate.display())).bytes());
    let open = || server.status()["upstream_connections"] == 1;
    eventually("it is at php-fpm", || open().then_some(()));
    let found = who_responses(&server, 6);
    assert_eq!(found.len(), 1, "{found:?}");
    std::fs::write(&gate, "").expect("our own folder");
    assert_eq!(busy.read(false).text(), "waited");
    assert_eq!(who_responses(&server, 6).len(), 2);
}

#[test]
fn upstream_queue_is_limited() {
    let site = Passing::start(3, |start| {
        let limits = ["--fastcgi-connections-max", "1", "--fastcgi-queue-max", "2"];
        start.args(limits).args(["--fastcgi-connect-timeout", "1m", "--admin", "127.0.0.1:0"])
    });
    let queued = || site.server.status()["upstream_queue_depth"].as_u64().expect("a number");
    let wait = Request::get(&format!("/old/?do=wait&gate={}", site.gate("gate"))).bytes();
    let mut clients: Vec<Client> = (0..3).map(|_| site.server.client()).collect();
    for client in &mut clients {
        client.send(&wait);
    }
    eventually("two wait", || (queued() == 2).then_some(()));
    let admin = site.server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    let metrics = Client::connect(admin.expect("an address")).get("/metrics").text();
    assert!(metrics.lines().any(|line| line == "samovar_upstream_queue_depth 2"), "{metrics}");
    let response = site.get("/old/b.php");
    assert_eq!((response.status, site.trouble("full"), queued()), (503, 1, 2));
    let told = figures(&site.server, &site.fpm.address());
    let place = ["connections", "connections_max", "waiting", "queued", "queue_max"];
    assert_eq!(place.map(|name| told[name].as_u64()), [1, 1, 2, 2, 2].map(Some), "{told}");
    assert_eq!(
        (&told["troubles"]["full"], &told["last_trouble"]["reason"]),
        (&1.into(), &"full".into())
    );
    let text = shown(&site.server);
    assert!(
        text.contains("  1 of 1 connections  waiting 2 (queue 2 of 2)  failed 1 (full 1)"),
        "{text}"
    );
    // A client that leaves makes room for another one.
    clients.pop().expect("a client").abort();
    eventually("one waits", || (queued() == 1).then_some(()));
    site.open("gate");
    for client in &mut clients {
        assert_eq!(client.read(false).text(), "waited");
    }
    assert_eq!(site.get("/old/b.php").status, 200);
    assert_eq!((queued(), site.in_use()), (0, 0));
}

#[test]
fn full_and_unreachable_upstreams_keep_separate_failures() {
    let (root, first) = (site(), fpm("first"));
    let away = "unix:/nowhere/else.sock";
    let limits = ["--fastcgi-connections-max", "1", "--fastcgi-connect-timeout", "300ms"];
    let config = several(&[&first.address(), away]);
    let server = Server::at(root.path()).workers(2).config(&config).args(limits).start();
    // One request fails to connect to the unreachable one before the other one is full.
    assert_eq!(who_responses(&server, 2).len(), 1);
    let gate = root.path().join("gate");
    let mut busy = server.client();
    busy.send(&Request::get(&format!("/old/?do=wait&gate={}", gate.display())).bytes());
    let open = || server.status()["upstream_connections"] == 1;
    eventually("it is at php-fpm", || open().then_some(()));
    eventually("there is no room", || {
        server.get("/old/?do=server");
        (trouble(&server, "full") == 2).then_some(())
    });
    let (first, away) = (figures(&server, &first.address()), figures(&server, away));
    assert_eq!(
        (&first["troubles"]["full"], &first["last_trouble"]["reason"]),
        (&2.into(), &"full".into())
    );
    assert_eq!(
        (&away["troubles"]["full"], &away["last_trouble"]["reason"]),
        (&0.into(), &"unreachable".into())
    );
    std::fs::write(&gate, "").expect("our own folder");
    assert_eq!(busy.read(false).text(), "waited");
    server.stop();
}

/// A TCP port that forwards to a Unix socket until the test ends.
fn leads_to(socket: std::path::PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { continue };
            let (Ok(mut from), Ok(mut to)) = (client.try_clone(), server.try_clone()) else {
                continue;
            };
            std::thread::spawn(move || io::copy(&mut from, &mut to));
            std::thread::spawn(move || pour(server, &client));
        }
    });
    address
}

fn pour(mut from: UnixStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn upstream_host_name_is_resolved() {
    let (root, fpm) = (site(), fpm("named"));
    let address = leads_to(fpm.folder().join("fpm.sock"));
    // The name may also resolve to ::1, where no server listens.
    let named = format!("localhost:{}", address.port());
    let log = ["--access-log", "-"];
    let server = super::server(root.path(), &named).args(log).start();
    assert_eq!(who_responses(&server, 4), BTreeMap::from([("named".to_owned(), 4)]));
    let upstream = format!("upstream={named}");
    eventually("the access log", || server.stdout().contains(&upstream).then_some(()));
    // A kept connection also belongs to an address.
    let kept = ["--fastcgi-idle-connections-max", "1", "--front-threads", "1"];
    let server = super::server(root.path(), &named).args(kept).start();
    who_responses(&server, 4);
    let told = figures(&server, &named);
    let of = |name: &str| {
        let each = told["addresses"].as_array().into_iter().flatten();
        each.filter_map(|one| one[name].as_u64()).collect::<Vec<_>>()
    };
    let sum = |name: &str| of(name).iter().sum::<u64>();
    let sums = ["requests_total", "responses_total", "connections"].map(sum);
    assert_eq!(sums, [4, 4, 0], "{told}");
    let used: Vec<_> = of("requests_total").into_iter().filter(|number| *number > 0).collect();
    assert_eq!(used, [4], "one of them: {told}");
}

#[test]
fn unresolvable_upstream_name_is_reported() {
    let (root, fpm) = (site(), fpm("known"));
    // A label of a host name has at most 63 bytes, so no DNS server is queried.
    let named = format!("{}.invalid:9000", "a".repeat(64));
    let server = super::server(root.path(), &named).start();
    let response = server.get("/old/");
    assert_eq!((response.status, trouble(&server, "unresolved")), (502, 1));
    let told = figures(&server, &named);
    assert_eq!((&told["troubles"]["unresolved"], &told["requests_total"]), (&1.into(), &0.into()));
    assert_eq!(told["last_trouble"]["reason"], "unresolved");
    server.wait_for_log("upstream request failed: host name has no address");
    assert_eq!(server.get("/").text(), "new /");
    // Next to a valid upstream it does no harm.
    let config = several(&[&named, &fpm.address()]);
    let server = Server::at(root.path()).workers(2).config(&config).start();
    assert_eq!(who_responses(&server, 4), BTreeMap::from([("known".to_owned(), 4)]));
}
