//! The folders of this crate follow the path of a request: none imports a higher one, and no files
//! import each other in a circle.

#[test]
fn folders_import_only_lower_ones() {
    let rooms = [
        "runtime", "tls", "route", "setup", "exchange", "upstream", "log", "shared", "client",
        "response", "request", "front",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
