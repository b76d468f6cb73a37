//! The program, as `make lint` starts it.

use std::process::Command;

#[test]
fn path_with_findings_is_an_error_with_each_finding() {
    let folder = std::env::temp_dir().join(format!("samovar-language-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let git = Command::new("git").args(["init", "-q"]).current_dir(&folder).status();
    assert!(git.expect("git is installed").success());
    std::fs::write(folder.join("a.md"), "# A page\n\nNobody is told.\n").expect("our own folder");
    let output = Command::new(env!("CARGO_BIN_EXE_lint-language"))
        .arg("a.md")
        .current_dir(&folder)
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    std::fs::remove_dir_all(&folder).expect("our own folder");
    assert!(!output.status.success());
    assert!(text.contains("a.md:3: docs: `nobody`"), "{text}");
    assert!(text.contains("docs\t2\n"), "{text}");
}
