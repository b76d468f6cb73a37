//! The rooms of this crate: none knows a higher one, and no files import each other in a circle.

#[test]
fn rooms_know_only_lower_ones() {
    let rooms = [
        "terminal",
        "logging",
        "panics",
        "service",
        "descriptors",
        "rights",
        "binary",
        "engine",
        "companion",
        "handover",
        "convert",
        "certificates",
        "pools",
        "sampling",
        "graphs",
        "loads",
        "publish",
        "control",
        "reload",
        "upgrade",
        "serve",
        "commands",
        "trial",
        "compare",
        "leaks",
        "calls",
        "boot",
        "spy",
        "profile",
        "top",
        "args",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
