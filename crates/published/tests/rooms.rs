//! The modules of this crate build on each other, from the encoding to the service: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "limits",
        "encoding",
        "json",
        "layout",
        "region",
        "room",
        "index",
        "reader",
        "publisher",
        "service",
        "publishing",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
