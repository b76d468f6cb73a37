//! The functions of the apcu extension over Samovar's cache: each answers what the extension itself does, and libraries that
//! use it find nothing different.

use super::{MODELS, ask, crowd, number};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually, php, workspace};
use serde_json::{Map, Value, json};
use std::process::Command;

fn without(model: &str) -> Start {
    let start = Server::app("apcu").workers(3).env("MODEL", model);
    if model == "script" { start.args(["--whole-scripts"]) } else { start }
}

fn start(model: &str) -> Start {
    without(model).config("compat = 'apcu'\nshared.apcu_bytes = '2M'")
}

/// What the extension itself answers, of which a process of PHP's has one to itself.
fn oracle() -> Map<String, Value> {
    let mut php = Command::new(php::program("php"));
    php.args(["-d", "extension=apcu", "-d", "apc.enable_cli=1", "-d", "opcache.enable_cli=0"]);
    let told = php.arg(workspace().join("tests/apps/apcu/alike.php")).output();
    let told = told.expect("PHP's command line is there");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("it answers JSON")
}

#[test]
fn each_function_answers_what_the_extension_does() {
    let expected = oracle();
    assert!(expected.len() > 50, "all questions are asked: {expected:?}");
    for model in MODELS {
        let server = without(model).config("compat = 'apcu'").start();
        let found = ask(&server, "/alike");
        for (question, answer) in &expected {
            assert_eq!(&found[question], answer, "{model}: {question}");
        }
    }
}

#[test]
fn libraries_work_with_it() {
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
fn all_workers_have_the_same_and_a_reload_keeps_it() {
    for model in MODELS {
        let server = start(model).start();
        let answers = crowd(&server, "/count", 6, 20);
        let mut seen: Vec<_> = answers.iter().map(|answer| number(&answer[0])).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=120).collect::<Vec<_>>(), "{model}: each visit counts once");
        let mut pids: Vec<_> = answers.iter().map(|answer| number(&answer[1])).collect();
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
fn one_request_makes_an_entry() {
    for model in MODELS {
        let server = start(model).start();
        let answers = crowd(&server, "/entry", 3, 2);
        let makers = answers.iter().filter(|answer| answer[1] == json!(true)).count();
        assert_eq!(makers, 1, "{model}: {answers:?}");
        assert!(answers.iter().all(|answer| answer[0] == json!(1)), "{model}: {answers:?}");
    }
}

#[test]
fn a_maker_that_ends_is_followed_by_the_next() {
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
fn what_has_no_room_makes_way() {
    let server = start("checkpoint").start();
    assert_eq!(ask(&server, "/flood"), json!([3999, true, 0, false, false, true]));
    assert_eq!(ask(&server, "/flood"), json!([3999, true, 0, false, false, true]));
}

#[test]
fn it_is_there_where_it_is_asked_for() {
    let none = without("script").start();
    assert_eq!(ask(&none, "/there"), json!([false, false, false, false, false]));
    let ours = start("script").start();
    assert_eq!(ask(&ours, "/there"), json!([true, true, true, true, true]));
    assert_eq!(ask(&ours, "/whose"), json!(["ours", true]));
    // The extension itself, where it is loaded.
    let theirs = start("script").extensions(&["apcu"]).start();
    assert_eq!(ask(&theirs, "/there"), json!([true, true, true, true, true]));
    assert_eq!(ask(&theirs, "/whose"), json!(["32M", true]));
    // Switched off as the extension is.
    let off = start("script").define("apc.enabled", "0").start();
    assert_eq!(ask(&off, "/there"), json!([true, true, true, true, false]));
    assert_eq!(ask(&off, "/off"), json!([false, false, false, false, null, false]));
}

#[test]
fn too_little_memory_is_said() {
    let config = "compat = ['apcu', 'auto']\nshared.apcu_bytes = '2M'\nshared.bytes_max = '1M'";
    let (status, said) = without("script").config(config).refuse();
    assert_ne!(status, Some(0));
    assert!(said.contains("shared.apcu_bytes") && said.contains("shared.bytes_max"), "{said}");
    // What others have taken is not there for it.
    let config = "compat = 'apcu'\nshared.apcu_bytes = '2M'\nshared.bytes_max = '2M'";
    let server = without("script").config(config).start();
    let room = ask(&server, "/room");
    assert!(
        room == json!([true, null]) || room[1].to_string().contains("shared.bytes_max"),
        "{room}"
    );
}
