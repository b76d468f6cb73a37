//! A php-fpm host name with two addresses, one of which is faulty. Each fault is reported for the
//! faulty address only.

use super::several::{figures, shown};
use super::strangers::{STDOUT, end, ok, record, request};
use super::*;
use samovar_testkit::{Deaf, may_mount};
use std::fmt::Write as _;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// A shell that starts the server with the test's own hosts file.
const MOUNTED: &str = r#"exec unshare --mount --propagation private sh -c '
mount --bind "$NAMES_FOLDER/hosts" /etc/hosts &&
mount --bind "$NAMES_FOLDER/nsswitch.conf" /etc/nsswitch.conf &&
exec "$@"' sh "$@""#;
/// The healthy address of each pair.
const WELL: u8 = 1;
const SICK: u8 = 2;

/// Behaviour of a faulty address.
enum Does {
    /// Responds with these bytes, and closes.
    Says(Vec<u8>),
    /// Sends these bytes and no more, and does not close.
    Stops(Vec<u8>),
    NotListen,
    TakeNothing,
}

/// A kind of fault. Its name is also that of a location and of a host.
struct Case {
    name: &'static str,
    does: Does,
    /// Status of one of the two requests; the other one gets 200.
    status: u16,
    reason: &'static str,
}

fn cases() -> Vec<Case> {
    let case = |name, does, status, reason| Case { name, does, status, reason };
    let long = record(STDOUT, 1, &vec![b'x'; 60_000]).repeat(3);
    let cut = [ok("a"), b"garbage".repeat(9)].concat();
    vec![
        case("away", Does::NotListen, 200, "unreachable"),
        case("deaf", Does::TakeNothing, 200, "unaccepted"),
        case("silent", Does::Stops(vec![]), 504, "quiet"),
        case("stuck", Does::Stops(ok("a")), 200, "quiet"),
        case("gone", Does::Says(vec![]), 502, "closed"),
        case("half", Does::Says(ok("a")), 200, "closed"),
        case("busy", Does::Says(end(2)), 502, "refused"),
        case("torn", Does::Says([ok("a"), end(2)].concat()), 200, "refused"),
        case("web", Does::Says(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), 502, "garbage"),
        case("mad", Does::Says(cut), 200, "garbage"),
        case("wordy", Does::Says(long), 502, "head"),
    ]
}

impl Case {
    fn host(&self, port: u16) -> String {
        format!("{}.test:{port}", self.name)
    }

    /// Whether the request is sent to the other address without a failure for the client.
    fn takes_no_connection(&self) -> bool {
        matches!(self.does, Does::NotListen | Does::TakeNothing)
    }
}

/// Address of the case with index `at`.
fn address(at: usize, which: u8, port: u16) -> SocketAddr {
    let third = u8::try_from(at).expect("few cases") + 1;
    SocketAddr::from((Ipv4Addr::new(127, 84, third, which), port))
}

fn responses(listener: TcpListener, response: impl Fn(TcpStream) + Send + 'static) {
    std::thread::spawn(move || listener.incoming().flatten().for_each(response));
}

/// Listens at both addresses of each case, all with the same port, until the test ends.
fn listen(cases: &[Case]) -> (u16, Vec<Deaf>) {
    let port = samovar_testkit::port().port();
    let first = TcpListener::bind(address(0, WELL, port)).expect("its address");
    let well = |mut stream: TcpStream| {
        request(&mut stream);
        let _ = stream.write_all(&[ok("well"), end(0)].concat());
    };
    responses(first, well);
    let mut deaf = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        if at > 0 {
            responses(TcpListener::bind(address(at, WELL, port)).expect("its address"), well);
        }
        let sick = address(at, SICK, port);
        match &case.does {
            Does::NotListen => {}
            Does::TakeNothing => deaf.push(Deaf::at(sick)),
            Does::Says(bytes) => {
                let bytes = bytes.clone();
                responses(TcpListener::bind(sick).expect("its address"), move |mut stream| {
                    request(&mut stream);
                    // The server may have closed the connection.
                    let _ = stream.write_all(&bytes);
                });
            }
            Does::Stops(bytes) => {
                let bytes = bytes.clone();
                responses(TcpListener::bind(sick).expect("its address"), move |mut stream| {
                    request(&mut stream);
                    let _ = stream.write_all(&bytes);
                    // Waits until the server closes the connection.
                    request(&mut stream);
                });
            }
        }
    }
    (port, deaf)
}

/// Starts a server with a location for each case; the case's host name resolves to both addresses.
fn start(cases: &[Case], port: u16, root: &Path, names: &Path) -> Server {
    let (mut hosts, mut config) = ("127.0.0.1 localhost\n".to_owned(), String::new());
    for (at, case) in cases.iter().enumerate() {
        for which in [WELL, SICK] {
            let ip = address(at, which, port).ip();
            let _ = writeln!(hosts, "{ip} {}.test", case.name);
        }
        let (name, host) = (case.name, case.host(port));
        let _ =
            writeln!(config, "[[location]]\npath = \"/old/{name}/*\"\nfastcgi_pass = \"{host}\"");
        let _ = writeln!(config, "fallback = \"/old/index.php\"");
    }
    std::fs::write(names.join("hosts"), hosts).expect("our own folder");
    std::fs::write(names.join("nsswitch.conf"), "hosts: files\n").expect("our own folder");
    let times = ["--response-timeout", "1s", "--fastcgi-connect-timeout", "1s"];
    let seen = ["--admin", "127.0.0.1:0", "--front-threads", "1", "--fastcgi-queue-max", "77"];
    let start = Server::at(root).workers(1).config(&config).args(times).args(seen);
    start.env("NAMES_FOLDER", names.to_str().expect("our own name")).through(MOUNTED).start()
}

#[test]
fn faulty_address_is_reported_separately_from_healthy_one() {
    if let Err(why) = may_mount() {
        eprintln!("skipped: {why}");
        return;
    }
    let (cases, root, names) = (cases(), site(), tempfile::tempdir().expect("a folder"));
    let (port, deaf) = listen(&cases);
    let server = start(&cases, port, root.path(), names.path());
    for (at, case) in cases.iter().enumerate() {
        let target = format!("/old/{}/", case.name);
        // Two requests: each of the two addresses is the first choice once.
        let responses = [server.get(&target), server.get(&target)];
        let mut statuses = responses.each_ref().map(|response| response.status);
        statuses.sort_unstable();
        assert_eq!(statuses, [200, case.status], "{}", case.name);
        let well =
            responses.iter().filter(|response| response.complete && response.text() == "well");
        let (went_away, reason) = (case.takes_no_connection(), case.reason);
        assert_eq!(well.count(), if went_away { 2 } else { 1 }, "{}", case.name);
        let sick = address(at, SICK, port).to_string();
        let told = eventually("it is counted", || {
            let told = figures(&server, &case.host(port));
            let of_sick =
                told["addresses"].as_array()?.iter().find(|one| one["address"] == sick)?;
            (of_sick["troubles"][reason] == 1).then(|| told.clone())
        });
        let [well, sick] = told["addresses"].as_array().map(Vec::as_slice).expect("a list") else {
            panic!("{told}");
        };
        assert_eq!(well["address"], address(at, WELL, port).to_string(), "{told}");
        let sent = u64::from(!went_away);
        assert_eq!(
            (&well["requests_total"], &well["responses_total"], &well["last_trouble"]),
            (&(2 - sent).into(), &(2 - sent).into(), &Value::Null),
            "{told}"
        );
        assert_eq!(
            (&sick["requests_total"], &sick["last_trouble"]["reason"]),
            (&sent.into(), &reason.into()),
            "{told}"
        );
        let all: u64 = sick["troubles"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, n)| n.as_u64())
            .sum();
        assert_eq!(all, 1, "{told}");
        // The host name has a failure only if a request failed.
        assert_eq!((&told["requests_total"], &told["troubles"][reason]), (&2.into(), &sent.into()));
        assert_eq!(told["last_trouble"].is_null(), went_away, "{told}");
        assert_eq!((&told["connections"], &told["queue_max"]), (&0.into(), &77.into()), "{told}");
        assert!(told["connections_max"].as_u64() > Some(0), "{told}");
    }
    everywhere(&server, &cases, port);
    // Failures before and after the head of the response.
    for name in ["gone", "half"] {
        let at = cases.iter().position(|case| case.name == name).expect("there is one");
        server.wait_for_log(&format!("address={}", address(at, SICK, port)));
    }
    // An address that accepts no connections is not tried for every request.
    for (at, case) in cases.iter().enumerate().filter(|(_, case)| case.takes_no_connection()) {
        for _ in 0..10 {
            assert_eq!(server.get(&format!("/old/{}/", case.name)).text(), "well");
        }
        let told = figures(&server, &case.host(port));
        let sick = &told["addresses"][1];
        assert_eq!(sick["address"], address(at, SICK, port).to_string(), "{told}");
        assert!(
            (1..5).contains(&sick["troubles"][case.reason].as_u64().expect("a number")),
            "{told}"
        );
    }
    drop(deaf);
    server.stop();
}

/// Checks that `samovar status`, Prometheus and the dashboard report the same values.
fn everywhere(server: &Server, cases: &[Case], port: u16) {
    let at = cases.iter().position(|case| case.name == "gone").expect("there is one");
    let (well, sick) = (address(at, WELL, port), address(at, SICK, port));
    let host = cases[at].host(port);
    let text = shown(server);
    for line in [
        format!("php-fpm at {host}: 2 requests  response heads after "),
        format!("  {well}: 1 requests  response heads after "),
        format!("  {sick}: 1 requests  0 connections  failed 1 (closed 1), the last "),
    ] {
        assert!(text.lines().any(|found| found.starts_with(&line)), "{line}: {text}");
    }
    assert!(text.contains("  waiting 0 (queue 0 of 77)"), "{text}");
    let admin = server.status()["admin"][0].as_str().and_then(|text| text.parse().ok());
    let admin = admin.expect("an address");
    let metrics = Client::connect(admin).get("/metrics").text();
    let labels = format!("pool=\"\",upstream=\"{host}\"");
    for sample in [
        "samovar_upstream_pool_queue_depth{pool=\"\"} 0".to_owned(),
        "samovar_upstream_pool_queue_max{pool=\"\"} 77".to_owned(),
        format!("samovar_upstream_server_requests_total{{{labels}}} 2"),
        format!("samovar_upstream_address_connections{{{labels},address=\"{sick}\"}} 0"),
        format!("samovar_upstream_address_requests_total{{{labels},address=\"{well}\"}} 1"),
        format!("samovar_upstream_address_responses_total{{{labels},address=\"{sick}\"}} 0"),
        format!(
            "samovar_upstream_address_errors_total\
             {{{labels},address=\"{sick}\",reason=\"closed\"}} 1"
        ),
        format!(
            "samovar_upstream_address_errors_total\
             {{{labels},address=\"{well}\",reason=\"closed\"}} 0"
        ),
    ] {
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
    let most = format!("samovar_upstream_server_connections_max{{{labels}}} ");
    let most = metrics.lines().find_map(|line| line.strip_prefix(&most)).expect("a sample");
    assert_eq!(most, figures(server, &host)["connections_max"].to_string());
    let page = Client::connect(admin).get("/workers").text();
    assert!(page.contains(&host) && page.contains(&sick.to_string()), "{page}");
    assert!(page.contains(&format!("0 of {most}")) && page.contains("0 of 77"), "{page}");
}
