//! The modules of this crate build on each other, from the encoding to the socket: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "encoding",
        "lossless",
        "php_setup",
        "exit",
        "php_versions",
        "engine",
        "options",
        "asked",
        "order",
        "event",
        "socket",
        "test_run",
        "lint",
        "reply_socket",
        "jobs",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
