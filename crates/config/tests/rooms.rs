//! The module order of this crate: no module imports a later one, and files do not import each
//! other in a cycle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = ["problem", "schema", "release", "locate", "sources", "docs"];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
