//! Metrics of the capacity.

use samovar_insight::export::exposition::{Exposition, Kind};
use samovar_wire::CapacityStatus;

pub(super) fn metrics(of: &CapacityStatus, page: &mut Exposition) {
    if of.seconds <= 0.0 {
        return;
    }
    page.family("samovar_cores", Kind::Gauge, "Cores that this server may use.");
    page.sample(&[], of.cores);
    page.family("samovar_cores_used", Kind::Gauge, "Cores used in the last minute, by user.");
    for (by, cores) in
        [("server", of.cores_used), ("others", of.cores_others), ("hypervisor", of.cores_stolen)]
    {
        page.sample(&[("by", by)], cores);
    }
    page.family("samovar_cores_free", Kind::Gauge, "Cores left in the last minute.");
    page.sample(&[], of.cores_free);
    page.family(
        "samovar_cpu_throttled_ratio",
        Kind::Gauge,
        "Share of the quota's periods with throttling in the last minute.",
    );
    page.sample(&[], of.throttled);
    if of.worker_bytes > 0 {
        page.family("samovar_worker_bytes", Kind::Gauge, "Private memory of a further worker.");
        #[allow(clippy::cast_precision_loss)] // Far below 2^52.
        page.sample(&[], of.worker_bytes as f64);
    }
    if let Some(more) = of.requests_more_per_second {
        page.family(
            "samovar_capacity_requests_per_second",
            Kind::Gauge,
            "Further requests per second that the server carries, by the resource that ends first.",
        );
        page.sample(&[("limit", &of.limit)], more);
    }
}
