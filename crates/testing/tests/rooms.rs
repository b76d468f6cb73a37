//! Checks the layers of this crate: no module uses a higher one, and no files import each other in
//! a circle.

#[test]
fn modules_use_only_lower_layers() {
    let rooms = [
        "case",
        "junit",
        "quarantine",
        "framework",
        "scratch",
        "options",
        "filter",
        "unit",
        "suite",
        "order",
        "ending",
        "image",
        "results",
        "run",
        "report",
        "difference",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
