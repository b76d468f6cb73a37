//! The modules of this crate go from one request to a queue of them: none imports a higher one, and
//! no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = ["agent", "get", "post", "waits", "courier", "teller"];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
