//! Requests of the server itself, which have no client: reload probes and batches of jobs. They are
//! processed like a client's request, from the route to the ring, and are not logged.

use super::upload;
use crate::exchange::{Exchange, Lost, Order, Piece, ResponseReader, SlotWait, WorkerMessage};
use crate::route::path_settings::Terms;
use crate::route::site::Script;
use crate::setup::Setup;
use crate::shared::Shared;
use samovar_ring::request::{FLAG_APP, RequestHead, encode_with};
use samovar_ring::{BODY_BYTES, Lane};
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Client and server address in the head, because there is no connection.
const ADDRESS: &[u8] = b"127.0.0.1";
/// Host name if the settings specify none.
const HOST: &str = "localhost";

/// Trace context of a request of the server. Empty texts are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceHeaders {
    /// Value of `traceparent`.
    pub traceparent: String,
    /// Value of `tracestate`.
    pub tracestate: String,
}

impl TraceHeaders {
    fn named<'a>(
        &'a self,
        names: [&'a [u8]; 2],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone {
        let values = [self.traceparent.as_bytes(), self.tracestate.as_bytes()];
        names.into_iter().zip(values).filter(|(_, value)| !value.is_empty())
    }
}

/// A request of the server.
pub(super) struct InternalRequest<'a> {
    pub(super) method: &'a [u8],
    pub(super) target: &'a str,
    /// Request ID in PHP's messages.
    pub(super) id: &'a [u8],
    /// Must fit into the slot.
    pub(super) body: &'a [u8],
    pub(super) content_type: Option<&'a [u8]>,
    /// Trace that PHP gets, as headers and as variables.
    pub(super) trace: &'a TraceHeaders,
    pub(super) lane: Lane,
    /// Flags of the head, in addition to that of the lane.
    pub(super) flags: u32,
    /// Maximum length of the response's body that is returned. The rest is read and dropped.
    pub(super) response_bytes_max: usize,
}

/// Host name of the application, or a default.
pub(super) fn host(setup: &Setup) -> &[u8] {
    setup.settings.server_name.as_deref().unwrap_or(HOST).as_bytes()
}

/// Runs the request to its end. Returns the status and the body of its response.
pub(super) async fn run(
    shared: &Shared,
    setup: &Setup,
    script: &Script,
    request: &InternalRequest<'_>,
) -> Result<(u16, Vec<u8>), Lost> {
    let mut encoded = Vec::new();
    let head = head(setup, script, request);
    let headers: [(&[u8], &[u8]); 2] = [(b"host", host(setup)), (b"user-agent", b"Samovar")];
    let trace = request.trace;
    let headers = headers.into_iter().chain(trace.named([b"traceparent", b"tracestate"]));
    let variables = trace.named([b"TRACEPARENT", b"TRACESTATE"]).chain(script.variables());
    if encode_with(&head, headers, variables, &mut encoded).is_err() {
        return Err(Lost::Broken("request of the server too long"));
    }
    let encoded = Encoded {
        head: &encoded,
        body: request.body,
        lane: request.lane,
        terms: script.terms,
        extended: setup.settings.timeouts.extended,
        is_head_only: false,
    };
    let max = request.response_bytes_max;
    let mut body = Vec::new();
    let mut keep = |bytes: &[u8]| {
        let room = max.saturating_sub(body.len());
        body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    };
    let (response, mut exchange) = begin(shared, &encoded).await?;
    keep(response.bytes.get(response.head_bytes..).unwrap_or_default());
    if response.is_open {
        // The script runs to its end, so that its stored data is complete and late failures are
        // detected.
        while let Piece::Bytes(bytes) = poll_fn(|cx| exchange.poll_piece(cx)).await? {
            keep(&bytes);
        }
    }
    Ok((response.status, body))
}

/// A request in the form in which a worker takes it.
pub(super) struct Encoded<'a> {
    pub(super) head: &'a [u8],
    /// A body that does not fit into the slot is fed while the worker reads.
    pub(super) body: &'a [u8],
    pub(super) lane: Lane,
    pub(super) terms: Terms,
    /// Maximum run time if the script requests more time.
    pub(super) extended: Duration,
    /// The body of the response is not read.
    pub(super) is_head_only: bool,
}

/// Submits a request, and waits for the start of its response.
pub(super) async fn begin(
    shared: &Shared,
    request: &Encoded<'_>,
) -> Result<(ResponseReader, Exchange), Lost> {
    let filling = shared.exchanges.borrow_mut().fill(None);
    let filling = if let Some(filling) = filling {
        filling
    } else {
        let mut wait = SlotWait::new(&shared.exchanges, None);
        poll_fn(|cx| wait.poll(cx)).await.map_err(|()| Lost::QueueTimeout)?
    };
    let Encoded { lane, terms, extended, body, .. } = *request;
    let is_fed = body.len() > BODY_BYTES;
    let submitted = {
        let mut exchanges = shared.exchanges.borrow_mut();
        exchanges.put_request(&filling, request.head);
        if !is_fed && !exchanges.put_body(&filling, body) {
            exchanges.give_up(filling);
            return Err(Lost::Broken("body of the server's request too long"));
        }
        let (waited_ms, held, turn, is_canary) = (0, None, None, false);
        let order = Order { lane, terms, extended, waited_ms, held, turn, is_canary };
        exchanges.submit(filling, order).map_err(|()| Lost::QueueTimeout)?
    };
    // There may be no connection whose deadlines keep the sweep running.
    shared.resume_sweeping();
    shared.exchanges.borrow_mut().announce_lane(lane);
    let mut exchange = Exchange::new(&shared.exchanges, submitted);
    if is_fed {
        tokio::task::spawn_local(upload::pump_bytes(exchange.feed(), body.to_vec()));
    }
    loop {
        let message = poll_fn(|cx| exchange.poll_response(request.is_head_only, cx)).await?;
        if let WorkerMessage::ResponseReader(response) = message {
            return Ok((response, exchange));
        }
    }
}

fn head<'a>(
    setup: &'a Setup,
    script: &'a Script,
    request: &InternalRequest<'a>,
) -> RequestHead<'a> {
    let target = request.target;
    let of_lane = if request.lane.is_app() { FLAG_APP } else { 0 };
    RequestHead {
        method: request.method,
        target: target.as_bytes(),
        query: target.split_once('?').map_or("", |(_, query)| query).as_bytes(),
        protocol: b"HTTP/1.1",
        script_filename: &script.filename,
        script_name: &script.name,
        document_uri: &script.name,
        path_info: &script.path_info,
        document_root: setup.site.root.as_os_str().as_bytes(),
        server_name: host(setup),
        server_addr: ADDRESS,
        remote_addr: ADDRESS,
        request_id: request.id,
        content_type: request.content_type,
        content_length: request.content_type.map(|_| request.body.len() as u64),
        server_port: 80,
        flags: of_lane | request.flags,
        ..RequestHead::default()
    }
}
