//! Exceptions and fatal errors of requests, in each execution model: why a request failed, on its
//! page, in the list of errors, and in the metrics.

use crate::request_accounting::bench::{MODELS, ask, serving, started, total};
use samovar_testkit::eventually;
use samovar_testkit::http::Response;
use serde_json::Value;

/// Each case sends the line of its error in a header.
const WORK: &str = r"
    $fails = function () {
        header('x-line: ' . __LINE__); throw new RuntimeException('no stock, token=s3cr3t');
    };
    $wraps = function () use ($fails) {
        try { $fails(); } catch (RuntimeException $e) {
            header('x-line: ' . __LINE__); throw new LogicException('cannot show', 7, $e);
        }
    };
    $renders = function (callable $work, int $status) {
        try { $work(); } catch (Throwable $e) { http_response_code($status); echo 'an error page'; }
    };
    switch ($_GET['case'] ?? '') {
    case 'uncaught': $fails();
    case 'previous': $wraps();
    case 'memory':
        ini_set('memory_limit', '8M');
        header('x-line: ' . __LINE__); $all = str_repeat('x', 1 << 30);
    case 'handler':
        set_exception_handler(function () {
            http_response_code(500);
            try { throw new DomainException('while the page is rendered'); } catch (Throwable) {}
            echo 'an error page';
        });
        $fails();
    case 'rendered': $renders($wraps, 500); break;
    case 'not_found': $renders($fails, 404); break;
    case 'caught': $renders($fails, 200); break;
    case 'fiber': (new Fiber($fails))->start(); break;
    case 'fiber_rendered': $renders(fn () => (new Fiber($fails))->start(), 503); break;
    case 'reported':
        try { $fails(); } catch (Throwable $e) { Samovar\report_exception($e); }
        echo 'ok'; break;
    case 'huge':
        $message = str_repeat('ü', 70000) . chr(255);
        header('x-line: ' . __LINE__); throw new RuntimeException($message);
    case 'many':
        $long = str_repeat('x', 9999);
        for ($n = 0; $n < 99; $n++) { Samovar\report_exception(new Exception($long)); }
    }
    echo 'out';
";

/// Error of a case: kind, class, part of the message, and the class of its previous exception.
type Expected = (&'static str, &'static str, &'static str, Option<&'static str>);

const CASES: [(&str, Option<Expected>); 11] = {
    const SECRET: &str = "no stock, token=(redacted)";
    [
        ("", None),
        ("uncaught", Some(("uncaught", "RuntimeException", SECRET, None))),
        ("previous", Some(("uncaught", "LogicException", "cannot show", Some("RuntimeException")))),
        ("memory", Some(("fatal", "E_ERROR", "Allowed memory size of 8388608 bytes", None))),
        ("handler", Some(("uncaught", "RuntimeException", SECRET, None))),
        ("rendered", Some(("rendered", "LogicException", "cannot show", Some("RuntimeException")))),
        ("not_found", None),
        ("caught", None),
        ("fiber", Some(("uncaught", "RuntimeException", SECRET, None))),
        ("fiber_rendered", Some(("rendered", "RuntimeException", SECRET, None))),
        ("reported", Some(("reported", "RuntimeException", SECRET, None))),
    ]
};

fn id_of(response: &Response) -> String {
    response.header("x-request-id").expect("an id").to_owned()
}

fn kept(server: &samovar_testkit::Server, id: &str) -> Value {
    eventually("the request is kept", || {
        serde_json::from_str(&ask(server, &format!("/api/requests/{id}"))).ok()
    })
}

#[test]
fn failed_request_says_why_in_each_model() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        for (case, expected) in CASES {
            let response = server.get(&format!("/?case={case}"));
            let Some((kind, class, message, previous)) = expected else { continue };
            let found = kept(&server, &id_of(&response));
            let error = &found["errors"][0];
            let told = format!("{model}, {case}: {found}");
            assert_eq!((&error["kind"], &error["class"]), (&kind.into(), &class.into()), "{told}");
            assert!(error["message"].as_str().is_some_and(|m| m.contains(message)), "{told}");
            let line: u64 = response.header("x-line").and_then(|l| l.parse().ok()).expect("a line");
            assert_eq!(error["line"], line, "{told}");
            assert!(error["file"].as_str().is_some_and(|f| f.ends_with("/index.php")), "{told}");
            assert_eq!(error["previous"][0]["class"].as_str(), previous, "{told}");
            assert_eq!(found["errors"].as_array().map(Vec::len), Some(1), "{told}");
            if kind != "fatal" {
                let stack = error["stack"].as_str().unwrap_or_default();
                assert!(stack.starts_with("#0 ") && stack.contains("{closure}()"), "{told}");
            }
        }
        // No text of a secret value, and nothing about exceptions that did no harm.
        let all = ask(&server, "/api/errors");
        assert!(!all.contains("s3cr3t") && !all.contains("DomainException"), "{model}: {all}");
        server.stop();
    }
}

#[test]
fn errors_with_same_class_and_place_are_one_group() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        let mut id = String::new();
        for _ in 0..5 {
            id = id_of(&server.get("/?case=uncaught"));
        }
        server.get("/?case=reported");
        server.get("/?case=memory");
        let groups: Vec<Value> = eventually(&format!("{model}: all errors are counted"), || {
            let groups: Vec<Value> = serde_json::from_str(&ask(&server, "/api/errors")).ok()?;
            let count: u64 = groups.iter().filter_map(|group| group["count"].as_u64()).sum();
            (count == 7).then_some(groups)
        });
        let of = |class: &str| groups.iter().find(|g| g["latest"]["class"] == class).cloned();
        let thrown = of("RuntimeException").expect("the exception");
        assert_eq!((groups.len(), &thrown["count"]), (2, &6.into()), "{model}: {groups:?}");
        assert_eq!(thrown["requests"][1]["id"], id.as_str(), "{model}: {thrown}");
        for (labels, count) in [
            ("kind=\"uncaught\",class=\"RuntimeException\"", 5),
            ("kind=\"reported\",class=\"RuntimeException\"", 1),
            ("kind=\"fatal\",class=\"E_ERROR\"", 1),
        ] {
            assert_eq!(total(&server, "samovar_errors_total", labels), count, "{model}: {labels}");
        }
        // The outcome has the route of the requests.
        let page = ask(&server, "/metrics");
        let fatal = "samovar_requests_ended_total{route=\"";
        let is_it = |line: &&str| line.starts_with(fatal) && line.ends_with("end=\"fatal\"} 6");
        assert!(page.lines().any(|line| is_it(&line)), "{model}: {page}");
        let group = thrown["id"].as_str().expect("an id");
        for (address, expected) in [
            ("/errors".to_owned(), "RuntimeException"),
            (format!("/errors?group={group}"), id.as_str()),
            (format!("/request?id={id}"), "no stock, token=(redacted)"),
        ] {
            let page = ask(&server, &address);
            assert!(page.contains(expected), "{model}: {address}: {page}");
        }
        server.stop();
    }
}

#[test]
fn errors_of_any_size_fit_the_report() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        let huge = kept(&server, &id_of(&server.get("/?case=huge")));
        let message = huge["errors"][0]["message"].as_str().expect("a message");
        assert_eq!(message, "ü".repeat(256), "{model}");
        let many = kept(&server, &id_of(&server.get("/?case=many")));
        assert_eq!(many["errors"].as_array().map(Vec::len), Some(4), "{model}: {many}");
        eventually(&format!("{model}: the others are counted as dropped"), || {
            (total(&server, "samovar_insight_entries_dropped_total", "") == 95).then_some(())
        });
        assert_eq!(total(&server, "samovar_insight_reports_malformed_total", ""), 0, "{model}");
        server.stop();
    }
}
