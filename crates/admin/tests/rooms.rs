//! The modules of this crate go from the data of a page to the listener that serves it: none
//! imports a higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "query",
        "format",
        "known_releases",
        "range",
        "range_links",
        "queue_periods",
        "period_cache",
        "figures",
        "memory",
        "comparisons",
        "planner",
        "host",
        "sources",
        "periods",
        "health",
        "frame",
        "chart",
        "reader",
        "live",
        "response",
        "access",
        "pages",
        "arrivals",
        "listener",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
