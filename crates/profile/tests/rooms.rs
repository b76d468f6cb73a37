//! The modules of this crate go from a sample to the results of queries: none imports a higher one,
//! and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "fields",
        "memory_file",
        "sample",
        "current_minute",
        "store",
        "query",
        "push",
        "profiles",
        "calls",
        "loads",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
