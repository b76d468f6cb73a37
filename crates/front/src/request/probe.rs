//! A request of the server's own: what workers that are held back answer, and what those answer that serve.
//!
//! A reload asks it before it lets a new generation take over. It goes the way of any request, from the route to the ring,
//! and is told from a client's by its lane; nobody reads its answer but for the status, and it is in no log.

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

/// What the front stands for in the probe's head: nobody has connected.
const ADDRESS: &[u8] = b"127.0.0.1";
/// Whom it asks for, where the settings name nobody.
const HOST: &str = "localhost";
/// By what PHP's messages name the probe.
const REQUEST_ID: &[u8] = b"reload-probe";
/// How long the old generation may take to show that it does no better than the new one.
const OLD_LIMIT: Duration = Duration::from_secs(10);
/// From here on an answer says that something is wrong with the server's side.
const WRONG_FROM: u16 = 500;

/// What is asked, by which settings, and whom to tell.
pub(crate) struct ProbeOrder {
    pub(crate) target: String,
    pub(crate) next: ValidSettings,
    pub(crate) done: ProbeDone,
}

/// Called once, on the front's thread; must not block.
pub type ProbeDone = Box<dyn FnOnce(Result<Probed, String>) + Send>;

/// What came of a probe that stands in nothing's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// Status of the new generation's answer.
    pub status: u16,
    /// The front controller has answered it.
    pub is_app: bool,
}

impl std::fmt::Debug for ProbeOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProbeOrder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Asks the workers that are held back; should they fail, also those that serve.
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
            "`{target}` {} by the new generation, and {} by the old one\n\
             hint: the server's log may say why; `samovar reload --force` lets it take over all the same",
            new.words(),
            old.words()
        )),
        _ => {
            tracing::warn!(
                target = target.as_str(),
                "the probe {} by the new generation, and the old one does no better",
                new.words()
            );
            Ok(new.probed())
        }
    };
    done(result);
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    status: Result<u16, Lost>,
    is_app: bool,
}

impl Answered {
    fn probed(self) -> Probed {
        Probed { status: self.status.unwrap_or(WRONG_FROM), is_app: self.is_app }
    }

    fn words(self) -> String {
        match self.status {
            Ok(status) => format!("is answered with {status}"),
            Err(Lost::QueueTimeout) => "is not taken by any worker".to_owned(),
            Err(Lost::Overrun(_)) => "gets no answer in time".to_owned(),
            Err(Lost::Orphaned(_)) => "kills the worker that runs it".to_owned(),
            Err(_) => "gets no whole answer".to_owned(),
        }
    }
}

async fn ask(shared: &Rc<Shared>, setup: &Setup, target: &str, is_held: bool) -> Answered {
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let now_ms = samovar_ring::monotonic_ns() / 1_000_000;
    let host = || setup.settings.server_name.as_deref().unwrap_or(HOST).as_bytes();
    let of_front = |status| Answered { status: Ok(status), is_app: false };
    let routed = setup.routes.route(&shared.disk, host, path.as_bytes(), now_ms).await;
    let Ok(routed) = routed else { return of_front(503) };
    match &routed.route {
        Route::Script(script) => {
            let lane = if is_held { script.lane.probe() } else { script.lane };
            let status = run(shared, setup, script, target, lane).await;
            Answered { status, is_app: script.lane == Lane::App }
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
    let filling = shared.exchanges.borrow_mut().fill();
    let filling = if let Some(filling) = filling {
        filling
    } else {
        let mut wait = SlotWait::new(&shared.exchanges);
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
            return Err(Lost::Broken("the probe is too long"));
        }
        exchanges.put_request(&filling, &encoded);
        exchanges.put_body(&filling, &[]);
        let extended = setup.settings.timeouts.extended;
        let order = Order { lane, terms: script.terms, extended, waited_ms: 0, held: None };
        exchanges.submit(filling, order).map_err(|()| Lost::QueueTimeout)?
    };
    // There may be no connection whose deadlines keep the sweep going.
    shared.resume_sweeping();
    shared.exchanges.borrow_mut().announce_lane(lane);
    let mut exchange = Exchange::new(&shared.exchanges, submitted);
    let answer = loop {
        if let WorkerMessage::Answer(answer) = poll_fn(|cx| exchange.poll_answer(false, cx)).await?
        {
            break answer;
        }
    };
    if answer.is_open {
        // The script runs to its end: what it stores is whole, and what is wrong with it shows.
        while let Piece::Bytes(_) = poll_fn(|cx| exchange.poll_piece(cx)).await? {}
    }
    Ok(answer.status)
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
