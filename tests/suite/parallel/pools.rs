//! Pools of connections.

use crate::parallel::peers::{MODELS, Peers, ask};
use serde_json::{Value, json};

fn numbers(stats: &Value) -> [i64; 4] {
    ["size", "idle", "used", "made"].map(|name| stats[name].as_i64().expect("a number"))
}

#[test]
fn pooled_connection_belongs_to_one_task_at_a_time() {
    let peers = Peers::start();
    for model in MODELS {
        let server = peers.asked_by(model).start();
        let told = ask(&server, "/pool?what=many");
        let backends = told[0].as_object().expect("backends");
        assert_eq!(backends.len(), 3, "{model}: {told}");
        assert_eq!(numbers(&told[1]), [3, 3, 0, 3], "{model}");
        let later = ask(&server, "/pool?what=one");
        let lives_on = backends.contains_key(&later[0].to_string());
        assert_eq!(lives_on, model == "resident", "{model}: {later} after {told}");
        let told = ask(&server, "/pool?what=thrown");
        assert_eq!(told[0], json!(["DomainException", "bad"]));
        assert_eq!(told[1]["used"], 0);
        let told = ask(&server, "/pool?what=cancelled");
        assert_eq!(told[0], "Samovar\\CancelledException");
        assert_eq!(told[1]["used"], 0);
        let told = ask(&server, "/pool?what=uses");
        assert_eq!((&told[0], numbers(&told[1])), (&json!(1), [8, 1, 0, 3]), "{told}");
        let told = ask(&server, "/pool?what=wait");
        assert_eq!(told[0], "Samovar\\TimeoutException");
        assert_eq!((&told[2], numbers(&told[3])), (&json!("free"), [1, 1, 0, 1]), "{told}");
        assert_eq!(ask(&server, "/pool?what=checked"), json!([true, 2, 2]));
        let told = ask(&server, "/pool?what=dead");
        assert_eq!(told[0], true, "{model}: {told}");
        let told = ask(&server, "/pool?what=wrong");
        assert_eq!((&told[0][0], &told[1][0]), (&json!("ValueError"), &json!("TypeError")));
        assert_eq!(told[2], json!(["LogicException", "none"]));
        server.stop();
    }
}
