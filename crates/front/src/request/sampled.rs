//! submit: which requests to the booted application run as whole scripts, so that it is known what a script would take.
//!
//! A share of those that change nothing and have no body, drawn by lot. Nobody waits for it: they go to workers for scripts,
//! where one has nothing to do; else they run as all do, and such a worker is asked for.

use super::context::ScriptRequest;
use super::upload::Upload;
use crate::exchange::Exchanges;
use http::Method;
use samovar_ring::Lane;

/// Whether this one does. Nobody draws where nobody would see what it took.
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
