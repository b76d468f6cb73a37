//! Doctrine and Redis connections from pools: tasks use one Doctrine connection object
//! concurrently, and each receives its own results.

use crate::parallel::peers::{MODELS, Peers, ask};
use samovar_testkit::{Server, eventually};
use serde_json::{Value, json};

const DRIVERS: [&str; 4] = ["pdo_pgsql", "pgsql", "pdo_mysql", "mysqli"];

fn used(stats: &Value) -> i64 {
    stats["used"].as_i64().expect("a number")
}

#[test]
fn each_task_gets_own_pooled_connection() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).start();
        for driver in DRIVERS {
            let asked =
                |what: &str| ask(&server, &format!("/doctrine?driver={driver}&what={what}"));
            let about = format!("{model} {driver}");
            statements_go_to_connections(&about, &asked);
            a_transaction_is_one_tasks(&about, &asked);
            if model == "resident" {
                // Killed connections are replaced.
                assert_eq!(asked("killed"), json!([true, 7, 0]), "{about}");
            }
        }
        tasks_have_a_redis_each(model, &server);
    }
}

fn statements_go_to_connections(about: &str, asked: &impl Fn(&str) -> Value) {
    let many = asked("many");
    assert_eq!((&many[0], &many[1]), (&json!(3), &json!(9)), "{about}: {many}");
    assert_eq!((used(&many[2]), &many[2]["made"]), (0, &json!(3)), "{about}");
    let told = asked("numbers");
    assert_eq!(told[0], json!([true, true, true, true, true, true]), "{about}");
    if about.ends_with("pgsql") {
        assert!(told[1].to_string().contains("RETURNING"), "{about}: {told}");
    }
}

fn a_transaction_is_one_tasks(about: &str, asked: &impl Fn(&str) -> Value) {
    let told = asked("transactions");
    assert_eq!(told[0], json!([2, 0, 2, 0, 2, 0]), "{about}: {told}");
    assert_eq!(used(&told[1]), 0, "{about}: {told}");
    let told = asked("shared");
    for other in told[0].as_array().expect("two") {
        let said = other.as_str().unwrap_or_default();
        assert!(said.contains("Another task has an active transaction"), "{about}: {told}");
    }
    assert_eq!((&told[1], used(&told[2])), (&json!(1), 0), "{about}: {told}");
    assert_eq!(asked("begun_twice"), json!([[], true]), "{about}");
    assert_eq!(asked("cancelled"), json!([0, 0]), "{about}");
    assert_eq!(asked("many")[1], json!(9), "{about}: others go on");
}

fn tasks_have_a_redis_each(model: &str, server: &Server) {
    let told = eventually("nobody is late", || {
        let told = ask(server, "/redis");
        (told[0] == json!(3)).then_some(told)
    });
    assert_eq!(told[1], json!([1, 2, 3, 4, 5, 6, 7, 8, 9]), "{model}");
    assert_eq!(told[2], json!({"a": "1", "b": "2"}), "{model}");
    assert_eq!(told[3], json!([10, "10"]), "{model}");
    assert_eq!(told[4], "BadMethodCallException", "{model}");
    assert_eq!(told[5], "LogicException", "{model}");
    // Unfinished transactions have no effect.
    assert_eq!((&told[6], &told[7]), (&json!("10"), &json!(0)), "{model}");
}
