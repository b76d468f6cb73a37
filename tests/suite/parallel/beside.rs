//! Tasks in combination with event loops of the application, forked processes, and a debugger.

use crate::parallel::peers::{MODELS, Peers, ask};
use samovar_testkit::Server;
use serde_json::json;

#[test]
fn event_loop_child_process_and_debugger_work_next_to_tasks() {
    let peers = Peers::start();
    for model in MODELS {
        if model == "resident" {
            let server = peers.asked_by(model).start();
            loops(&server, model);
            processes(&server, model);
            server.stop();
        }
        let start = peers.asked_by(model).define("zend_extension", "xdebug.so");
        let server = start.define("xdebug.mode", "develop,debug").start();
        assert_eq!(ask(&server, "/rule?name=debugger"), true, "{model}");
        loops(&server, model);
        processes(&server, model);
        for client in ["pdo_pgsql", "redis", "stream"] {
            let told = ask(&server, &format!("/jobs?client={client}&count=4"));
            for i in 0..4 {
                assert_eq!(
                    told["answers"][format!("job {i}")],
                    format!("/{i}"),
                    "{model} {client}"
                );
            }
        }
        let told = ask(&server, "/rule?name=exception");
        assert_eq!(told[0], json!(["DomainException", "bad"]), "{model}: {told}");
        let response = server.get("/end?how=fatal+in+a+task").text();
        assert!(response.contains("ended"), "{model}: {response}");
        loops(&server, model);
        server.stop();
    }
}

fn loops(server: &Server, model: &str) {
    let said =
        |name: &str| json!([format!("{name} 1"), format!("{name} 2"), format!("{name} timer")]);
    let expected =
        json!([said("main"), "/1", [said("first"), said("second"), "/2"], ["/3", "/4"],]);
    assert_eq!(ask(server, "/rule?name=loop"), expected, "{model}");
}

fn processes(server: &Server, model: &str) {
    let told = ask(server, "/rule?name=processes");
    let expected = json!([["ab", 9], "/1", ["line 2", 3], "/3", ["line 4", 3], "/5", "6\n"]);
    assert_eq!(told, expected, "{model}");
}
