//! The reload probe: a request of the server itself to held workers and, if they fail, to the
//! serving workers.
//!
//! A reload sends it before a new generation takes over. It is processed like a client's request,
//! from the route to the ring, and differs only in its lane. Only the status of the response is
//! used. The request is not logged.

use crate::exchange::{Exchange, Lost, Order, Piece, SlotWait, WorkerMessage};
use crate::route::site::{Route, Script};
use crate::setup::{Setup, ValidSettings};
use crate::shared::Shared;
use samovar_ring::Lane;
use samovar_ring::request::{FLAG_APP, RequestHead, encode_with};
use std::future::poll_fn;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use std::time::Duration;

/// Client and server address in the probe's head, because there is no connection.
const ADDRESS: &[u8] = b"127.0.0.1";
/// Host name in the probe if the settings specify none.
const HOST: &str = "localhost";
/// Request ID of the probe in PHP's messages.
const REQUEST_ID: &[u8] = b"reload-probe";
/// Time limit for the old generation's response to the same probe.
const OLD_LIMIT: Duration = Duration::from_secs(10);
/// Lowest status that indicates a failure of the server.
const WRONG_FROM: u16 = 500;

/// A probe to send: its target, its settings, and the callback for the result.
pub(crate) struct ProbeOrder {
    pub(crate) target: String,
    pub(crate) next: ValidSettings,
    pub(crate) done: ProbeDone,
}

/// Called once, on the front's thread. Must not block.
pub type ProbeDone = Box<dyn FnOnce(Result<Probed, String>) + Send>;

/// Result of a probe that allows the new generation to take over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Status of the new generation's response.
    pub status: u16,
    /// The front controller handled the probe.
    pub is_app: bool,
}

impl std::fmt::Debug for ProbeOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeOrder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Sends the probe to the held workers and, if they fail, also to the serving workers.
pub(crate) async fn carry_out(shared: Rc<Shared>, order: ProbeOrder) {
    let ProbeOrder { target, next, done } = order;
    let new = ask(&shared, &next.into_setup(), &target, true).await;
    let is_good = new.status.is_ok_and(|status| status < WRONG_FROM);
    if is_good {
        done(Ok(new.probed()));
        return;
    }
    let setup = shared.setup();
    let old = tokio::time::timeout(OLD_LIMIT, ask(&shared, &setup, &target, false)).await;
    let result = match old {
        Ok(old) if old.status.is_ok_and(|status| status < WRONG_FROM) => Err(format!(
            "`{target}` {} in the new generation, and {} in the old one\n\
             hint: check the server's log; to activate the new generation anyway, run \
             `samovar reload --force`",
            new.words(),
            old.words()
        )),
        _ => {
            tracing::warn!(
                target = target.as_str(),
                "the probe {} in the new generation, and also failed in the old one",
                new.words()
            );
            Ok(new.probed())
        }
    };
    done(result);
}

#[derive(Clone, Copy, Debug)]
struct ProbeResult {
    status: Result<u16, Lost>,
    is_app: bool,
}

impl ProbeResult {
    fn probed(self) -> Probed {
        Probed { status: self.status.unwrap_or(WRONG_FROM), is_app: self.is_app }
    }

    fn words(self) -> String {
        match self.status {
            Ok(status) => format!("returned {status}"),
            Err(Lost::QueueTimeout) => "was not taken by any worker".to_owned(),
            Err(Lost::Overrun(_)) => "got no response in time".to_owned(),
            Err(Lost::Orphaned(_)) => "killed its worker".to_owned(),
            Err(_) => "got an incomplete response".to_owned(),
        }
    }
}

async fn ask(shared: &Rc<Shared>, setup: &Setup, target: &str, is_held: bool) -> ProbeResult {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let now_ms = samovar_ring::monotonic_ns() / 1_000_000;
    let host = || setup.settings.server_name.as_deref().unwrap_or(HOST).as_bytes();
    let of_front = |status| ProbeResult { status: Ok(status), is_app: false };
    let routed = setup.routes.route(&shared.disk, host, path.as_bytes(), now_ms).await;
    let Ok(routed) = routed else { return of_front(503) };
    match &routed.route {
        Route::Script(script) => {
            let lane = if is_held { script.lane.probe() } else { script.lane };
            let status = run(shared, setup, script, target, lane).await;
            ProbeResult { status, is_app: script.lane == Lane::App }
        }
        Route::Static(_) => of_front(200),
        Route::Redirect(_) => of_front(301),
        Route::Forbidden(_) => of_front(403),
        Route::Moved(_, status) | Route::Status(status, _) => of_front(*status),
        Route::NotFound | Route::Absent => of_front(404),
        Route::BadRequest(_) => of_front(400),
    }
}

async fn run(
    shared: &Rc<Shared>,
    setup: &Setup,
    script: &Script,
    target: &str,
    lane: Lane,
) -> Result<u16, Lost> {
    let filling = shared.exchanges.borrow_mut().fill(None);
    let filling = if let Some(filling) = filling {
        filling
    } else {
        let mut wait = SlotWait::new(&shared.exchanges, None);
        poll_fn(|cx| wait.poll(cx)).await.map_err(|()| Lost::QueueTimeout)?
    };
    let submitted = {
        let mut exchanges = shared.exchanges.borrow_mut();
        let mut encoded = shared.encoded.borrow_mut();
        let head = head(setup, script, target);
        let host = setup.settings.server_name.as_deref().unwrap_or(HOST).as_bytes();
        let headers: [(&[u8], &[u8]); 2] = [(b"host", host), (b"user-agent", b"Samovar")];
        if encode_with(&head, headers, script.variables(), &mut encoded).is_err() {
            exchanges.give_up(filling);
            return Err(Lost::Broken("probe too long"));
        }
        exchanges.put_request(&filling, &encoded);
        exchanges.put_body(&filling, &[]);
        let extended = setup.settings.timeouts.extended;
        let order =
            Order { lane, terms: script.terms, extended, waited_ms: 0, held: None, turn: None };
        exchanges.submit(filling, order).map_err(|()| Lost::QueueTimeout)?
    };
    // There may be no connection whose deadlines keep the sweep running.
    shared.resume_sweeping();
    shared.exchanges.borrow_mut().announce_lane(lane);
    let mut exchange = Exchange::new(&shared.exchanges, submitted);
    let response = loop {
        if let WorkerMessage::ResponseReader(response) =
            poll_fn(|cx| exchange.poll_response(false, cx)).await?
        {
            break response;
        }
    };
    if response.is_open {
        // The script runs to its end, so that its stored data is complete and late failures are
        // detected.
        while let Piece::Bytes(_) = poll_fn(|cx| exchange.poll_piece(cx)).await? {}
    }
    Ok(response.status)
}

fn head<'a>(setup: &'a Setup, script: &'a Script, target: &'a str) -> RequestHead<'a> {
    RequestHead {
        method: b"GET",
        target: target.as_bytes(),
        query: target.split_once('?').map_or("", |(_, query)| query).as_bytes(),
        protocol: b"HTTP/1.1",
        script_filename: &script.filename,
        script_name: &script.name,
        document_uri: &script.name,
        path_info: &script.path_info,
        document_root: setup.site.root.as_os_str().as_bytes(),
        server_name: setup.settings.server_name.as_deref().unwrap_or(HOST).as_bytes(),
        server_addr: ADDRESS,
        remote_addr: ADDRESS,
        request_id: REQUEST_ID,
        server_port: 80,
        flags: if script.lane.is_app() { FLAG_APP } else { 0 },
        ..RequestHead::default()
    }
}
