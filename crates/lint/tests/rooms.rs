//! Checks the layers of this crate: no module uses a higher one, and no files import each other in
//! a circle.

#[test]
fn modules_use_only_lower_layers() {
    let rooms = ["source", "git", "compiler", "run", "report"];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
