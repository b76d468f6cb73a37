//! The good clients: they send requests continuously and know each byte of each response in
//! advance.

use crate::chaos::pardon::{Pardon, Pardons};
use samovar_testkit::http::{Client, Request, Response};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Read timeout of a good client for a piece of a response. It decides when a response counts as
/// lost, not how fast it has to be.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Pause of a client between two requests, so that the machine has capacity left for the
/// disturbances.
const PAUSE: Duration = Duration::from_millis(4);

/// Idle time after which the server may close a kept connection while a request is being sent. A
/// request that cannot be repeated then uses a fresh connection.
const STALE: Duration = Duration::from_millis(200);

/// Size of the large static file in bytes.
pub(crate) const LARGE_BYTES: usize = 1_500_000;

/// Size of an uploaded file in bytes: more than the front keeps in memory.
const UPLOAD_BYTES: usize = 200_000;

/// Number of requests sent in one write.
const PIPELINED: usize = 4;

/// Maximum number of failures reported in full.
const TOLD_MAX: usize = 4;

/// The text of app/public/small.txt.
pub(crate) const SMALL: &str = "A small file that no script answers.\n";

/// The 64-bit Fowler–Noll–Vo hash (FNV-1a), in PHP `fnv1a64`.
pub(crate) fn checksum(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Bytes without a repeating pattern, so that a lost or doubled piece is detected.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut bytes = vec![0; len];
    for piece in bytes.chunks_mut(4) {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        piece.copy_from_slice(&state.to_be_bytes()[..piece.len()]);
    }
    bytes
}

/// The kinds of good clients; each has a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// GET after GET on one connection.
    Keeps,
    /// GET and HEAD, each on a separate connection.
    Fresh,
    /// Small POSTs on one connection.
    Posts,
    /// Several GETs in one write.
    Pipelines,
    /// Static files.
    Statics,
    /// A longer response, and a GET that takes some time.
    Longer,
    /// Multipart uploads larger than the front's memory buffer.
    Uploads,
}

const ROLES: [Role; 7] = [
    Role::Keeps,
    Role::Fresh,
    Role::Posts,
    Role::Pipelines,
    Role::Statics,
    Role::Longer,
    Role::Uploads,
];

/// One request and its expected response.
struct Ask {
    request: Request,
    expected: Expected,
    /// Disturbances that excuse a loss; without one of them the loss is a failure.
    pardonable: &'static [Pardon],
    /// Repeated once if its kept connection was closed before any byte of a response.
    idempotent: bool,
}

enum Expected {
    Text(String),
    /// A line that ends with a deployed version, at least this one.
    Versioned(String, u64),
    Lines(String, usize),
    Bytes(Arc<Vec<u8>>),
    /// No body: the response to a HEAD request.
    Nothing,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    Right,
    /// No response, a truncated response, or an error status (4xx, 5xx).
    Lost(String),
    /// A complete response with unexpected content.
    Wrong(String),
}

/// State that all clients share.
pub(crate) struct Shared {
    address: SocketAddr,
    pub(crate) pardons: Pardons,
    stop: AtomicBool,
    paused: AtomicBool,
    resting: AtomicU64,
    /// Whether files may be requested and uploaded.
    pub(crate) files: AtomicBool,
    /// Number of correct script responses to GET requests.
    pub(crate) served: AtomicU64,
    responded: AtomicU64,
    excused: AtomicU64,
    /// The oldest version that a response may have, and the newest deployed one.
    pub(crate) version_min: AtomicU64,
    pub(crate) version_max: AtomicU64,
    failures: Mutex<Failures>,
    latencies_us: Mutex<Vec<u64>>,
    large: Arc<Vec<u8>>,
    began: Instant,
}

#[derive(Default)]
struct Failures {
    count: u64,
    told: Vec<String>,
}

/// The clients of one server.
pub(crate) struct Load {
    pub(crate) shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(address: SocketAddr, large: Arc<Vec<u8>>, files: bool) -> Load {
        let shared = Arc::new(Shared {
            address,
            pardons: Pardons::default(),
            stop: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            resting: AtomicU64::new(0),
            files: AtomicBool::new(files),
            served: AtomicU64::new(0),
            responded: AtomicU64::new(0),
            excused: AtomicU64::new(0),
            version_min: AtomicU64::new(0),
            version_max: AtomicU64::new(0),
            failures: Mutex::default(),
            latencies_us: Mutex::default(),
            large,
            began: Instant::now(),
        });
        let client = |role| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || Visitor::new(role, shared).live())
        };
        let clients = ROLES.into_iter().map(client).collect();
        Load { shared, clients }
    }

    /// A load without clients, a placeholder after the clients were stopped.
    pub(crate) fn none(shared: Arc<Shared>) -> Load {
        Load { shared, clients: Vec::new() }
    }

    /// Waits until all clients have finished. Returns a summary and the failures.
    pub(crate) fn stop(self) -> (String, Vec<String>) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let mut found = Vec::new();
        for client in self.clients {
            if client.join().is_err() {
                found.push("a client of the load panicked".to_owned());
            }
        }
        let failures = self.shared.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.count > 0 {
            let told = failures.told.join("\n    ");
            found.push(format!("{} good requests failed:\n    {told}", failures.count));
        }
        let responded = self.shared.responded.load(Ordering::SeqCst);
        let excused = self.shared.excused.load(Ordering::SeqCst);
        (format!("{responded} right answers, {excused} excused"), found)
    }
}

impl Shared {
    /// Pauses the clients and waits until no request is in flight. Connections stay open.
    pub(crate) fn pause(&self) {
        self.paused.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while self.resting.load(Ordering::SeqCst) < ROLES.len() as u64 && start.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn resume(&self) {
        self.paused.store(false, Ordering::SeqCst);
    }

    /// Response times for the shortest page since the last call, in µs, sorted.
    pub(crate) fn latencies_us(&self) -> Vec<u64> {
        let mut all = self.latencies_us.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *all);
        taken.sort_unstable();
        taken
    }

    fn fail(&self, ask: &Ask, asked: Instant, how: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.count += 1;
        if failures.told.len() < TOLD_MAX {
            let request = String::from_utf8_lossy(&ask.request.bytes()).into_owned();
            let line = request.lines().next().unwrap_or_default().to_owned();
            let at = asked.duration_since(self.began).as_secs_f64();
            let took = asked.elapsed().as_secs_f64();
            failures.told.push(format!("{line}, asked at {at:.2} s, {took:.2} s later: {how}"));
        }
    }
}

struct Visitor {
    role: Role,
    shared: Arc<Shared>,
    client: Option<Client>,
    used: Instant,
    count: u64,
}

impl Visitor {
    fn new(role: Role, shared: Arc<Shared>) -> Visitor {
        Visitor { role, shared, client: None, used: Instant::now(), count: 0 }
    }

    fn live(&mut self) {
        while !self.shared.stop.load(Ordering::SeqCst) {
            if self.shared.paused.load(Ordering::SeqCst) {
                self.rest();
                continue;
            }
            let of_files = matches!(self.role, Role::Statics | Role::Uploads);
            if of_files && !self.shared.files.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSE);
                continue;
            }
            self.count += 1;
            if self.role == Role::Pipelines {
                self.pipeline();
            } else {
                let ask = self.next_ask();
                self.ask(&ask);
            }
            if self.role == Role::Fresh {
                self.client = None;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn rest(&self) {
        self.shared.resting.fetch_add(1, Ordering::SeqCst);
        while self.shared.paused.load(Ordering::SeqCst) && !self.shared.stop.load(Ordering::SeqCst)
        {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.shared.resting.fetch_sub(1, Ordering::SeqCst);
    }

    fn nonce(&self, part: usize) -> String {
        format!("{:?}{}-{part}", self.role, self.count)
    }

    fn hello(&self, part: usize, target: &str) -> Ask {
        let nonce = self.nonce(part);
        let oldest = self.shared.version_min.load(Ordering::SeqCst);
        let begin = format!("hello {nonce} {} v", checksum(nonce.as_bytes()));
        Ask {
            request: Request::get(&format!("{target}nonce={nonce}")),
            expected: Expected::Versioned(begin, oldest),
            pardonable: &[Pardon::Everything],
            idempotent: true,
        }
    }

    fn next_ask(&self) -> Ask {
        let nonce = self.nonce(0);
        let sum = checksum(nonce.as_bytes());
        let even = self.count.is_multiple_of(2);
        match self.role {
            Role::Keeps | Role::Pipelines => self.hello(0, "/hello?"),
            Role::Fresh if even => self.hello(0, "/hello?"),
            Role::Fresh => Ask {
                request: Request::new("HEAD", &format!("/hello?nonce={nonce}")),
                expected: Expected::Nothing,
                pardonable: &[Pardon::Everything],
                idempotent: true,
            },
            Role::Posts => {
                let body = noise(100 + self.count as usize % 5000, self.count);
                let expected = format!("{nonce} {} {}\n", body.len(), checksum(&body));
                Ask {
                    request: Request::post(
                        &format!("/echo?nonce={nonce}"),
                        "application/octet-stream",
                        body,
                    ),
                    expected: Expected::Text(expected),
                    pardonable: &[Pardon::Everything, Pardon::LostWork],
                    idempotent: false,
                }
            }
            Role::Statics => self.file(even),
            Role::Longer if even => self.hello(0, "/slow?ms=20&"),
            Role::Longer => Ask {
                request: Request::get(&format!("/medium?nonce={nonce}")),
                expected: Expected::Lines(format!("{nonce} {sum}\n"), 6000),
                // Its first bytes are sent before the script ends; a worker's death then truncates
                // it.
                pardonable: &[Pardon::Everything, Pardon::LostWork],
                idempotent: true,
            },
            Role::Uploads => self.upload(&nonce),
        }
    }

    fn file(&self, small: bool) -> Ask {
        let (path, expected) = if small {
            ("/small.txt", Expected::Text(SMALL.to_owned()))
        } else {
            ("/large.bin", Expected::Bytes(Arc::clone(&self.shared.large)))
        };
        Ask {
            request: Request::get(path),
            expected,
            pardonable: &[Pardon::Everything, Pardon::NoThread],
            idempotent: true,
        }
    }

    fn upload(&self, nonce: &str) -> Ask {
        let content = noise(UPLOAD_BYTES, self.count);
        let expected = format!("{nonce} {UPLOAD_BYTES} {}\n", checksum(&content));
        let body = [
            b"--xx\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"
                .as_slice(),
            &content,
            b"\r\n--xx--\r\n",
        ];
        Ask {
            request: Request::post(
                &format!("/upload?nonce={nonce}"),
                "multipart/form-data; boundary=xx",
                body.concat(),
            ),
            expected: Expected::Text(expected),
            pardonable: &[Pardon::Everything, Pardon::LostWork, Pardon::NoThread, Pardon::NoSpool],
            idempotent: false,
        }
    }

    fn ask(&mut self, ask: &Ask) {
        if !ask.idempotent && self.used.elapsed() > STALE {
            self.client = None;
        }
        let asked = Instant::now();
        let was_kept = self.client.is_some();
        let mut response = self.exchange(&ask.request);
        if was_kept && ask.idempotent && is_closed_without_response(&response) {
            // Browsers and proxies do the same: the server may close a kept connection at any time.
            response = self.exchange(&ask.request);
        }
        self.used = Instant::now();
        self.judge(ask, asked, &response);
    }

    fn exchange(&mut self, request: &Request) -> io::Result<Response> {
        if self.client.is_none() {
            self.client = Some(Client::try_connect(self.shared.address, PATIENCE)?);
        }
        let Some(client) = &mut self.client else { return Err(io::ErrorKind::NotConnected.into()) };
        let response = client.try_request(request);
        let stays = response
            .as_ref()
            .is_ok_and(|a| a.complete && a.header("connection").is_none_or(|c| c != "close"));
        if !stays {
            self.client = None;
        }
        response
    }

    /// Sends several requests in one write. Requests that a closed connection leaves without a
    /// response are repeated one by one.
    fn pipeline(&mut self) {
        let asks: Vec<_> = (0..PIPELINED).map(|part| self.hello(part, "/hello?")).collect();
        let asked = Instant::now();
        let bytes: Vec<u8> = asks.iter().flat_map(|ask| ask.request.bytes()).collect();
        let connect = || Client::try_connect(self.shared.address, PATIENCE).ok();
        let mut client = self.client.take().or_else(connect);
        if client.as_mut().is_some_and(|client| client.try_send(&bytes).is_err()) {
            client = None;
        }
        for ask in &asks {
            let response = client.as_mut().map(|client| client.try_read(false));
            match response {
                Some(Ok(response)) => {
                    let ends = response.header("connection") == Some("close") || !response.complete;
                    self.judge(ask, asked, &Ok(response));
                    if ends {
                        client = None;
                    }
                }
                Some(Err(error)) if !is_close(&error) => {
                    client = None;
                    self.judge(ask, asked, &Err(error));
                }
                _ => {
                    client = None;
                    let again = self.exchange(&ask.request);
                    self.judge(ask, Instant::now(), &again);
                    self.client = None;
                }
            }
        }
        self.client = client;
    }

    fn judge(&self, ask: &Ask, asked: Instant, response: &io::Result<Response>) {
        let newest = self.shared.version_max.load(Ordering::SeqCst);
        let of_script = matches!(ask.expected, Expected::Versioned(..));
        match fate(ask, response, newest) {
            Fate::Right => {
                self.shared.responded.fetch_add(1, Ordering::SeqCst);
                if of_script {
                    self.shared.served.fetch_add(1, Ordering::SeqCst);
                }
                if matches!(self.role, Role::Keeps | Role::Fresh) {
                    let mut all =
                        self.shared.latencies_us.lock().unwrap_or_else(PoisonError::into_inner);
                    all.push(asked.elapsed().as_micros() as u64);
                }
            }
            Fate::Lost(_) if self.shared.pardons.excuse(ask.pardonable, asked) => {
                self.shared.excused.fetch_add(1, Ordering::SeqCst);
            }
            Fate::Lost(_)
                if response.as_ref().is_ok_and(|response| response.status == 504)
                    && self.shared.pardons.excuse(&[Pardon::StoppedWork], asked) =>
            {
                self.shared.excused.fetch_add(1, Ordering::SeqCst);
            }
            // After garbage in the ring, a response may belong to another request. Nothing is
            // guaranteed then.
            Fate::Wrong(_) if self.shared.pardons.excuse(&[Pardon::Everything], asked) => {
                self.shared.excused.fetch_add(1, Ordering::SeqCst);
            }
            Fate::Lost(how) => self.shared.fail(ask, asked, &how),
            Fate::Wrong(how) => self.shared.fail(ask, asked, &format!("WRONG: {how}")),
        }
    }
}

fn is_close(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

fn is_closed_without_response(response: &io::Result<Response>) -> bool {
    response.as_ref().is_err_and(is_close)
}

fn fate(ask: &Ask, response: &io::Result<Response>, newest: u64) -> Fate {
    let response = match response {
        Err(error) => return Fate::Lost(why(error)),
        Ok(response) if response.status != 200 => {
            return Fate::Lost(format!("{} {:?}", response.status, begin(&response.body)));
        }
        Ok(response) if !response.complete => {
            return Fate::Lost(format!("cut after {} bytes", response.body.len()));
        }
        Ok(response) => response,
    };
    let is_right = match &ask.expected {
        Expected::Text(text) => response.body == text.as_bytes(),
        Expected::Bytes(bytes) => response.body == **bytes,
        Expected::Nothing => response.body.is_empty(),
        Expected::Lines(line, count) => {
            response.body.len() == line.len() * count
                && response.body.chunks(line.len()).all(|chunk| chunk == line.as_bytes())
        }
        Expected::Versioned(begin, oldest) => {
            let version = || response.body.strip_prefix(begin.as_bytes())?.strip_suffix(b"\n");
            let version = version().and_then(|v| str::from_utf8(v).ok()?.parse::<u64>().ok());
            version.is_some_and(|version| (*oldest..=newest).contains(&version))
        }
    };
    let got = || format!("{} bytes, beginning {:?}", response.body.len(), begin(&response.body));
    if is_right { Fate::Right } else { Fate::Wrong(got()) }
}

/// Describes a connection error in the terms of this test.
pub(crate) fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "nothing came for so long".to_owned()
        }
        io::ErrorKind::UnexpectedEof => "closed without an answer".to_owned(),
        _ => format!("no answer: {error}"),
    }
}

pub(crate) fn begin(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(120)]).into_owned()
}
