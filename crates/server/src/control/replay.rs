//! `samovar record` and `samovar replay`: starts recordings, and runs recorded requests again.
//!
//! A replay gets a worker that is held back from all other requests, forked from the image of the
//! serving generation. With a call graph or a debugger, PHP must start with other settings: that
//! worker comes from a template and an image of its own.

mod stacks;

use super::report::StatusSources;
use crate::descriptors;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use samovar_channel::GraphEnd;
use samovar_config::DEFAULT_POOL;
use samovar_front::{
    FrontHandle, RECORDED_REQUESTS_MAX, RecordOrder, Recorded, RecordedResponse, ReplayOrder,
};
use samovar_profile::calls::{Calls, CallsOptions};
use samovar_ring::request::{FLAG_APP, decode};
use samovar_supervisor::{Command, Handle, OwnTemplate, SpareOrder};
use samovar_wire::{
    RecordAction, RecordQuestion, RecordResponse, RecordedDetails, RecordedRequest,
    RecordingStatus, ReplayNetwork, ReplayQuestion, ReplayResponse, ResponseCopy,
};
use serde_json::Value;
use stacks::Stacks;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Ids of the workers for replays.
static IDS: AtomicU64 = AtomicU64::new(1);

/// Maximum time for which a recording runs.
const RECORDING_MAX: Duration = Duration::from_hours(24);
/// Timeout for a worker, in addition to the supervisor's own.
const SPARE_LIMIT: Duration = Duration::from_mins(3);
/// Maximum run time of a replay. The limits of the front usually end it earlier.
const RUN_LIMIT: Duration = Duration::from_hours(25);
/// Timeout for the call graph, which its worker has already sent.
const GRAPH_LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of graphs of a boot: more than the socket holds.
const BOOT_GRAPHS_MAX: usize = 1_000;
const GRAPH_LOOK: Duration = Duration::from_millis(10);
/// Interval of looks for a client that has left.
const CLIENT_LOOK: Duration = Duration::from_millis(100);

/// Carries out an action on recorded requests.
pub(super) fn record(sources: &StatusSources, question: &RecordQuestion) -> RecordResponse {
    let recordings = sources.front.recordings();
    let mut response = RecordResponse::default();
    let missing = |id: Option<u64>| {
        RecordResponse::refused(unknown(id.unwrap_or(0), sources.front.recordings().all().len()))
    };
    match question.action {
        RecordAction::List => {
            response.requests = recordings.all().iter().map(|one| request(one, false)).collect();
        }
        RecordAction::Start => {
            if question.count == 0 || question.count > RECORDED_REQUESTS_MAX {
                return RecordResponse::refused(format!(
                    "cannot record {} requests\nhint: --count takes 1 to {RECORDED_REQUESTS_MAX}",
                    question.count
                ));
            }
            let limit = Duration::from_secs(question.seconds);
            if limit.is_zero() || limit > RECORDING_MAX {
                return RecordResponse::refused(
                    "cannot record for this time\nhint: --for takes 1s to 24h".to_owned(),
                );
            }
            let begun = recordings.begin(RecordOrder {
                path: question.path.clone(),
                slow: question.slow_ms.map(Duration::from_millis),
                is_failed: question.failed,
                count: question.count,
                limit,
                has_secrets: question.with_secrets,
            });
            if let Err(error) = begun {
                return RecordResponse::refused(format!(
                    "cannot start the thread of a recording: {error}\nhint: check the limits of \
                     threads and memory of the server (ulimit -u, systemd's TasksMax)"
                ));
            }
            tracing::info!(
                count = question.count,
                with_secrets = question.with_secrets,
                "recording requests for `samovar replay`"
            );
        }
        RecordAction::Stop => {
            if !recordings.stop() {
                return RecordResponse::refused("there is no recording".to_owned());
            }
        }
        RecordAction::Show => match question.id.and_then(|id| recordings.get(id)) {
            Some(one) => response.requests = vec![request(&one, true)],
            None => return missing(question.id),
        },
        RecordAction::Remove => {
            response.removed = recordings.remove(question.id);
            if response.removed == 0 && question.id.is_some() {
                return missing(question.id);
            }
        }
    }
    response.missed = recordings.missed();
    response.recording = recordings.state().map(|state| RecordingStatus {
        path: state.order.path,
        slow_ms: state.order.slow.map(ms),
        failed: state.order.is_failed,
        left: state.left,
        seconds: state.remaining.as_secs(),
        with_secrets: state.order.has_secrets,
    });
    response
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unknown(id: u64, count: usize) -> String {
    let hint = match count {
        0 => "start a recording, such as `samovar record --count 20`",
        _ => "`samovar record ls` lists the recorded requests; the oldest ones are dropped",
    };
    format!("there is no recorded request {id}\nhint: {hint}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn request(of: &Recorded, has_details: bool) -> RecordedRequest {
    let input = &of.input;
    let details = has_details.then(|| {
        let headers = decode(&input.head).map(|(_, headers)| headers).unwrap_or_default();
        RecordedDetails {
            headers: headers.iter().map(|(name, value)| (text(name), text(value))).collect(),
            body: STANDARD.encode(&input.body),
            response: copy(&of.response),
        }
    });
    RecordedRequest {
        id: of.id,
        pool: of.pool.clone(),
        at_ms: of.at_ms,
        milliseconds: of.took.as_secs_f64() * 1_000.0,
        method: input.method.clone(),
        target: input.target.clone(),
        host: input.host.clone(),
        body_bytes: input.cut.unwrap_or(input.body.len() as u64),
        is_cut: input.cut.is_some(),
        redacted: input.redacted.clone(),
        status: of.response.status,
        response_bytes: of.response.bytes,
        has_client_left: of.has_client_left,
        details,
    }
}

fn copy(of: &RecordedResponse) -> ResponseCopy {
    let mut sha256 = String::with_capacity(64);
    for byte in of.hash {
        // Writing to a string cannot fail.
        let _ = write!(sha256, "{byte:02x}");
    }
    ResponseCopy {
        status: of.status,
        head: STANDARD.encode(&of.head),
        body: STANDARD.encode(&of.body),
        bytes: of.bytes,
        sha256,
        is_complete: of.is_complete,
    }
}

/// Runs a recorded request again. Blocks until its end, or until the client has left.
pub(super) fn replay(
    sources: &StatusSources,
    question: &ReplayQuestion,
    client: &Weak<()>,
) -> ReplayResponse {
    run(sources, question, client).unwrap_or_else(ReplayResponse::refused)
}

fn run(
    sources: &StatusSources,
    question: &ReplayQuestion,
    client: &Weak<()>,
) -> Result<ReplayResponse, String> {
    let recordings = sources.front.recordings();
    let recorded = recordings.get(question.id);
    let recorded = recorded.ok_or_else(|| unknown(question.id, recordings.all().len()))?;
    let input = &recorded.input;
    if let Some(bytes) = input.cut {
        return Err(samovar_front::ReplayError::BodyCut(bytes).to_string());
    }
    let (front, supervisor) = pool(sources, &recorded.pool)?;
    let is_safe = matches!(&*input.method, "GET" | "HEAD" | "OPTIONS");
    let is_debugged = question.xdebug.is_some();
    let refuses_network = match question.network {
        ReplayNetwork::Allow => false,
        ReplayNetwork::Refuse if is_debugged => {
            return Err(
                "a debugger needs network traffic\nhint: drop `--network refuse`".to_owned()
            );
        }
        ReplayNetwork::Refuse => true,
        ReplayNetwork::Auto => !is_safe && !is_debugged,
    };
    let is_app = decode(&input.head).is_some_and(|(head, _)| head.flags & FLAG_APP != 0);
    let graphs = question.trace.then(GraphReader::start).transpose()?;
    let define = question.xdebug.as_deref().map(xdebug).transpose()?;
    let own = (question.trace || is_debugged).then(|| OwnTemplate {
        graphs: graphs.as_ref().map(|graphs| Arc::clone(&graphs.end)),
        define: define.unwrap_or_default(),
    });
    let has_own_image = own.is_some();
    let spare = Spare::start(supervisor, !is_app, own, client)?;
    if is_debugged && !has_xdebug(spare.pid) {
        return Err("Xdebug is not loaded\nhint: install it for this PHP, such as Debian's \
             php8.2-xdebug; see also the server's log"
            .to_owned());
    }
    graphs.iter().for_each(GraphReader::forget);
    let stacks = question.profile.then(|| Stacks::start(spare.pid)).transpose()?;
    let (tell, told) = channel();
    front.replay(ReplayOrder {
        recorded: Arc::clone(&recorded),
        refuses_network,
        is_debugged,
        // This thread may have given up; the error is ignored.
        done: Box::new(move |result| drop(tell.send(result))),
    });
    let replayed = receive(&told, RUN_LIMIT, client)?.map_err(|error| error.to_string())?;
    let profile = stacks.map_or(Value::Null, Stacks::finish);
    let graph = graphs.map_or(Ok(Value::Null), GraphReader::read)?;
    let pid = spare.pid;
    drop(spare);
    Ok(ReplayResponse {
        error: None,
        recorded: request(&recorded, true),
        response: copy(&replayed.response),
        lost: replayed.lost.map(str::to_owned),
        milliseconds: replayed.took.as_secs_f64() * 1_000.0,
        network_refused: refuses_network,
        pid,
        has_own_image,
        graph,
        profile,
    })
}

/// Waits for a message. Fails soon after the client has left.
fn receive<T>(from: &Receiver<T>, limit: Duration, client: &Weak<()>) -> Result<T, String> {
    let since = Instant::now();
    loop {
        match from.recv_timeout(CLIENT_LOOK) {
            Ok(message) => return Ok(message),
            Err(RecvTimeoutError::Disconnected) => return Err("the server is stopping".to_owned()),
            Err(RecvTimeoutError::Timeout) if has_left(client) => {
                return Err("the client has left".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if since.elapsed() > limit => {
                return Err("the replay did not end in time".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn has_left(client: &Weak<()>) -> bool {
    client.strong_count() == 0
}

/// Returns the front and the supervisor of a pool, by its name in a recorded request.
fn pool<'a>(
    sources: &'a StatusSources,
    name: &str,
) -> Result<(&'a FrontHandle, &'a Handle), String> {
    if name.is_empty() || name == DEFAULT_POOL {
        return Ok((&sources.front, &sources.supervisor));
    }
    let found = sources.pools.iter().find(|pool| pool.name == name);
    let found = found.map(|pool| (&pool.front, &pool.supervisor));
    found.ok_or_else(|| format!("there is no pool `{}` any more", name.escape_debug()))
}

/// Returns directives that let a cookie of the request start Xdebug's step debugger. The boot has
/// no session.
fn xdebug(address: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || {
        format!(
            "`{}` is not the address of a debugger\nhint: it is a host and a port, such as \
             `127.0.0.1:9003`",
            address.escape_debug()
        )
    };
    let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_of_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    let is_valid = !host.is_empty() && host.chars().all(is_of_host);
    if !is_valid || port.parse::<u16>().map_or(true, |port| port == 0) {
        return Err(wrong());
    }
    let define = [
        ("zend_extension", "xdebug.so"),
        ("xdebug.mode", "debug"),
        ("xdebug.start_with_request", "trigger"),
        ("xdebug.discover_client_host", "0"),
        ("xdebug.client_host", host),
        ("xdebug.client_port", port),
    ];
    Ok(define.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
}

/// Whether Xdebug is mapped in that process; true if that is unknown.
fn has_xdebug(pid: i32) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    maps.map_or(true, |maps| maps.contains("xdebug.so"))
}

/// A worker for one replay. Ends it when dropped.
struct Spare<'a> {
    supervisor: &'a Handle,
    id: u64,
    pid: i32,
    client: &'a Weak<()>,
}

impl<'a> Spare<'a> {
    fn start(
        supervisor: &'a Handle,
        script: bool,
        own: Option<OwnTemplate>,
        client: &'a Weak<()>,
    ) -> Result<Spare<'a>, String> {
        let (tell, told) = channel();
        // This thread may have given up; the error is ignored.
        let ready = Box::new(move |result| drop(tell.send(result)));
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        supervisor.send(Command::Spare(SpareOrder { id, script, own, ready }));
        // From now on the worker is ended when this function fails.
        let mut spare = Spare { supervisor, id, pid: 0, client };
        let pid = receive(&told, SPARE_LIMIT, client)?;
        spare.pid = pid.map_err(|why| format!("cannot replay: {why}"))?;
        Ok(spare)
    }
}

impl Drop for Spare<'_> {
    fn drop(&mut self) {
        let (id, kills) = (self.id, has_left(self.client));
        self.supervisor.send(if kills { Command::KillSpare(id) } else { Command::EndSpare(id) });
    }
}

/// Receives the call graph of a replay.
struct GraphReader {
    end: Arc<GraphEnd>,
    ours: GraphEnd,
}

impl GraphReader {
    fn start() -> Result<GraphReader, String> {
        let pair: (GraphEnd, GraphEnd) =
            samovar_channel::pair().map_err(|error| no_graph(&error))?;
        Ok(GraphReader { end: Arc::new(pair.0), ours: descriptors::put_high(pair.1) })
    }

    /// Drops the graphs of the boot: its requests are traced too.
    fn forget(&self) {
        for _ in 0..BOOT_GRAPHS_MAX {
            if !matches!(self.ours.hear_now(), Ok(Some(_))) {
                return;
            }
        }
    }

    /// Returns the graph; null: there is none, for example because the worker has died.
    fn read(self) -> Result<Value, String> {
        let calls = Calls::start(CallsOptions {
            graphs: vec![(String::new(), self.ours)],
            path: None,
            bytes_max: 0,
            trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
            handover_gate: samovar_insight::HandoverGate::default(),
        });
        let calls = calls.map_err(|error| no_graph(&error))?;
        let since = Instant::now();
        let mut graph = Value::Null;
        while graph.is_null() && since.elapsed() < GRAPH_LIMIT {
            match calls.select("", None, None) {
                Ok(selected) if selected.graph.requests > 0 => {
                    graph = serde_json::to_value(&selected.graph).unwrap_or_default();
                }
                _ => std::thread::sleep(GRAPH_LOOK),
            }
        }
        calls.finish();
        Ok(graph)
    }
}

fn no_graph(error: &std::io::Error) -> String {
    format!("cannot receive a call graph: {error}")
}
