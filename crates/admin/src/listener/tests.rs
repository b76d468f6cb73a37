use super::{Admin, CONNECTIONS_MAX, PAGES_MAX, STREAMS_MAX};
use crate::{Access, Host};
use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_insight::{Finished, Insight, Limits, Numbers, intake};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

struct Fake {
    is_ready: bool,
    gate: Arc<Gate>,
}

/// Blocks queries of the status until it is released.
#[derive(Default)]
struct Gate {
    lock: Mutex<()>,
    is_asked: AtomicBool,
}

impl Gate {
    fn hold(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().expect("nobody panicked")
    }
}

impl Host for Fake {
    fn status(&self) -> samovar_wire::Status {
        self.gate.is_asked.store(true, Ordering::Release);
        drop(self.gate.hold());
        samovar_wire::Status { pid: 7, ..samovar_wire::Status::default() }
    }

    fn ready(&self, pool: Option<&str>) -> Result<String, String> {
        let said = pool.map_or_else(|| "ready".to_owned(), |pool| format!("{pool} is ready"));
        self.is_ready.then_some(said).ok_or_else(|| "no worker is up".to_owned())
    }

    fn metrics(&self, page: &mut Exposition) {
        page.family("samovar_workers", Kind::Gauge, "Workers.");
        page.sample(&[("state", "idle")], 2.0);
    }
}

/// Starts a listener over figures of two requests.
fn start(access: Access, is_ready: bool) -> (Admin, SocketAddr) {
    start_behind(access, is_ready, Arc::default())
}

fn start_behind(access: Access, is_ready: bool, gate: Arc<Gate>) -> (Admin, SocketAddr) {
    let (mut front, outlet) = intake();
    let limits = Limits { routes_max: 10, slow_ns: u64::MAX };
    let insight = Insight::start(outlet, limits, None).expect("a thread");
    for (id, status) in [("one", 200), ("two", 500)] {
        let numbers = Numbers { status, ..Numbers::default() };
        front.put(&Finished { numbers, id, path: "/a b/1", ..Finished::default() });
    }
    front.flush();
    drop(front);
    insight.finish();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let host = Box::new(Fake { is_ready, gate });
    (
        Admin::start(vec![listener], access, host, Some(Arc::new(insight))).expect("a thread"),
        address,
    )
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers");
    response
}

fn get(address: SocketAddr, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\nHost: {address}\n\n"))
}

#[test]
fn listener_serves_health_metrics_and_api() {
    let (_admin, address) = start(Access::default(), true);
    for (path, status, expected) in [
        ("/health", "200", "alive"),
        ("/ready", "200", "ready"),
        ("/ready?pool=api", "200", "api is ready"),
        ("/metrics", "200", "samovar_workers{state=\"idle\"} 2"),
        ("/metrics", "200", "samovar_http_requests_total{route=\"/a b/{n}\",class=\"2xx\"} 1"),
        ("/api/status", "200", "\"pid\":7"),
        ("/api/overview", "200", "\"requests\":2"),
        ("/api/routes", "200", "/a b/{n}"),
        ("/api/routes/%2Fa%20b%2F%7Bn%7D", "200", "\"errors\":1"),
        ("/api/requests", "200", "\"id\":\"two\""),
        ("/api/requests/two", "200", "\"status\":500"),
        ("/api/requests/one", "404", "page not found"),
        ("/api/routes/none", "404", "page not found"),
        ("/elsewhere", "404", "page not found"),
    ] {
        let response = get(address, path);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {response}");
        assert!(response.contains(expected), "{path}: {response}");
        assert!(response.contains("x-content-type-options: nosniff"), "{path}: {response}");
    }
}

#[test]
fn ready_page_of_unready_server_returns_reason() {
    let (_admin, address) = start(Access::default(), false);
    let response = get(address, "/ready");
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(response.ends_with("no worker is up\n"), "{response}");
    assert!(get(address, "/health").starts_with("HTTP/1.1 200 "));
}

#[test]
fn request_without_access_is_rejected() {
    let access = Access { token: Some("secret".to_owned()), hosts: Vec::new() };
    let (_admin, address) = start(access, true);
    for (request, status) in [
        ("GET /metrics HTTP/1.1\nHost: 127.0.0.1\n\n", "401"),
        ("GET /metrics HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer secret\n\n", "200"),
        ("GET /ready HTTP/1.1\nHost: 127.0.0.1\n\n", "200"),
        ("GET /ready HTTP/1.1\nHost: evil.example\n\n", "421"),
        ("POST /ready HTTP/1.1\nHost: 127.0.0.1\nContent-Length: 0\n\n", "405"),
        ("garbage\n\n", "400"),
    ] {
        let response = ask(address, request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {response}");
    }
}

#[test]
fn browser_is_challenged_for_the_token() {
    let access = Access { token: Some("secret".to_owned()), hosts: Vec::new() };
    let (_admin, address) = start(access, true);
    let response = get(address, "/");
    assert!(response.contains("www-authenticate: Basic realm=\"samovar\""), "{response}");
    let with = "GET / HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Basic eDpzZWNyZXQ=\n\n";
    assert!(ask(address, with).starts_with("HTTP/1.1 200 "));
}

#[test]
fn listener_serves_dashboard_and_assets() {
    let (_admin, address) = start(Access::default(), true);
    for (path, status, content_type) in [
        ("/", "200", "text/html; charset=utf-8"),
        ("/routes?sort=p99", "200", "text/html; charset=utf-8"),
        ("/route?name=%2Fa%20b%2F%7Bn%7D", "200", "text/html; charset=utf-8"),
        ("/route?name=none", "404", "text/html; charset=utf-8"),
        ("/request?id=two", "200", "text/html; charset=utf-8"),
        ("/request?id=none", "404", "text/html; charset=utf-8"),
        ("/assets/style.css", "200", "text/css; charset=utf-8"),
        ("/assets/live.js", "200", "text/javascript; charset=utf-8"),
        ("/assets/icon.svg", "200", "image/svg+xml"),
        ("/assets/other", "404", "text/plain; charset=utf-8"),
    ] {
        let response = get(address, path);
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {response}");
        let content_type = format!("content-type: {content_type}\r\n");
        assert!(response.contains(&content_type), "{path}: {response}");
        assert!(response.contains("content-security-policy: default-src 'self';"), "{path}");
    }
}

/// Opens a stream and returns it with its head and first page.
fn live(address: SocketAddr) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /live?of=%2Froutes HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while !text.ends_with(b"\n\n\r\n") && !text.ends_with(b"live pages\n") {
        let n = stream.read(&mut piece).expect("it answers");
        assert!(n > 0, "{}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&piece[..n]);
    }
    (stream, String::from_utf8(text).expect("UTF-8"))
}

#[test]
fn live_stream_beyond_limit_is_rejected() {
    let (_admin, address) = start(Access::default(), true);
    let mut streams = Vec::new();
    for _ in 0..STREAMS_MAX {
        let (stream, text) = live(address);
        assert!(text.contains("content-type: text/event-stream"), "{text}");
        assert!(text.contains("event: page\ndata: <h1>Routes</h1>"), "{text}");
        streams.push(stream);
    }
    assert!(live(address).1.starts_with("HTTP/1.1 503 "));
    assert!(get(address, "/").starts_with("HTTP/1.1 200 "), "pages are still answered");
}

#[test]
fn live_stream_of_static_page_is_not_found() {
    let (_admin, address) = start(Access::default(), true);
    for of in ["", "%2Fhistory", "%2Fmetrics", "%2F%2Fevil.example"] {
        let response = get(address, &format!("/live?of={of}"));
        assert!(response.starts_with("HTTP/1.1 404 "), "{of}: {response}");
    }
}

#[test]
fn dropped_listener_does_not_wait_for_clients() {
    let (admin, address) = start(Access::default(), true);
    let idle = TcpStream::connect(address).expect("it listens");
    drop(admin);
    drop(idle);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn slow_page_does_not_delay_health_checks() {
    let gate = Arc::<Gate>::default();
    let (admin, address) = start_behind(Access::default(), true, Arc::clone(&gate));
    let held = gate.hold();
    let page = std::thread::spawn(move || get(address, "/workers"));
    let status = std::thread::spawn(move || get(address, "/api/status"));
    for path in ["/ready", "/health", "/assets/style.css"] {
        assert!(get(address, path).starts_with("HTTP/1.1 200"), "{path}");
    }
    assert!(!page.is_finished() && !status.is_finished());
    drop(held);
    for slow in [page, status] {
        assert!(slow.join().expect("an answer").starts_with("HTTP/1.1 200"));
    }
    drop(admin);
}

/// Connections that send nothing, or only the start of a head, or only the head of a body.
fn half_open(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let starts = ["", "GET /", "GET / HTTP/1.1\r\nHost: t\r\nX: "];
    let open = |start: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(start.as_bytes()).expect("it reads");
        stream
    };
    starts.iter().cycle().take(count).map(|start| open(start)).collect()
}

#[test]
fn half_open_connections_do_not_delay_health_checks() {
    let (_admin, address) = start(Access::default(), true);
    let mut open = half_open(address, 4 * CONNECTIONS_MAX);
    for path in ["/health", "/ready", "/metrics", "/"] {
        assert!(get(address, path).starts_with("HTTP/1.1 200"), "{path}");
        open.extend(half_open(address, CONNECTIONS_MAX));
    }
    drop(open);
}

#[test]
fn half_open_connection_is_closed_after_head_timeout() {
    let (_admin, address) = start(Access::default(), true);
    for mut stream in half_open(address, 3) {
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a socket");
        let mut rest = Vec::new();
        // The end, or an error response and the end.
        drop(stream.read_to_end(&mut rest));
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"), "{rest:?}");
    }
}

#[test]
fn pages_at_their_limit_do_not_delay_health_checks() {
    let gate = Arc::<Gate>::default();
    let (admin, address) = start_behind(Access::default(), true, Arc::clone(&gate));
    let held = gate.hold();
    let ask_status = || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!("GET /api/status HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    };
    let mut waiting: Vec<_> = (0..PAGES_MAX).map(|_| ask_status()).collect();
    // Each of them has been accepted when a later one is refused.
    while !get(address, "/metrics").starts_with("HTTP/1.1 503") {
        std::thread::yield_now();
    }
    for path in ["/ready", "/health"] {
        assert!(get(address, path).starts_with("HTTP/1.1 200"), "{path}");
    }
    drop(held);
    for stream in &mut waiting {
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("it answers");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    drop(admin);
}

#[test]
fn request_accepted_before_leave_is_responded() {
    let gate = Arc::<Gate>::default();
    let (admin, address) = start_behind(Access::default(), true, Arc::clone(&gate));
    let held = gate.hold();
    let page = std::thread::spawn(move || get(address, "/api/status"));
    while !gate.is_asked.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    admin.leave();
    assert!(admin.wait_until_closed(Duration::from_mins(1)));
    assert!(TcpStream::connect(address).is_err());
    drop(held);
    assert!(page.join().expect("an answer").starts_with("HTTP/1.1 200"));
    drop(admin);
}
