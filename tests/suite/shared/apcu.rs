//! The functions of the apcu extension on Samovar's cache: each returns the extension's results,
//! and libraries that use it see no difference.

use super::{MODELS, ask, crowd, number};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually, php, workspace};
use serde_json::{Map, Value, json};
use std::process::Command;

fn without(model: &str) -> Start {
    let start = Server::app("apcu").workers(3).env("MODEL", model);
    if model == "script" { start.args(["--disable-checkpoint"]) } else { start }
}

fn start(model: &str) -> Start {
    without(model).config("compat = 'apcu'\nshared.apcu_bytes = '2M'")
}

/// Results of the real extension, in one PHP process.
fn oracle() -> Map<String, Value> {
    let mut php = Command::new(php::program("php"));
    php.args(["-d", "extension=apcu", "-d", "apc.enable_cli=1", "-d", "opcache.enable_cli=0"]);
    let told = php.arg(workspace().join("tests/apps/apcu/alike.php")).output();
    let told = told.expect("PHP's command line is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("it answers JSON")
}

#[test]
fn apcu_functions_return_results_of_extension() {
    let expected = oracle();
    assert!(expected.len() > 50, "all questions are asked: {expected:?}");
    for model in MODELS {
        let server = without(model).config("compat = 'apcu'").start();
        let found = ask(&server, "/alike");
        for (question, response) in &expected {
            assert_eq!(&found[question], response, "{model}: {question}");
        }
    }
}

#[test]
fn libraries_work_with_apcu_functions() {
    for model in MODELS {
        let server = start(model).start();
        for library in ["/symfony", "/laravel", "/composer"] {
            for _ in 0..2 {
                assert_eq!(ask(&server, library), json!([]), "{model}: {library} {}", server.log());
            }
        }
    }
}

#[test]
fn apcu_entries_are_shared_and_survive_reload() {
    for model in MODELS {
        let server = start(model).start();
        let responses = crowd(&server, "/count", 6, 20);
        let mut seen: Vec<_> = responses.iter().map(|response| number(&response[0])).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=120).collect::<Vec<_>>(), "{model}: each visit counts once");
        let mut pids: Vec<_> = responses.iter().map(|response| number(&response[1])).collect();
        pids.sort_unstable();
        pids.dedup();
        assert!(pids.len() > 1, "{model}: one worker has answered all");
        server.reload().expect("it reloads");
        assert_eq!(ask(&server, "/get?key=visits"), json!(120), "{model}");
        let objects = server.status()["shared"]["objects"].to_string();
        assert!(objects.contains("\"apcu\""), "{objects}");
    }
}

#[test]
fn apcu_entry_is_made_by_one_request() {
    for model in MODELS {
        let server = start(model).start();
        let responses = crowd(&server, "/entry", 3, 2);
        let makers = responses.iter().filter(|response| response[1] == json!(true)).count();
        assert_eq!(makers, 1, "{model}: {responses:?}");
        assert!(responses.iter().all(|response| response[0] == json!(1)), "{model}: {responses:?}");
    }
}

#[test]
fn next_request_makes_apcu_entry_after_maker_ended() {
    for model in MODELS {
        let server = start(model).start();
        assert_eq!(ask(&server, "/end?how=exit"), json!("exit"), "{model}");
        assert_eq!(ask(&server, "/get?key=begun"), json!("exit"), "{model}");
        let post = Request::form("/end?how=kill", "");
        let killed = server.client().request(&post);
        assert!(killed.status >= 500, "{model}: {}", killed.status);
        eventually("a worker follows", || {
            (server.get("/get?key=begun").text() == "\"kill\"").then_some(())
        });
        assert_eq!(ask(&server, "/end?how=returns"), json!("returns"), "{model}");
        assert_eq!(ask(&server, "/end?how=again"), json!("returns"), "{model}");
    }
}

#[test]
fn full_apcu_cache_evicts_entries() {
    let server = start("checkpoint").start();
    assert_eq!(ask(&server, "/flood"), json!([3999, true, 0, false, false, true]));
    assert_eq!(ask(&server, "/flood"), json!([3999, true, 0, false, false, true]));
}

#[test]
fn apcu_functions_exist_only_if_enabled() {
    let none = without("script").start();
    assert_eq!(ask(&none, "/there"), json!([false, false, false, false, false]));
    let ours = start("script").start();
    assert_eq!(ask(&ours, "/there"), json!([true, true, true, true, true]));
    assert_eq!(ask(&ours, "/whose"), json!(["ours", true]));
    // The real extension, if it is loaded.
    let theirs = start("script").extensions(&["apcu"]).start();
    assert_eq!(ask(&theirs, "/there"), json!([true, true, true, true, true]));
    assert_eq!(ask(&theirs, "/whose"), json!(["32M", true]));
    // Disabled with the extension's setting.
    let off = start("script").define("apc.enabled", "0").start();
    assert_eq!(ask(&off, "/there"), json!([true, true, true, true, false]));
    assert_eq!(ask(&off, "/off"), json!([false, false, false, false, null, false]));
}

#[test]
fn too_little_apcu_memory_is_reported() {
    let config = "compat = ['apcu', 'auto']\nshared.apcu_bytes = '2M'\nshared.bytes_max = '1M'";
    let (status, said) = without("script").config(config).refuse();
    assert_ne!(status, Some(0));
    assert!(said.contains("shared.apcu_bytes") && said.contains("shared.bytes_max"), "{said}");
    // Memory used by other objects is not available to it.
    let config = "compat = 'apcu'\nshared.apcu_bytes = '2M'\nshared.bytes_max = '2M'";
    let server = without("script").config(config).start();
    let room = ask(&server, "/room");
    assert!(
        room == json!([true, null]) || room[1].to_string().contains("shared.bytes_max"),
        "{room}"
    );
}
