//! Texts of PHP that would steer a terminal or change the order of the text around them.

use super::bench::{ask, serving, started};
use samovar_testkit::{Server, binary, eventually};
use std::process::Command;

/// Names a route, fails, and logs a message.
const WORK: &str = r#"
    $evil = "evil\u{202e}text\u{2066}\u{1b}[2J\u{9b}";
    Samovar\route($evil);
    error_log("logged $evil");
    http_response_code(500);
    throw new RuntimeException("thrown $evil");
"#;

fn top(server: &Server) -> String {
    let mut command = Command::new(binary());
    let output = command.args(["top", "--control"]).arg(server.control()).output();
    String::from_utf8_lossy(&output.expect("the binary runs").stdout).into_owned()
}

fn assert_harmless(what: &str, text: &str) {
    assert!(text.contains("evil"), "{what} has the text: {text}");
    let is_bad = |c: char| {
        let is_bidi = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        is_bidi || (c.is_control() && !matches!(c, '\n' | '\t'))
    };
    let bad: Vec<_> = text.chars().filter(|c| is_bad(*c)).collect();
    assert!(bad.is_empty(), "{what} has {bad:?}: {text:?}");
}

#[test]
fn control_and_bidi_characters_reach_no_page_terminal_or_log() {
    let server = started(serving("script", WORK).workers(1), "script");
    assert_eq!(server.get("/").status, 500);
    eventually("the route", || ask(&server, "/api/routes").contains("evil").then_some(()));
    for page in ["/", "/routes", "/requests", "/errors"] {
        let text =
            eventually(page, || Some(ask(&server, page)).filter(|text| text.contains("evil")));
        assert_harmless(page, &text);
    }
    assert_harmless("top", &top(&server));
    server.wait_for_log("logged evil");
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("evil")).collect();
    assert_harmless("the log", &lines.join("\n"));
    server.stop();
}
