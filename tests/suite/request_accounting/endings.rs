//! The way in which PHP ended a request, and the place of its longest wait.

use crate::request_accounting::bench::{MODELS, ask, serving, started, total};
use samovar_testkit::eventually;
use serde_json::Value;

const WORK: &str = r"
    switch ($_GET['end'] ?? '') {
    case 'fatal': no_such_function();
    case 'memory': ini_set('memory_limit', '8M'); $all = str_repeat('x', 1 << 30);
    case 'thrown': throw new Exception('x');
    case 'exit': echo 'out'; exit(3);
    case 'time': set_time_limit(1); for (;;);
    }
    echo 'out';
";

#[test]
fn fatal_error_and_time_limit_are_distinguished_from_normal_end() {
    for model in MODELS {
        let server = started(serving(model, WORK).workers(1), model);
        for (end, name, already) in [
            ("", "completed", 0),
            ("exit", "exit", 0),
            ("fatal", "fatal", 0),
            ("memory", "fatal", 1),
            ("thrown", "fatal", 2),
            ("time", "overtime", 0),
        ] {
            server.get(&format!("/?end={end}"));
            let label = format!("end=\"{name}\"");
            eventually(&format!("{model}: {end} ends as {name}"), || {
                (total(&server, "samovar_requests_ended_total", &label) == already + 1)
                    .then_some(())
            });
        }
        server.stop();
    }
}

#[test]
fn place_of_longest_wait_is_reported() {
    let work = "http_response_code(500);\n\
                class Shop { static function pause(int $us): void\n\
                { usleep($us); } }\n\
                Shop::pause(1000);\nShop::pause(9000);\nusleep(2000);";
    let server = started(serving("script", work).workers(1), "script");
    let id = server.get("/").header("x-request-id").expect("an id").to_owned();
    let kept: Value = eventually("the request is kept", || {
        serde_json::from_str(&ask(&server, &format!("/api/requests/{id}"))).ok()
    });
    let place = kept["place"].as_str().expect("a place");
    assert!(place.starts_with("Shop::pause() /") && place.ends_with(".php:4"), "{kept}");
    server.stop();
}
