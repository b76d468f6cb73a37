//! tests/apps/pristine: an application without framework that changes all state a request can
//! change, and uses each way to end a request.

use crate::response_isolation::differential::{REQUESTS, Scene, Trial, assert_rolled_back};
use samovar_testkit::http::Request;
use samovar_testkit::masks::{Rule, Side};
use samovar_testkit::visitor::multipart;
use samovar_testkit::{Oracle, Server, workspace};
use std::path::PathBuf;

const RULES: &[Rule] = &[
    Rule { name: "session", before: "set-cookie: TEASESSION=", after: ";" },
    // The same cookie in a report.
    Rule { name: "session", before: "Set-Cookie: TEASESSION=", after: ";" },
];

#[test]
fn script_responses_equal_those_of_fresh_process() {
    let folder = folder();
    let theirs = Oracle::start(&folder);
    let scenes = scenes(&theirs);
    let fresh = Side { address: theirs.address(), folder: &folder, own: theirs.folder() };
    let trial = Trial::learn(&scenes, RULES, &fresh);
    // Values that only the same kind of server can provide: numbers assigned by the engine, and the
    // amount of memory.
    let own_scenes = [Scene::get("/self"), Scene::get("/self?again")];
    let own = Trial::learn_anew(&own_scenes, RULES, start, &folder);
    let ours = start();
    Trial::run(&[&trial, &own], &ours, &folder, REQUESTS);
    assert_rolled_back(&ours, "shared");
    ours.stop();
}

fn folder() -> PathBuf {
    workspace().join("tests/apps/pristine")
}

fn start() -> Server {
    Server::at(folder().join("index.php")).relinked().workers(2).start()
}

/// Pages that change no state, and as many that change all of it.
fn scenes(oracle: &Oracle) -> Vec<Scene> {
    let mut scenes: Vec<Scene> =
        ["/", "/report", "/report?x=1", "/no/such/page", "/sqlite", "/late/Ann"]
            .into_iter()
            .map(Scene::get)
            .collect();
    scenes.extend(inputs());
    let names: serde_json::Value = serde_json::from_str(&names(oracle)).expect("JSON");
    for kind in ["soil", "end"] {
        for name in names[kind].as_array().expect("a list").iter().filter_map(|n| n.as_str()) {
            scenes.push(Scene::get(&format!("/{kind}/{}", name.replace(' ', "%20"))));
        }
    }
    scenes.push(Scene::get("/soil/all"));
    scenes.push(Scene::new("a session", |visitor| {
        visitor.get("/session?tea=green");
        visitor.get("/session");
        visitor.get("/report");
        visitor.get("/session?tea=black");
    }));
    scenes
}

/// The text that the page prints at its end follows the JSON.
fn names(oracle: &Oracle) -> String {
    let text = oracle.get("/names").text();
    text.split("\n--").next().unwrap_or_default().to_owned()
}

fn inputs() -> Vec<Scene> {
    let file = ("tea", "tea.txt", "text/plain", b"green tea".as_slice());
    let even = ("milk", "milk.txt", "text/plain", b"milk".as_slice());
    let large = vec![b'x'; 160 * 1024];
    let too_large = ("large", "large.txt", "text/plain", &large[..]);
    [
        ("a query", Request::get("/input?a=1&b[]=2&b[]=3&c[d]=4")),
        ("a form", Request::form("/input", "a=1&b[]=2&soil=%C3%A4")),
        ("JSON", Request::post("/input", "application/json", "{\"tea\": 1}")),
        ("uploads", multipart("/input", &[("note", "Zoë's")], &[file, even])),
        ("too large an upload", multipart("/input", &[("note", "x")], &[too_large])),
        ("a cookie", Request::get("/input").header("Cookie", "tea=green; sugar=%20none")),
        ("a header", Request::get("/input").header("X-Tea", "black")),
        ("a login", Request::get("/input").header("Authorization", "Basic YW5uOnRlYQ==")),
        ("HEAD", Request::new("HEAD", "/input")),
        ("PUT", Request::new("PUT", "/input?x").body(large.clone())),
        ("DELETE", Request::new("DELETE", "/input")),
    ]
    .into_iter()
    .map(|(name, request)| Scene::one(name, request))
    .collect()
}
