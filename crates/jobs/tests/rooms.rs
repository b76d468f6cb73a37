//! Checks the layers of this crate: no module uses a higher one, and no files import each other in
//! a circle.

#[test]
fn modules_use_only_lower_layers() {
    let rooms = [
        "trace",
        "job",
        "batch",
        "store",
        "sqlite",
        "token_bucket",
        "line_up",
        "death_log",
        "push_check",
        "command",
        "totals",
        "minutes",
        "verdict",
        "backend",
        "catalogue",
        "engine",
        "shared",
        "service",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
