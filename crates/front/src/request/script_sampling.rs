//! submit: runs some requests to the booted application as whole scripts, to measure the cost of a
//! plain script.
//!
//! The sample is a random share of GET and HEAD requests without a body. Requests never wait for
//! this: a sampled request goes to a worker for scripts only if one is idle. Otherwise it runs as
//! usual, and a worker for scripts is requested.

use super::context::ScriptRequest;
use super::upload::Upload;
use crate::exchange::Exchanges;
use http::Method;
use samovar_ring::Lane;

/// Whether this request runs as a whole script. None is drawn if its cost would not be recorded.
pub(super) fn runs_whole(
    request: &ScriptRequest<'_>,
    upload: &Upload,
    exchanges: &mut Exchanges,
) -> bool {
    let ppm = request.context.setup.settings.insight.script_share_ppm;
    if ppm == 0 || request.script.lane != Lane::App {
        return false;
    }
    let shared = request.shared();
    let is_harmless = matches!(request.parts.method, Method::GET | Method::HEAD);
    let is_drawn = is_harmless
        && matches!(upload, Upload::None)
        && shared.recorder.wants_reports()
        && shared.lots.draw(ppm);
    if !is_drawn {
        return false;
    }
    let has_idle = exchanges.has_idle(Lane::Script);
    if !has_idle {
        exchanges.announce_lane(Lane::Script);
    }
    has_idle
}
