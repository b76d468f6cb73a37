//! The modules of this crate build on each other, from the object file to the trial: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = ["object", "plan", "apply", "functions", "rule", "texts", "trial"];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
