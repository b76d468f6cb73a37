//! `samovar compression`: sizes and times of codings for pages and files.

use super::APP;
use samovar_testkit::{Server, binary};
use serde_json::Value;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(binary()).arg("compression").args(arguments).output().expect("the binary runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn error(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the share of a coding and level.
fn share(found: &Value, coding: &str, level: i64, dictionary: bool) -> f64 {
    let rows = found["levels"].as_array().expect("a list");
    let row = rows.iter().find(|row| {
        row["coding"] == coding && row["level"] == level && row["dictionary"] == dictionary
    });
    row.and_then(|row| row["share"].as_f64()).unwrap_or_else(|| panic!("{coding} {level}: {found}"))
}

#[test]
fn codings_are_compared_with_pages_of_a_server() {
    let server = Server::script(APP).start();
    let page = format!("http://{}/?bytes=20000", server.address());
    let found = json(&[&page, "--link", "1M"]);
    assert_eq!((&found["samples"], &found["bytes"]), (&1.into(), &20_000.0.into()), "{found}");
    for (coding, level) in [("zstd", 3), ("br", 4), ("gzip", 4)] {
        assert!(share(&found, coding, level, false) < 0.5, "{coding}: {found}");
    }
    assert!(share(&found, "br", 11, false) < share(&found, "br", 1, false), "{found}");
    let advice = found["advice"][1].as_str().expect("a text");
    assert!(advice.contains("compression.codings"), "{found}");
    let output = run(&[&page]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let servers = text.lines().filter(|line| line.ends_with("(server)")).count();
    assert_eq!(servers, 3, "{text}");
    assert!(!text.contains("said again"), "no contents: {text}");
    let missing = format!("http://{}/?status=404", server.address());
    assert!(error(&[&missing]).contains("has the status 404\nhint: "));
    server.stop();
}

/// Small values with the same structure: only a dictionary makes them much smaller.
#[test]
fn dictionary_helps_small_values_of_equal_structure() {
    let folder = tempfile::tempdir().expect("a folder");
    for n in 0..400_u32 {
        let value = format!(
            "_sf2_attributes|a:3:{{s:18:\"_csrf/https-login\";s:43:\"{:043}\";s:7:\"user_id\";i:{n};\
             s:4:\"cart\";a:1:{{i:0;s:9:\"product-{}\";}}}}_sf2_meta|a:3:{{s:1:\"u\";i:17{:08};}}",
            u64::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            n % 10,
            n * 7919
        );
        std::fs::write(folder.path().join(format!("sess_{n}")), value).expect("our own file");
    }
    std::fs::write(folder.path().join("empty"), "").expect("our own file");
    let path = folder.path().to_str().expect("a path in UTF-8");
    let found = json(&["--files", path]);
    assert_eq!((&found["samples"], &found["left_out"]), (&400.into(), &1.into()), "{found}");
    let (plain, trained) = (share(&found, "zstd", 3, false), share(&found, "zstd", 3, true));
    assert!(trained < 0.7 * plain, "{trained} {plain}");
    assert!(!found["advice"].as_array().expect("a list").is_empty(), "{found}");
}

#[test]
fn missing_samples_are_errors_with_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().to_str().expect("a path in UTF-8");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it runs").success());
    // Opening a pipe without a writer would wait for ever.
    let pipe = fifo.to_str().expect("a path in UTF-8");
    for (arguments, expected) in [
        (&[][..], "nothing to compress"),
        (&["ftp://example.org/"], "`ftp://example.org/` is not an address"),
        (&["http://127.0.0.1:1/"], "cannot read `http://127.0.0.1:1/`"),
        (&["--files", "/no/such/folder"], "cannot read `/no/such/folder`"),
        (&["--files", empty], "no file has contents"),
        (&["--files", pipe], "it is not a file"),
    ] {
        let text = error(arguments);
        assert!(text.contains(expected) && text.contains("\nhint: "), "{arguments:?}: {text}");
    }
    for wrong in [&["--link", "fast"][..], &["http://a/", "--files", "x"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
