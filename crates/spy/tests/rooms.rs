//! The modules of this crate follow the reading of a stack: none imports a higher one, and no
//! files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "error",
        "memory",
        "layout",
        "maps",
        "image",
        "threads",
        "engine",
        "callees",
        "frames",
        "stack",
        "pattern",
        "names",
        "heap",
        "values",
        "tables",
        "peek",
        "reader",
        "calls",
        "sockets",
        "activity",
        "account",
        "processes",
        "watch",
        "profile",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
