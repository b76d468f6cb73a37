//! The rooms of this crate, which follow a request: none knows a higher one, and no files import each other in a
//! circle.

#[test]
fn rooms_know_only_lower_ones() {
    let rooms = [
        "runtime", "tls", "route", "setup", "exchange", "upstream", "log", "shared", "client",
        "answer", "request", "front",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
