//! Checks that all files name the same version, and that CHANGELOG.md has the form from which
//! `make release-prepare` makes a release.

use samovar_testkit::workspace;
use std::process::Command;

#[test]
fn versions_are_equal_and_changelog_has_its_form() {
    let output = Command::new("/usr/bin/python3")
        .current_dir(workspace())
        .args(["-B", "scripts/release.py", "check"])
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
