//! What workers share beside requests: the same in all models, whole whoever is killed, there after a reload.

mod apcu;
mod breaker;
mod published;

use samovar_testkit::copy::copy_of;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually, php, workspace};
use serde_json::{Value, json};

const MODELS: [&str; 3] = ["script", "resident", "checkpoint"];

fn start(model: &str) -> Start {
    at(Server::app("shared"), model)
}

fn at(start: Start, model: &str) -> Start {
    let start = start.workers(3).env("MODEL", model);
    if model == "script" { start.args(["--whole-scripts"]) } else { start }
}

fn ask(server: &Server, path: &str) -> Value {
    let answer = server.get(path);
    assert_eq!(answer.status, 200, "{path}: {}\n{}", answer.text(), server.log());
    serde_json::from_slice(&answer.body)
        .unwrap_or_else(|e| panic!("{path}: {e}: {}", answer.text()))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Several clients at once; what each of them was answered.
fn crowd(server: &Server, path: &str, clients: usize, requests: usize) -> Vec<Value> {
    std::thread::scope(|scope| {
        let ask = || (0..requests).map(|_| ask(server, path)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn what_one_worker_counts_all_see() {
    for model in MODELS {
        let server = start(model).start();
        let answers = crowd(&server, "/visit", 6, 20);
        let mut pids: Vec<_> = answers.iter().map(|answer| number(&answer[2])).collect();
        pids.sort_unstable();
        pids.dedup();
        assert!(pids.len() > 1, "{model}: one worker has answered all");
        let mut seen: Vec<_> = answers.iter().map(|answer| number(&answer[0])).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=120).collect::<Vec<_>>(), "{model}: each visit counts once");
        assert_eq!(ask(&server, "/counter"), json!([120, 240]), "{model}");
        let operations = json!([240, 5, 5, false, true, 9, 9, 0, 0]);
        assert_eq!(ask(&server, "/operations"), operations, "{model}");
    }
}

#[test]
fn a_table_does_what_its_methods_say() {
    for model in MODELS {
        let server = start(model).start();
        let walked = ask(&server, "/walk");
        let a = json!({"n": 1, "twice": 2, "half": 0.5, "text": "number 1"});
        let b = json!({"n": 7, "twice": 0, "half": 0.0, "text": ""});
        let expected = [
            ("missing", json!(null)),
            ("row", a),
            ("column", json!("number 1")),
            ("new row", b),
            ("incr", json!(10)),
            ("decr", json!(9)),
            ("float", json!(0.25)),
            ("new by incr", json!(-4)),
            ("cas", json!([false, true, false])),
            ("after cas", json!("yes")),
            ("deleted", json!([true, false])),
            ("count", json!([2, 2])),
            ("binary", json!([null, true])),
        ];
        for (what, value) in expected {
            assert_eq!(walked[what], value, "{model}: {what}");
        }
        assert_eq!(walked["all"]["b"]["n"], json!(9), "{model}");
        assert_eq!(walked["all"].as_object().map(serde_json::Map::len), Some(2), "{model}");
    }
}

#[test]
fn what_is_refused_says_why() {
    let server = start("script").start();
    let said = ask(&server, "/refusals");
    let check = |what: &str, class: &str, text: &str| {
        let found = said[what].as_str().unwrap_or_default();
        assert!(found.starts_with(class) && found.contains(text), "{what}: {found}");
    };
    check("other rows", "Error", "exists as `rows=100");
    check("other rows", "Error", "cannot be `rows=99");
    check("other columns", "Error", "hint:");
    check("no rows", "ValueError", "1 to");
    check("no columns", "ValueError", "columns");
    check("no type", "ValueError", "`long`");
    check("no names", "ValueError", "names of columns");
    check("too many columns", "ValueError", "64");
    check("no name", "ValueError", "name");
    check("too large a table", "RuntimeException", "shared.bytes_max");
    check("no key", "ValueError", "1 to 64");
    check("long key", "ValueError", "65");
    check("long text", "ValueError", "20 bytes, not 21");
    check("no column", "ValueError", "`m`");
    check("no column to get", "ValueError", "`m`");
    check("wrong type", "TypeError", "`n` holds int, string given");
    check("fraction", "TypeError", "int");
    check("text to add", "TypeError", "string");
    check("overflow", "RuntimeException", "`n`");
    check("clone", "Error", "clone");
    check("serialize", "Exception", "not allowed");
    check("by reference", "Error", "by value");
    // What was refused has taken nothing: the table holds what it can, and says when that is all.
    let filled = ask(&server, "/fill");
    assert_eq!(filled[0], json!(100));
    let full = filled[1].as_str().unwrap_or_default();
    assert!(full.starts_with("RuntimeException") && full.contains("100 rows"), "{full}");
    let status = server.status();
    assert_eq!(status["shared"]["refused_total"], json!(1));
}

#[test]
fn nothing_is_torn_or_lost_when_workers_are_killed() {
    for model in MODELS {
        let server = start(model).start();
        ask(&server, "/visit");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                        // Of a worker that is killed, or is none yet, nothing is expected.
                        let answer = server.get("/hammer");
                        assert!(answer.status != 200 || answer.text() == "[true]", "{model}");
                    }
                });
            }
            for _ in 0..25 {
                let before = number(&ask(&server, "/counter")[0]);
                eventually("somebody counts", || {
                    (number(&ask(&server, "/counter")[0]) > before).then_some(())
                });
                if let Some(pid) = server.worker_pids().first() {
                    server.kill_worker(*pid);
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let check = ask(&server, "/check");
        assert_eq!(check[0], json!(true), "{model}: a torn row");
        // The sum's row is counted, and is no other.
        assert_eq!(number(&check[1]), number(&check[2]) + 1, "{model}");
        // Each step counts after it has added.
        let sum = number(&ask(&server, "/sum"));
        let counted = number(&ask(&server, "/counter")[0]) - 1;
        assert!((counted..=counted + 25).contains(&sum), "{model}: {counted} ≤ {sum}");
        let filled = ask(&server, "/fill");
        assert_eq!(filled[0], json!(100), "{model}: rows are lost");
    }
}

#[test]
fn a_process_that_a_request_forks_is_one_more() {
    let server = start("script").extensions(&["pcntl", "posix"]).start();
    assert_eq!(ask(&server, "/fork"), json!([100, true, 5]));
    assert_eq!(ask(&server, "/counter")[0], json!(100));
    assert_eq!(ask(&server, "/fork"), json!([200, true, 5]));
}

#[test]
fn a_reload_keeps_what_has_not_changed() {
    for model in MODELS {
        let app = copy_of(&workspace().join("tests/apps/shared"));
        let server = at(Server::at(app.path()), model).start();
        ask(&server, "/visit");
        ask(&server, "/walk");
        server.reload().expect("the application boots");
        assert_eq!(ask(&server, "/counter")[0], json!(1), "{model}");
        assert_eq!(ask(&server, "/check")[1], json!(3), "{model}: rows are there");
        let script = app.path().join("index.php");
        let text = std::fs::read_to_string(&script).expect("the application");
        std::fs::write(&script, text.replace("'rows', 100", "'rows', 50")).expect("written");
        server.reload().expect("the application boots");
        assert_eq!(ask(&server, "/check")[1], json!(0), "{model}: the changed table is empty");
        assert_eq!(ask(&server, "/fill")[0], json!(50), "{model}: the changed table is smaller");
        assert_eq!(ask(&server, "/counter")[0], json!(1), "{model}");
    }
}

#[test]
fn console_workers_share_too() {
    let script = workspace().join("tests/apps/shared/count.php");
    let console = format!("[[console]]\nscript = '{}'\ncommand = 'count'\n", script.display());
    let server = Server::app("shared").args(["--shared-bytes-max", "4M"]).config(&console).start();
    eventually("the console worker has counted", || {
        (number(&ask(&server, "/counter")[0]) >= 7).then_some(())
    });
    let status = server.status();
    assert_eq!(status["shared"]["bytes_max"], json!(4 << 20));
}

#[test]
fn operators_see_what_is_shared() {
    let server = start("resident").args(["--admin", "127.0.0.1:0"]).start();
    ask(&server, "/walk");
    ask(&server, "/visit");
    let status = server.status();
    let objects = status["shared"]["objects"].as_array().expect("a list");
    let find = |name: &str| objects.iter().find(|object| object["name"] == name).expect(name);
    assert_eq!(find("visits")["value"], json!(1));
    assert_eq!((&find("rows")["used"], &find("rows")["room"]), (&json!(3), &json!(100)));
    assert!(number(&status["shared"]["bytes"]) > 0);
    let address =
        status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    let metrics = Client::connect(address).request(&Request::get("/metrics")).text();
    for line in [
        "samovar_shared_rows{kind=\"table\",name=\"rows\"} 3",
        "samovar_shared_rows_max{kind=\"table\",name=\"rows\"} 100",
        "samovar_shared_bytes_max 67108864",
        "samovar_shared_refused_total 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn a_lock_is_held_by_one() {
    for model in MODELS {
        let server = start(model).start();
        for answer in crowd(&server, "/alone", 6, 10) {
            assert_eq!((&answer[0], &answer[2]), (&json!(1), &json!(0)), "{model}: two at once");
        }
        for _ in 0..2 {
            let held = ask(&server, "/hold");
            let text = |what: &str| held[what].as_str().unwrap_or_default();
            assert_eq!(held["at first"], json!([false, false]), "{model}");
            assert_eq!(held["acquired"], json!([true, true, true]), "{model}");
            assert!(text("again").starts_with("Error: This request holds"), "{held}");
            assert_eq!(held["by another object"], json!([false, true]), "{model}");
            assert_eq!(held["released"], json!([true, false, true, false, true]), "{model}");
            assert_eq!(held["destroyed"], json!([true, false]), "{model}");
            assert_eq!(held["synchronized"], json!(true), "{model}");
            assert_eq!(text("exception"), "LogicException: inside", "{model}");
            assert_eq!(held["afterwards"], json!(false), "{model}");
            assert!(text("no name").starts_with("ValueError"), "{held}");
            assert!(text("twice").starts_with("Error"), "{held}");
            assert!(text("clone").starts_with("Error"), "{held}");
        }
    }
}

#[test]
fn a_lock_does_not_outlive_its_request() {
    for model in MODELS {
        let server = start(model).extensions(&["pcntl", "posix"]).start();
        for end in ["exit", "fatal", "exception", "death", "return"] {
            for _ in 0..3 {
                server.get(&format!("/keep?end={end}"));
                assert_eq!(
                    ask(&server, &format!("/free?end={end}")),
                    json!([true]),
                    "{model}: {end}"
                );
            }
        }
    }
}

#[test]
fn a_limiter_counts_for_all_workers() {
    for model in MODELS {
        let server = start(model).start();
        let limited = ask(&server, "/limit?key=one");
        let text = |what: &str| limited[what].as_str().unwrap_or_default();
        assert_eq!(limited["five"], json!([true, true, true, true, true]), "{model}");
        assert_eq!(limited["sixth"], json!(false), "{model}");
        assert_eq!(limited["remaining"], json!([0, 5]), "{model}");
        assert_eq!(limited["retry"], json!(1000.0), "{model}");
        assert_eq!(limited["retry for all"], json!(5000.0), "{model}");
        assert_eq!(limited["others"], json!(0.0), "{model}");
        assert!(text("too much").starts_with("ValueError"), "{limited}");
        assert!(text("nothing").starts_with("ValueError"), "{limited}");
        assert_eq!(limited["long key"], json!(true), "{model}");
        assert!(text("other numbers").contains("rate=0.001 burst=5 keys=16"), "{limited}");
        for what in ["no rate", "no number", "no burst", "no keys"] {
            assert!(text(what).starts_with("ValueError"), "{limited}");
        }
        let allowed = |key: &str, clients, requests| {
            let answers = crowd(&server, &format!("/attempt?key={key}"), clients, requests);
            answers.iter().filter(|answer| **answer == json!([true])).count()
        };
        assert_eq!(allowed("two", 6, 5), 5, "{model}: all workers take from one bucket");
        // More keys than there is room for: each is allowed, and nothing fails.
        for key in 0..100 {
            assert_eq!(allowed(&format!("many-{key}"), 1, 1), 1, "{model}");
        }
        let status = server.status();
        let objects = status["shared"]["objects"].as_array().expect("a list");
        let listed =
            objects.iter().find(|object| object["kind"] == "limiter").expect("it is listed");
        assert_eq!(listed["room"], json!(16));
        assert_eq!(listed["denied_total"], json!(26), "{listed}");
        assert_eq!(listed["allowed_total"], json!(5 + 1 + 5 + 100), "{listed}");
    }
}

#[test]
fn a_cache_gives_back_what_was_put_in() {
    for model in MODELS {
        let server = start(model).start();
        for _ in 0..2 {
            let found = ask(&server, "/cache");
            let text = |what: &str| found[what].as_str().unwrap_or_default();
            for (what, value) in [
                ("same", json!([true])),
                ("missing", json!([null, 7, false])),
                ("gone", json!([null, true, false])),
                ("add", json!([true, false, 1])),
                ("replace", json!([false, true, 3])),
                ("increment", json!([5, -2, -2])),
                ("delete", json!([true, false])),
                ("too large", json!([false, null])),
                ("remember", json!(["once", "once", "inner and outer", "not stored", false])),
                ("throws", json!("LogicException: no")),
                ("and then", json!("whole")),
                ("clear", json!([null, null])),
            ] {
                assert_eq!(found[what], value, "{model}: {what}");
            }
            for (what, class) in [
                ("closure", "Exception: "),
                ("no key", "ValueError: "),
                ("long key", "ValueError: "),
                ("no int", "TypeError: "),
                ("mixed", "TypeError: "),
                ("no time", "ValueError: "),
                ("too small", "ValueError: "),
                ("other size", "Error: "),
            ] {
                assert!(text(what).starts_with(class), "{model}: {what}: {}", text(what));
            }
        }
    }
}

/// Under any other server the classes of the Composer package stand in.
#[test]
fn the_polyfill_does_the_same() {
    let server = start("script").start();
    let program = "require $argv[1]; chdir(dirname($argv[2])); $_SERVER['REQUEST_URI'] = $argv[3]; \
                   parse_str(parse_url($argv[3], PHP_URL_QUERY) ?? '', $_GET); require $argv[2];";
    for path in
        ["/operations", "/walk", "/cache", "/hold", "/limit?key=one", "/refusals", "/breaks"]
    {
        let ours = ask(&server, path);
        let output = std::process::Command::new(php::program("php"))
            .args(["-d", "error_reporting=-1", "-r", program])
            .arg(workspace().join("php/autoload.php"))
            .arg(workspace().join("tests/apps/shared/index.php"))
            .arg(path)
            .output()
            .expect("PHP's command line is there");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let theirs: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}: {text}"));
        // `operations` is a list, all others have names.
        let Some(ours) = ours.as_object() else {
            assert_eq!(
                ours.as_array().map(|all| &all[1..]),
                theirs.as_array().map(|all| &all[1..])
            );
            continue;
        };
        for (what, value) in ours.iter().filter(|(what, _)| !OF_THE_ENGINE.contains(&what.as_str()))
        {
            match value.as_str().and_then(|text| text.split_once(": ")) {
                Some((class, _)) => {
                    let said = theirs[what].as_str().unwrap_or_default();
                    assert!(said.starts_with(&format!("{class}: ")), "{path}: {what}: {said}");
                }
                None => assert_eq!(&theirs[what], value, "{path}: {what}"),
            }
        }
    }
}

/// What the polyfill leaves to PHP: it has no memory to run out of, and classes of PHP are constructed and iterated in
/// PHP's way.
const OF_THE_ENGINE: [&str; 3] = ["too large a table", "twice", "by reference"];

#[test]
fn one_request_makes_what_all_wait_for() {
    for model in MODELS {
        let server = start(model).extensions(&["posix"]).start();
        let made = |server: &Server| number(&ask(server, "/counter")[1]);
        let answers = crowd(&server, "/make?key=page", 6, 4);
        assert!(answers.iter().all(|answer| answer == &answers[0]), "{model}: {answers:?}");
        assert_eq!(made(&server), 1, "{model}: it was made once");
        // A maker that is no more is followed by the next.
        for end in ["exit", "death", "exception"] {
            server.get(&format!("/make?key={end}&end={end}"));
            let answer = ask(&server, &format!("/make?key={end}"));
            assert!(
                answer[0].as_str().is_some_and(|text| text.starts_with("value")),
                "{model}: {end}"
            );
        }
        // What has ended is given to all but the one that makes it anew.
        let before = ask(&server, "/make?key=stale&ttl=0.001&stale=600");
        let answers = crowd(&server, "/make?key=stale&ttl=600&stale=600", 6, 1);
        assert!(answers.contains(&before), "{model}: {answers:?}");
    }
}
