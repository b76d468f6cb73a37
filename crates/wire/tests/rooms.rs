//! The modules of this crate build on each other, from the parts of a status to its judgement: none
//! imports a higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "traceparent",
        "rejection",
        "queues",
        "counters",
        "resources",
        "shared",
        "upstreams",
        "capacity",
        "finding",
        "rejection",
        "schedules",
        "php",
        "canary",
        "status",
        "health",
        "figures",
        "facts",
        "boot",
        "includes",
        "profile",
        "calls",
        "record",
        "upgrade",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
