//! submit: holds the input of a request for a recording.

use super::context::ScriptRequest;
use super::upload::Upload;
use crate::exchange::ResponseReader;
use crate::log::RequestLogEntry;
use crate::route::target::Target;
use crate::runtime::recordings::{RECORDED_BODY_BYTES_MAX, RecordedInput, ResponseTap};

/// Holds the input, if a recording wants it. Reads a body that was stored in a file. The input is
/// only copied here: any search in it would take the front's time for each request.
pub(super) async fn hold(
    request: &ScriptRequest<'_>,
    upload: &Upload,
    entry: &mut RequestLogEntry,
) {
    let shared = request.shared();
    let recordings = &shared.common.recordings;
    let Some(place) = recordings.hold(Target::of(request.parts).path) else { return };
    let (body, cut) = upload.copy(&shared.disk, RECORDED_BODY_BYTES_MAX).await;
    let mut head = Vec::new();
    if request.encode(upload.bytes(), false, &mut head).is_ok() {
        let input = RecordedInput { head, body, cut, ..RecordedInput::default() };
        let words = request.context.setup.settings.insight.redact.clone();
        entry.records(place.draft(shared.pool_name(), input, words));
    }
}

/// Takes the start of the response. Returns the tap for the rest.
pub(super) fn hear(entry: &RequestLogEntry, response: &ResponseReader) -> Option<ResponseTap> {
    let tap = entry.tap()?.clone();
    let (head, body) = response.bytes.split_at(response.head_bytes);
    tap.begin(response.status, head, body);
    if !response.is_open {
        tap.complete();
    }
    Some(tap)
}
