//! Statements of requests: counts, repetitions with their place, and no literal in any figure, in
//! each execution model.

use crate::request_accounting::bench::{MODELS, ask, figures, serving, started};
use samovar_testkit::{Server, eventually};
use serde_json::Value;

/// A value in each kind of literal.
const SECRET: &str = "s3cr3tvalue";

/// Runs statements of SQLite with PDO, and reports the line of the repeated one. `?case=` selects
/// more.
const WORK: &str = r#"
    usleep(2_000);
    Samovar\route('shop');
    $db = new PDO('sqlite::memory:', options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    $db->exec('CREATE TABLE product (id INTEGER, name TEXT)');
    $db->exec("INSERT INTO product VALUES (1, 's3cr3tvalue'), (2, 'b'), (3, 'c')");
    $all = $db->query("SELECT id FROM product WHERE name <> 's3cr3tvalue!' -- s3cr3tvalue
        ORDER BY id")->fetchAll();
    $one = $db->prepare('SELECT name FROM product WHERE id = :id');
    for ($n = 0; $n < 21; $n++) {
        $one->execute(['id' => $n]); header('x-line: ' . __LINE__);
    }
    for ($n = 0; $n < 5; $n++) {
        $db->query("SELECT count(*) FROM product WHERE id = $n");
    }
    $db->beginTransaction();
    $db->commit();
    switch ($_GET['case'] ?? '') {
        case 'exception':
            try {
                $db->query("SELECT missing FROM nothing WHERE a = 's3cr3tvalue'");
            } catch (PDOException) {
            }
            break;
        case 'uncaught':
            $db->query("SELECT missing FROM nothing WHERE a = 's3cr3tvalue'");
            break;
        case 'fatal':
            $db->sqliteCreateFunction('boom', function () { trigger_error('boom', E_USER_ERROR); });
            $db->query("SELECT boom(), 's3cr3tvalue'");
            break;
        case 'exit':
            $db->sqliteCreateFunction('leave', function () { exit; });
            $db->query("SELECT leave(), 's3cr3tvalue'");
            break;
        case 'many':
            for ($n = 0; $n < 300; $n++) {
                $db->query("SELECT id AS column_$n FROM product WHERE name = 's3cr3tvalue$n'");
            }
            break;
        case 'http':
            @file_get_contents("http://127.0.0.1:1/users/42/s3cr3tvalue0123456789?t=s3cr3tvalue");
            $curl = curl_init('http://u:s3cr3tvalue@127.0.0.1:1/orders/7?t=s3cr3tvalue');
            curl_setopt($curl, CURLOPT_POSTFIELDS, 's3cr3tvalue');
            curl_setopt($curl, CURLOPT_RETURNTRANSFER, true);
            curl_exec($curl);
            break;
        case 'fibers':
            $fibers = [];
            for ($n = 0; $n < 3; $n++) {
                $fibers[] = $fiber = new Fiber(function () use ($db) {
                    $db->sqliteCreateFunction('pause', fn () => Fiber::suspend());
                    $db->query('SELECT pause()');
                });
                $fiber->start();
            }
            // The last one is never resumed.
            $fibers[1]->resume();
            $fibers[0]->resume();
            break;
    }
"#;

fn statement<'a>(figures: &'a Value, text: &str) -> &'a Value {
    let all = figures["statements"].as_array().expect("a list");
    let found = all.iter().find(|one| one["text"] == text);
    found.unwrap_or_else(|| panic!("{text} is in {figures:#}"))
}

fn server(model: &str, work: &str) -> Server {
    let start = serving(model, work).workers(1);
    started(start.config("[insight]\nslow_request = '1ms'\n"), model)
}

#[test]
fn statements_are_counted_with_their_place_in_each_model() {
    for model in MODELS {
        let server = server(model, WORK);
        let mut line = String::new();
        for _ in 0..3 {
            line = server.get("/").header("x-line").expect("a line").to_owned();
        }
        let found = figures(&server, "shop", 3);
        let repeated = statement(&found, "SELECT name FROM product WHERE id = ?");
        for (key, value) in [
            ("calls", 63),
            ("requests", 3),
            ("calls_max", 21),
            ("repeats_max", 21),
            ("repeating_requests", 3),
            ("line", line.parse().expect("a number")),
        ] {
            assert_eq!(repeated[key], value, "{model}: {key}: {repeated}");
        }
        assert!(repeated["file"].as_str().is_some_and(|file| file.ends_with("index.php")));
        assert!(repeated["ns"].as_u64().is_some_and(|ns| ns > 63 * 100), "{model}: {repeated}");
        for (text, calls, rows) in [
            ("INSERT INTO product VALUES (?)", 3, 9),
            ("SELECT id FROM product WHERE name <> ? ORDER BY id", 3, 9),
            ("SELECT count(*) FROM product WHERE id = ?", 15, 0),
            ("BEGIN", 3, 0),
            ("COMMIT", 3, 0),
            ("(connect)", 3, 0),
        ] {
            let one = statement(&found, text);
            assert_eq!(
                (&one["calls"], &one["rows"]),
                (&calls.into(), &rows.into()),
                "{model}: {one}"
            );
            assert_eq!(one["repeating_requests"], 0, "{model}: {one}");
        }
        server.stop();
    }
}

#[test]
fn any_end_of_a_call_leaves_the_tables_whole() {
    for model in MODELS {
        let server = server(model, WORK);
        let cases = ["exception", "uncaught", "fatal", "exit", "many", "fibers", "http"];
        for case in cases.iter().chain(&cases) {
            server.get(&format!("/?case={case}"));
        }
        server.get("/");
        let found = figures(&server, "shop", 15);
        let repeated = statement(&found, "SELECT name FROM product WHERE id = ?");
        assert_eq!(
            (&repeated["calls"], &repeated["requests"]),
            (&315.into(), &15.into()),
            "{model}"
        );
        assert_eq!(statement(&found, "SELECT missing FROM nothing WHERE a = ?")["calls"], 4);
        assert!(found["statements"].as_array().is_some_and(|all| all.len() <= 65), "{model}");
        let malformed = ask(&server, "/metrics");
        assert!(malformed.contains("samovar_insight_reports_malformed_total 0\n"), "{model}");
        server.stop();
    }
}

#[test]
fn no_literal_leaves_the_process() {
    for model in MODELS {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let start = serving(model, WORK).workers(1).config(&format!(
            "[insight]\nslow_request = '1ms'\nslow_log_format = 'json'\nslow_log = '{}'\n",
            log.path().display()
        ));
        let server = started(start, model);
        let mut id = String::new();
        for case in ["", "exception", "many", "http"] {
            let response = server.get(&format!("/?case={case}"));
            id = response.header("x-request-id").expect("an id").to_owned();
        }
        let found = figures(&server, "shop", 4);
        for (text, kind) in
            [("GET 127.0.0.1:1/users/{n}/*", "http"), ("POST 127.0.0.1:1/orders/{n}", "http")]
        {
            assert_eq!(statement(&found, text)["kind"], kind, "{model}");
        }
        let request = eventually("the request is kept", || {
            let page = ask(&server, &format!("/request?id={id}"));
            page.contains("SELECT name FROM product WHERE id = ?").then_some(page)
        });
        let logged = eventually("the slow log is written", || {
            let text = std::fs::read_to_string(log.path()).ok()?;
            (text.lines().count() == 4).then_some(text)
        });
        // The log has the five statements with the longest times.
        assert!(logged.contains("SELECT "), "{model}: {logged}");
        let route = ask(&server, "/route?name=shop");
        assert!(route.contains("N+1: 21 × in one request"), "{model}: {route}");
        for text in [
            found.to_string(),
            request,
            logged,
            route,
            ask(&server, "/metrics"),
            ask(&server, &format!("/api/requests/{id}")),
            ask(&server, "/api/errors"),
        ] {
            assert!(!text.contains(SECRET), "{model}: {text}");
        }
        server.stop();
    }
}

/// A rollback must not leave the statements of the request before it, and a request without
/// statements reports none.
#[test]
fn request_reports_only_its_own_statements() {
    let work = r"
        usleep(2_000);
        if (isset($_GET['sql'])) {
            (new PDO('sqlite::memory:'))->query('SELECT own FROM (SELECT 1 AS own)');
        }
    ";
    for model in MODELS {
        let server = server(model, work);
        let kept = |query: &str| -> Value {
            let response = server.get(&format!("/{query}"));
            let id = response.header("x-request-id").expect("an id").to_owned();
            eventually("the request is kept", || {
                serde_json::from_str(&ask(&server, &format!("/api/requests/{id}"))).ok()
            })
        };
        for _ in 0..3 {
            let with = kept("?sql");
            assert_eq!(with["statements"].as_array().map(Vec::len), Some(2), "{model}: {with}");
            let without = kept("");
            assert_eq!(
                without["statements"].as_array().map(Vec::len),
                Some(0),
                "{model}: {without}"
            );
        }
        server.stop();
    }
}

/// Each execution is in the timeline where it happened, and waits are within their statement.
#[test]
fn timeline_has_statements_and_waits_in_order() {
    let work = r"
        Samovar\route('timeline');
        usleep(3_000);
        $db = new PDO('sqlite::memory:');
        $db->sqliteCreateFunction('nap', fn () => usleep(4_000));
        $db->query('SELECT nap()');
        usleep(2_000);
        if (isset($_GET['fatal'])) {
            $db->sqliteCreateFunction('boom', function () {
                usleep(4_000);
                trigger_error('boom', E_USER_ERROR);
            });
            $db->query('SELECT boom()');
        }
    ";
    for model in MODELS {
        let server = server(model, work);
        for (query, calls) in [
            ("/", vec!["(connect)", "SELECT nap()"]),
            ("/?fatal", vec!["(connect)", "SELECT nap()", "SELECT boom()"]),
        ] {
            let response = server.get(query);
            let id = response.header("x-request-id").expect("an id").to_owned();
            let found: Value = eventually("the request is kept", || {
                serde_json::from_str(&ask(&server, &format!("/api/requests/{id}"))).ok()
            });
            let spans = found["timeline"].as_array().expect("a list");
            let number = |span: &Value, key: &str| span[key].as_u64().expect("a number");
            let text = |span: &&Value| {
                found["statements"][number(span, "index") as usize]["text"]
                    .as_str()
                    .expect("a text")
            };
            let statements: Vec<_> = spans.iter().filter(|s| s["kind"] == "statement").collect();
            let texts: Vec<_> = statements.iter().map(text).collect();
            assert_eq!(texts, calls, "{model}, {query}: {found}");
            let waits: Vec<_> = spans.iter().filter(|s| s["kind"] == "wait").collect();
            let sleeps = if query == "/" { 3 } else { 4 };
            assert_eq!(waits.len(), sleeps, "{model}, {query}: {found}");
            assert!(number(waits[0], "us") >= 3_000, "{model}: {found}");
            let end = |span: &Value| number(span, "from_us") + number(span, "us");
            let nap = statements[1];
            assert!(end(waits[0]) <= number(nap, "from_us") + 1, "{model}: {found}");
            assert!(number(nap, "from_us") <= number(waits[1], "from_us"), "{model}: {found}");
            assert!(end(waits[1]) <= end(nap) + 1, "{model}: {found}");
            let page = ask(&server, &format!("/request?id={id}"));
            assert!(page.contains("SELECT nap()"), "{model}: {page}");
        }
        server.stop();
    }
}
