//! The modules of this crate build on each other, from system calls to the loop: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "backoff",
        "limits",
        "secrets",
        "sandbox",
        "identity",
        "peer",
        "os",
        "news",
        "end",
        "recycle",
        "program",
        "settings",
        "workers",
        "scale",
        "template",
        "consoles",
        "one_shots",
        "overrun_diagnosis",
        "handle",
        "generation",
        "sampler",
        "successor",
        "run",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
