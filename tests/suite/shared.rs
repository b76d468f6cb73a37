//! State shared by workers across requests: equal in all models, consistent after a worker was
//! killed, present after a reload.

mod apcu;
mod breaker;
mod published;

use samovar_testkit::SetOnDrop;
use samovar_testkit::copy::copy_of;
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually, php, workspace};
use serde_json::{Value, json};

/// Number of workers killed in each model.
const KILLS: i64 = 12;

const MODELS: [&str; 3] = ["script", "resident", "checkpoint"];

fn start(model: &str) -> Start {
    at(Server::app("shared"), model)
}

fn at(start: Start, model: &str) -> Start {
    let start = start.workers(3).env("MODEL", model);
    if model == "script" { start.args(["--disable-checkpoint"]) } else { start }
}

fn ask(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}\n{}", response.text(), server.log());
    serde_json::from_slice(&response.body)
        .unwrap_or_else(|e| panic!("{path}: {e}: {}", response.text()))
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Sends requests from several clients at once. Returns all responses.
fn crowd(server: &Server, path: &str, clients: usize, requests: usize) -> Vec<Value> {
    std::thread::scope(|scope| {
        let ask = || (0..requests).map(|_| ask(server, path)).collect::<Vec<_>>();
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
fn counter_is_shared_by_all_workers() {
    for model in MODELS {
        let server = start(model).start();
        let responses = crowd(&server, "/visit", 6, 20);
        let mut pids: Vec<_> = responses.iter().map(|response| number(&response[2])).collect();
        pids.sort_unstable();
        pids.dedup();
        assert!(pids.len() > 1, "{model}: one worker has answered all");
        let mut seen: Vec<_> = responses.iter().map(|response| number(&response[0])).collect();
        seen.sort_unstable();
        assert_eq!(seen, (1..=120).collect::<Vec<_>>(), "{model}: each visit counts once");
        assert_eq!(ask(&server, "/counter"), json!([120, 240]), "{model}");
        let operations = json!([240, 5, 5, false, true, 9, 9, 0, 0]);
        assert_eq!(ask(&server, "/operations"), operations, "{model}");
    }
}

#[test]
fn table_methods_behave_as_documented() {
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
fn rejected_call_reports_reason() {
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
    // Rejected calls have allocated nothing: the table holds its full number of rows, and then
    // reports that it is full.
    let filled = ask(&server, "/fill");
    assert_eq!(filled[0], json!(100));
    let full = filled[1].as_str().unwrap_or_default();
    assert!(full.starts_with("RuntimeException") && full.contains("100 rows"), "{full}");
    let status = server.status();
    assert_eq!(status["shared"]["refused_total"], json!(1));
}

#[test]
fn killed_workers_leave_consistent_shared_state() {
    for model in MODELS {
        let server = start(model).start();
        ask(&server, "/visit");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _over = SetOnDrop(&is_over);
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::SeqCst) {
                        // A killed or starting worker has no expected response.
                        let response = server.get("/hammer");
                        assert!(response.status != 200 || response.text() == "[true]", "{model}");
                    }
                });
            }
            for _ in 0..KILLS {
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
        // The row of the sum counts as one more.
        assert_eq!(number(&check[1]), number(&check[2]) + 1, "{model}");
        // Each step increments the counter after the addition.
        let sum = number(&ask(&server, "/sum"));
        let counted = number(&ask(&server, "/counter")[0]) - 1;
        assert!((counted..=counted + KILLS).contains(&sum), "{model}: {counted} ≤ {sum}");
        let filled = ask(&server, "/fill");
        assert_eq!(filled[0], json!(100), "{model}: rows are lost");
    }
}

#[test]
fn forked_child_shares_state() {
    let server = start("script").extensions(&["pcntl", "posix"]).start();
    assert_eq!(ask(&server, "/fork"), json!([100, true, 5]));
    assert_eq!(ask(&server, "/counter")[0], json!(100));
    assert_eq!(ask(&server, "/fork"), json!([200, true, 5]));
}

#[test]
fn reload_keeps_unchanged_tables() {
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
fn console_workers_share_state() {
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
fn shared_objects_are_in_status_and_metrics() {
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
        "samovar_shared_objects_rejected_total 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[test]
fn lock_is_exclusive() {
    for model in MODELS {
        let server = start(model).start();
        for response in crowd(&server, "/alone", 6, 10) {
            assert_eq!(
                (&response[0], &response[2]),
                (&json!(1), &json!(0)),
                "{model}: two at once"
            );
        }
        for _ in 0..2 {
            let held = ask(&server, "/hold");
            let text = |what: &str| held[what].as_str().unwrap_or_default();
            assert_eq!(held["at first"], json!([false, false]), "{model}");
            assert_eq!(held["acquired"], json!([true, true, true]), "{model}");
            assert!(text("again").starts_with("Error: This request already holds"), "{held}");
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
fn lock_is_released_at_end_of_request() {
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
fn limiter_counts_across_workers() {
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
            let responses = crowd(&server, &format!("/attempt?key={key}"), clients, requests);
            responses.iter().filter(|response| **response == json!([true])).count()
        };
        assert_eq!(allowed("two", 6, 5), 5, "{model}: all workers take from one bucket");
        // More keys than the limiter can hold: each is allowed, and no call fails.
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
fn cache_returns_stored_values() {
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

/// In other servers the classes of the Composer package replace the functions.
#[test]
fn polyfill_returns_same_results() {
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
        // `operations` is a list; all others have names.
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

/// Cases that the polyfill leaves to PHP: it has no memory limit of its own, and PHP classes are
/// constructed and iterated in PHP's way.
const OF_THE_ENGINE: [&str; 3] = ["too large a table", "twice", "by reference"];

#[test]
fn cache_value_is_made_by_one_request() {
    for model in MODELS {
        let server = start(model).extensions(&["posix"]).start();
        let made = |server: &Server| number(&ask(server, "/counter")[1]);
        let responses = crowd(&server, "/make?key=page", 6, 4);
        assert!(
            responses.iter().all(|response| response == &responses[0]),
            "{model}: {responses:?}"
        );
        assert_eq!(made(&server), 1, "{model}: it was made once");
        // After a maker has died, the next request becomes the maker.
        for end in ["exit", "death", "exception"] {
            server.get(&format!("/make?key={end}&end={end}"));
            let response = ask(&server, &format!("/make?key={end}"));
            assert!(
                response[0].as_str().is_some_and(|text| text.starts_with("value")),
                "{model}: {end}"
            );
        }
        // All requests but the new maker receive the stale value.
        let before = ask(&server, "/make?key=stale&ttl=0.001&stale=600");
        let responses = crowd(&server, "/make?key=stale&ttl=600&stale=600", 6, 1);
        assert!(responses.contains(&before), "{model}: {responses:?}");
    }
}
