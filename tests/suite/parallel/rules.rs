//! Documented behaviour of the functions, as observed by `tests/apps/parallel/rules.php`.

use crate::parallel::peers::{MODELS, Peers, ask};
use samovar_testkit::Server;
use serde_json::{Value, json};

fn rule(server: &Server, name: &str) -> Value {
    ask(server, &format!("/rule?name={}", name.replace(' ', "+")))
}

fn is(server: &Server, name: &str, expected: &Value) {
    assert_eq!(&rule(server, name), expected, "{name}");
}

fn starts(value: &Value, text: &str) {
    assert!(value.as_str().is_some_and(|said| said.starts_with(text)), "`{text}`…: {value}");
}

#[test]
fn task_functions_behave_as_documented() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).args(["--tasks-max", "16"]).start();
        groups(&server);
        waits(&server);
        one_connection(&server);
        engine(&server);
        let told = rule(&server, "limits");
        assert_eq!(told[0][0], "Error", "{told}");
        assert!(
            told[0][1].as_str().is_some_and(|text| text.contains("limits.tasks_max")),
            "{told}"
        );
        assert_eq!(told[1], json!(["returned", 16]));
        let response = server.get("/rule?name=left").text();
        assert!(response.ends_with("[\"left\"]"), "{model}: {response}");
        server.wait_for_log("ended with an exception, and was never awaited: Exception: unheard");
        server.stop();
    }
}

fn groups(server: &Server) {
    let told = rule(server, "keys");
    assert_eq!(told[0], json!([["b", 7, "a"], [1, null, "fpm-fcgi"]]));
    assert_eq!(told[1], json!([]));
    for (i, class) in ["TypeError", "ValueError", "ValueError", "ValueError"].iter().enumerate() {
        assert_eq!(told[i + 2][0], *class, "{told}");
    }
    let told = rule(server, "exception");
    assert_eq!(told, json!([["DomainException", "bad"], ["nested ended", "slow ended"]]));
    let told = rule(server, "finally");
    assert_eq!(told, json!(["Samovar\\CancelledException", ["pong", "Error"], true]));
    let late = "Samovar\\TimeoutException";
    is(server, "timeout", &json!([late, late, "done", true]));
    is(server, "first", &json!(["fast", ["Exception", "one"], late, null]));
}

fn waits(server: &Server) {
    let told = rule(server, "channel");
    assert_eq!((&told[0], &told[1]), (&json!(42925), &json!(50)), "{told}");
    assert_eq!(told[2][0], "Error");
    assert_eq!((&told[3], &told[4]), (&json!("Samovar\\TimeoutException"), &told[3]));
    starts(&told[5][1], "All tasks wait for each other");
    assert_eq!((&told[6], &told[7]), (&json!("ValueError"), &json!("ValueError")));
    let told = rule(server, "await");
    assert_eq!(told[0], json!(["Error", "A task cannot await itself"]));
    assert_eq!(
        (&told[2], &told[3]),
        (&json!(["Exception", "again"]), &json!(["Exception", "again"]))
    );
    starts(&told[4][1], "All tasks wait for each other");
    let told = rule(server, "overlap");
    assert_eq!((&told[0], &told[2]), (&json!("/2"), &json!("/1")), "{told}");
    assert!(told[3].as_f64().is_some_and(|seconds| seconds < 30.0));
    let told = rule(server, "socket timeouts");
    assert_eq!(told["stream"], true);
    assert_eq!(told["socket"], json!([false, true]));
    assert_eq!(told["curl"], 28, "CURLE_OPERATION_TIMEDOUT");
    assert_eq!(told["redis"], "RedisException");
    assert_eq!(told["refused"], 111, "ECONNREFUSED");
    assert_eq!(told["nonblocking"], "");
    is(server, "large", &json!([true, true, true, true]));
    is(server, "signal", &json!([["a", "/3"], 1]));
}

fn one_connection(server: &Server) {
    let told = rule(server, "one connection");
    // mysqlnd detects this itself before it sends a byte.
    assert!(told[2][1].as_str().is_some_and(|text| text.contains("2014")), "{told}");
    for i in [0, 4] {
        assert_eq!(told[i][0], "Error", "{told}");
        let text = told[i][1].as_str().expect("a message");
        for part in ["the task \"first\"", "the task \"second\"", "Samovar\\Pool"] {
            assert!(text.contains(part), "{part} is in {text}");
        }
    }
    assert_eq!((&told[1], &told[3]), (&json!("PDOException"), &json!("PDOException")), "{told}");
    is(server, "cut", &json!(["Samovar\\CancelledException", "PDOException"]));
}

fn engine(server: &Server) {
    let told = rule(server, "fibers");
    assert_eq!(told[0]["a"], json!(["a suspends", "a got a value", true]), "{told}");
    assert_eq!(told[0]["b"], json!(["b suspends", "b got a value", true]), "{told}");
    assert_eq!((&told[1], &told[2]), (&json!(["a begins", "b begins"]), &json!([1, 2])));
    assert_eq!(told[3], "FiberError");
    let own = |name| format!("{name} 1 {} 2 {name} 3", str::to_uppercase(name));
    is(server, "buffers", &json!([[own("a"), own("b"), own("c")], "outer left open"]));
    let told = rule(server, "callbacks");
    assert_eq!((&told[0], &told[1]), (&json!([1, 2, 3, 4, 5]), &json!([5, 4, 3, 2, 1])), "{told}");
    assert_eq!((&told[2], &told[3]), (&json!(["A", "BC", "D"]), &json!(["X", "YZ"])), "{told}");
    assert_ne!(told[4], told[5], "what @ says is the task's own: {told}");
    is(server, "deep", &json!([20000, 20000, 10]));
    let told = rule(server, "refused");
    assert_eq!(told[0], "Error", "{told}");
    assert_eq!(
        (&told[1], &told[2], &told[3]),
        (&json!("Error"), &json!("Exception"), &json!("Error"))
    );
    assert_eq!((&told[5], &told[6]), (&json!("Error"), &json!("Error")), "{told}");
}
