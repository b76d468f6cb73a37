//! Checks the layers of this crate: no module uses a higher one, and no files import each other in
//! a circle.

#[test]
fn modules_use_only_lower_layers() {
    let rooms = [
        "terminal",
        "logging",
        "panics",
        "service",
        "descriptors",
        "rights",
        "binary",
        "admin_token",
        "engine",
        "companion",
        "handover",
        "convert",
        "certificates",
        "pools",
        "sampling",
        "graphs",
        "loads",
        "machine_load",
        "idle",
        "jobs",
        "intake",
        "schedules",
        "publish",
        "canary",
        "control",
        "reload",
        "upgrade",
        "development",
        "serve",
        "check",
        "facts",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
