//! The modules of this program follow the way of a request: none imports a higher one, and no files
//! import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "url",
        "options",
        "deadline",
        "schedule",
        "arrivals",
        "failure",
        "response",
        "request",
        "targets",
        "mix",
        "poisson",
        "input",
        "connection",
        "measure",
        "report",
        "drive",
        "figures",
        "open_loop",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
