//! Checks the layers of this crate: no module uses a higher one, and no files import each other in
//! a circle.

#[test]
fn modules_use_only_lower_layers() {
    let rooms = [
        "usage_error",
        "arguments",
        "php_flags",
        "subcommand",
        "control_client",
        "known_names",
        "commands",
        "includes",
        "trial",
        "compare",
        "compression",
        "leaks",
        "preload",
        "calls",
        "boot",
        "replay",
        "spy",
        "profile",
        "top",
        "doctor",
        "plan",
        "experiment",
        "deploy",
        "init",
        "dev",
        "test_suite",
        "lint",
        "migrate",
        "explain",
        "document",
        "args",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
