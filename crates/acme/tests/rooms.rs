//! The modules of this crate go from the plan to the thread that carries it out: none imports a
//! higher one, and no files import each other in a circle.

#[test]
fn modules_import_only_lower_ones() {
    let rooms = [
        "plan",
        "validity",
        "store",
        "local",
        "stage",
        "failure",
        "http",
        "account",
        "order",
        "renewal_thread",
    ];
    samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
}
