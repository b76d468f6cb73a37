//! The reload probe: a request of the server itself to held workers and, if they fail, to the
//! serving workers.
//!
//! A reload sends it before a new generation takes over. It is processed like a client's request,
//! from the route to the ring, and differs only in its lane. Only the status of the response is
//! used. The request is not logged.

use super::internal::{self, InternalRequest, TraceHeaders};
use crate::exchange::Lost;
use crate::route::site::Route;
use crate::setup::{Setup, ValidSettings};
use crate::shared::Shared;
use samovar_ring::Lane;
use std::rc::Rc;
use std::time::Duration;

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
    let host = || internal::host(setup);
    let of_front = |status| ProbeResult { status: Ok(status), is_app: false };
    let routed = setup.routes.route(&shared.disk, host, path.as_bytes(), now_ms).await;
    let Ok(routed) = routed else { return of_front(503) };
    match &routed.route {
        Route::Script(script) => {
            let lane = if is_held { script.lane.probe() } else { script.lane };
            let request = InternalRequest {
                method: b"GET",
                target,
                id: REQUEST_ID,
                body: &[],
                content_type: None,
                trace: &TraceHeaders::default(),
                lane,
                flags: 0,
                response_bytes_max: 0,
            };
            let ran = internal::run(shared, setup, script, &request).await;
            ProbeResult { status: ran.map(|(status, _)| status), is_app: script.lane == Lane::App }
        }
        Route::Static(_) => of_front(200),
        Route::Redirect(_) => of_front(301),
        Route::Forbidden(_) => of_front(403),
        Route::Moved(_, status) | Route::Status(status, _) => of_front(*status),
        Route::NotFound | Route::Absent => of_front(404),
        Route::BadRequest(_) => of_front(400),
    }
}
