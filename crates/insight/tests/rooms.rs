//! The modules of this crate follow a finished request to the exporters: none imports a higher one,
//! and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "hex_id",
        "bounds",
        "releases",
        "finished",
        "report",
        "heat_map",
        "histogram",
        "batch",
        "intake",
        "bounded_map",
        "recorded_error",
        "recent_requests",
        "errors",
        "redaction",
        "route_name",
        "checkpoint_savings",
        "handover_gate",
        "store",
        "statements",
        "recent_parts",
        "route",
        "series",
        "sources",
        "observation",
        "aggregate",
        "sink",
        "slow_log",
        "pinba",
        "export",
        "aggregator",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
