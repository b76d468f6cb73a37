//! Replay: a recorded request, run again by a worker that is held back from all other requests.
//!
//! The script is routed again, so a replay after a reload runs the new release. Everything else of
//! the input is as recorded. The request is neither logged nor counted.

use super::internal::{self, Encoded};
use crate::exchange::{Lost, Piece};
use crate::route::path_settings::Terms;
use crate::route::site::{Route, Script};
use crate::runtime::recordings::{
    Recorded, RecordedResponse, ResponseTap, SecretNames, response_head,
};
use crate::setup::Setup;
use crate::shared::Shared;
use samovar_ring::request::{
    FLAG_APP, FLAG_NO_NETWORK, FLAG_REQUEST_ACCOUNTING, FLAG_WHOLE, RequestHead, decode,
    decode_variables, encode_with,
};
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum run time of a replay that a debugger may stop.
const DEBUGGED: Duration = Duration::from_hours(24);

/// Cookie that starts Xdebug's session. Xdebug looks for it in each request, also below a boot.
const TRIGGER: &[u8] = b"XDEBUG_TRIGGER=samovar";

/// A replay to run.
pub struct ReplayOrder {
    /// The request.
    pub recorded: Arc<Recorded>,
    /// Writes to sockets, new connections and new processes are refused.
    pub refuses_network: bool,
    /// A debugger is attached: the time limits do not apply.
    pub is_debugged: bool,
    /// Receives the result.
    pub done: ReplayDone,
}

/// Called once, on the front's thread. Must not block. A front that ends may not call it.
pub type ReplayDone = Box<dyn FnOnce(Result<Replayed, ReplayError>) + Send>;

/// Result of a replay.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Its response. Its status is the one that a client would get.
    pub response: RecordedResponse,
    /// Time until the end of the response.
    pub took: Duration,
    /// Reason why the response is missing or incomplete.
    pub lost: Option<&'static str>,
}

/// Why a replay did not run. Its text is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The recorded request has no body.
    #[error(
        "the request's body was too long to be recorded ({0} bytes)\nhint: only requests with a \
         shorter body can be replayed"
    )]
    BodyCut(u64),
    /// The path leads to no script now.
    #[error("`{0}` is not run as a script now\nhint: `samovar routes` shows its route")]
    NotRouted(String),
    /// The recorded head is invalid.
    #[error("the recorded request is invalid or too long")]
    Invalid,
    /// No worker took it.
    #[error("no worker took the request in time\nhint: try again")]
    NotTaken,
}

impl std::fmt::Debug for ReplayOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayOrder").field("id", &self.recorded.id).finish_non_exhaustive()
    }
}

/// Runs a recorded request, and reports the result.
pub(crate) async fn carry_out(shared: Rc<Shared>, order: ReplayOrder) {
    let result = run(&shared, &order).await;
    (order.done)(result);
}

async fn run(shared: &Rc<Shared>, order: &ReplayOrder) -> Result<Replayed, ReplayError> {
    let input = &order.recorded.input;
    if let Some(bytes) = input.cut {
        return Err(ReplayError::BodyCut(bytes));
    }
    let setup = shared.setup();
    let (head, _) = decode(&input.head).ok_or(ReplayError::Invalid)?;
    let path = head.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let now_ms = samovar_ring::monotonic_ns() / 1_000_000;
    let host = || input.host.split(':').next().unwrap_or_default().as_bytes();
    let routed = setup.routes.route(&shared.disk, host, path, now_ms).await;
    let not_routed = || ReplayError::NotRouted(String::from_utf8_lossy(path).into_owned());
    let routed = routed.map_err(|_| not_routed())?;
    let Route::Script(script) = &routed.route else { return Err(not_routed()) };
    if script.pass.is_some() {
        return Err(not_routed());
    }
    let is_head_only = head.method == b"HEAD";
    let encoded = encode(order, &setup, script)?;
    let time = if order.is_debugged { Some(DEBUGGED) } else { script.terms.time };
    let terms = Terms { time, ..script.terms };
    let request = Encoded {
        head: &encoded,
        body: &input.body,
        lane: script.lane.probe(),
        terms,
        extended: time.unwrap_or(setup.settings.timeouts.extended),
        is_head_only,
    };
    let since = Instant::now();
    let tap = ResponseTap::default();
    let ended = exchange(shared, &request, &tap).await;
    let took = since.elapsed();
    let mut response = tap.take().unwrap_or_default();
    let names = SecretNames::of(&setup.settings.insight.redact);
    response.head = response_head(&response.head, &names);
    let lost = match ended {
        Ok(()) => None,
        Err(Lost::QueueTimeout) => return Err(ReplayError::NotTaken),
        Err(lost) => {
            if response.status == 0 {
                response.status = if matches!(lost, Lost::Overrun(_)) { 504 } else { 502 };
            }
            Some(words(lost))
        }
    };
    Ok(Replayed { response, took, lost })
}

async fn exchange(shared: &Shared, request: &Encoded<'_>, tap: &ResponseTap) -> Result<(), Lost> {
    let (response, mut exchange) = internal::begin(shared, request).await?;
    let (head, body) = response.bytes.split_at(response.head_bytes);
    tap.begin(response.status, head, body);
    if response.is_open {
        exchange.set_tap(tap.clone());
        while let Piece::Bytes(_) = poll_fn(|cx| exchange.poll_piece(cx)).await? {}
    } else {
        tap.complete();
    }
    Ok(())
}

fn words(lost: Lost) -> &'static str {
    match lost {
        Lost::Orphaned(_) => "the worker died",
        Lost::Overrun(_) => "the worker exceeded a time limit",
        _ => "the response is incomplete",
    }
}

/// Encodes the head again: for the script that is routed now, and without the flags of the recorded
/// run.
fn encode(order: &ReplayOrder, setup: &Setup, script: &Script) -> Result<Vec<u8>, ReplayError> {
    let recorded = &order.recorded.input.head;
    let (head, headers) = decode(recorded).ok_or(ReplayError::Invalid)?;
    let variables = decode_variables(recorded).ok_or(ReplayError::Invalid)?;
    let mut flags = head.flags & !(FLAG_APP | FLAG_REQUEST_ACCOUNTING | FLAG_WHOLE);
    if script.lane.is_app() {
        flags |= FLAG_APP;
    }
    if order.refuses_network {
        flags |= FLAG_NO_NETWORK;
    }
    // Of the cookies in `headers`, PHP reads only the field.
    let debugged = order.is_debugged.then(|| match head.cookie {
        Some(cookies) => [cookies, b"; ", TRIGGER].concat(),
        None => TRIGGER.to_vec(),
    });
    let head = RequestHead {
        script_filename: &script.filename,
        document_root: setup.site.root.as_os_str().as_bytes(),
        cookie: debugged.as_deref().or(head.cookie),
        flags,
        ..head
    };
    let mut encoded = Vec::new();
    encode_with(&head, headers, variables, &mut encoded).map_err(|_| ReplayError::Invalid)?;
    Ok(encoded)
}
