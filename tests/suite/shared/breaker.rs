//! A circuit breaker opens for all workers, for each way in which a call ends, and closes after a
//! successful probe.

use crate::shared::{MODELS, ask, crowd, start};
use samovar_testkit::{Server, eventually};
use serde_json::{Value, json};

fn state(server: &Server, name: &str) -> String {
    let status = server.status();
    let objects = status["shared"]["objects"].as_array().expect("a list");
    let found = objects.iter().find(|object| object["kind"] == "breaker" && object["name"] == name);
    found.map(|object| object["breaker"]["state"].to_string()).unwrap_or_default()
}

#[test]
fn breaker_opens_probes_and_closes() {
    for model in MODELS {
        let server = start(model).start();
        for _ in 0..2 {
            let found = ask(&server, "/breaks");
            let text = |what: &str| found[what].as_str().unwrap_or_default();
            for (what, value) in [
                ("closed", json!([["well", "down", "no such order"], "closed"])),
                ("opens", json!([["down", "refused"], "open"])),
                ("otherwise", json!("stood in")),
                ("probe fails", json!(["open", ["down", "refused"]])),
                ("probe is well", json!(["open", ["well", "down", "well"], "closed"])),
                ("nested", json!("inner and outer")),
                ("slow", json!(["late", "open", null, "closed"])),
            ] {
                assert_eq!(found[what], value, "{model}: {what}");
            }
            assert!(text("arguments").starts_with("TypeError: "), "{found}");
            assert!(text("other rules").contains("failures=0.5 slow=1 slowAfter=0"), "{found}");
            for what in
                ["no share", "no slow share", "no time", "no calls", "no window", "no pause"]
            {
                assert!(text(what).starts_with("ValueError: "), "{what}: {found}");
            }
            assert!(text("no name").starts_with("ValueError"), "{found}");
            assert!(text("clone").starts_with("Error"), "{found}");
        }
    }
}

#[test]
fn breaker_counts_calls_of_all_workers() {
    for model in MODELS {
        let server = start(model).start();
        let responses = crowd(&server, "/call?name=common&end=down", 4, 10);
        let is = |what: &'static str| move |response: &&Value| response[0] == what;
        let refused = responses.iter().filter(is("refused")).count();
        let failed = responses.iter().filter(is("down")).count();
        assert_eq!(refused + failed, 40, "{model}: {responses:?}");
        assert!(refused > 0, "{model}: {responses:?}");
        eventually("a probe is let through", || {
            (ask(&server, "/call?name=common&end=well")[0] == "well").then_some(())
        });
        assert_eq!(state(&server, "common"), "\"closed\"", "{model}");
    }
}

#[test]
fn breaker_judges_call_by_end_of_its_request() {
    for model in MODELS {
        let server = start(model).extensions(&["posix"]).start();
        for _ in 0..8 {
            assert_eq!(
                ask(&server, "/call?name=exit&end=exit"),
                json!(["exit", "closed"]),
                "{model}: the end of a request is no failure"
            );
        }
        // The fourth call opens it.
        for _ in 0..4 {
            server.get("/call?name=fatal&end=fatal");
        }
        // Calls left open by a request are settled after its response.
        eventually("a fatal error is one", || {
            (state(&server, "fatal") != "\"closed\"").then_some(())
        });
        // After a probe has died, another one follows.
        eventually("a probe has been let through, and was killed", || {
            server.get("/call?name=fatal&end=death");
            (state(&server, "fatal") == "\"half-open\"").then_some(())
        });
        eventually("the next probe is let through", || {
            (server.get("/call?name=fatal&end=well").text() == "[\"well\",\"closed\"]")
                .then_some(())
        });
    }
}
