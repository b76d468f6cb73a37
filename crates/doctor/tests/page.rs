//! The guide's table of checks is that of the code. `UPDATE=1` writes it.

use samovar_testkit::workspace;
use std::fs;

const MARK: &str = "<!-- Generated: UPDATE=1 cargo test -p samovar-doctor page -->\n";

#[test]
fn page_lists_all_checks() {
    let path = workspace().join("docs/guide/doctor.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (before, _) = page.split_once(MARK).expect("the mark of the table");
    let expected = format!("{before}{MARK}{}", samovar_doctor::table());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &expected).expect("our own page");
    }
    assert_eq!(fs::read_to_string(&path).expect("the page"), expected, "UPDATE=1 writes the page");
}
