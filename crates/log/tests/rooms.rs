//! The modules of this crate go from one line to the thread that writes: none imports a higher one,
//! and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "unprintable",
        "file_class",
        "path_folding",
        "sql",
        "lines",
        "line",
        "record",
        "target",
        "queue",
        "signals",
        "writer",
        "intake",
        "pool",
        "throttle",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
