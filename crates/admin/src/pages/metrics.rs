//! `/metrics`: the server's own metrics, then those of its requests.

use crate::memory::Memories;
use crate::response::{self, AdminResponse};
use crate::sources::Sources;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use samovar_insight::export::exposition::{Exposition, Format, Kind};
use samovar_insight::export::{events, metrics, ways};

pub(super) fn page(headers: &HeaderMap, sources: &Sources) -> AdminResponse {
    let accept = headers.get(header::ACCEPT).and_then(|a| a.to_str().ok()).unwrap_or_default();
    let format = Format::of_accept(accept);
    let mut page = Exposition::new(format);
    sources.host.metrics(&mut page);
    if let Some(memories) = sources.kernel.memories() {
        memory(&memories, &mut page);
    }
    if let Some(insight) = &sources.insight {
        let lost = insight.lost();
        metrics(&insight.figures(), lost, &mut page);
        events(insight.events_by_kind(), &mut page);
        ways(insight.tallies(), &mut page);
    }
    let content_type = HeaderValue::from_static(format.content_type());
    response::of_type(StatusCode::OK, content_type, page.finish())
}

#[allow(clippy::cast_precision_loss)] // No machine has 2⁵³ bytes of memory.
fn memory(memories: &Memories, page: &mut Exposition) {
    let each = [("server", memories.server), ("workers", memories.workers)];
    page.family("samovar_memory_private_bytes", Kind::Gauge, "Private memory of the processes.");
    for (name, memory) in each {
        page.sample(&[("of", name)], memory.own as f64);
    }
    page.family(
        "samovar_memory_shared_bytes",
        Kind::Gauge,
        "Proportional share of the shared memory.",
    );
    for (name, memory) in each {
        page.sample(&[("of", name)], memory.shared as f64);
    }
}
