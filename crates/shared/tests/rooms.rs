//! The modules of this crate build on each other, from locks and rows to the named objects: none
//! imports a higher one, and no files import each other in a circle.
#![cfg(not(loom))]

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "sync",
        "os",
        "limits",
        "lock",
        "chain",
        "memory",
        "process_registry",
        "table_error",
        "columns",
        "buckets",
        "directory",
        "client",
        "counter",
        "table",
        "named_lock",
        "limiter",
        "cache",
        "breaker",
        "pins",
        "figures",
        "interleavings",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
