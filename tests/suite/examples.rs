//! Every example is started by the commands of its README, and responds as the README describes.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, workspace};
use std::collections::BTreeSet;
use std::path::PathBuf;
use tempfile::TempDir;

/// Sends requests to a server, and panics on a wrong response.
type Check = fn(&Server);

/// The check of each example, run once for each command of its README.
const CHECKS: &[(&str, Check)] =
    &[("hello", hello), ("resident", resident), ("slim", slim), ("symfony", symfony)];

#[test]
fn each_example_has_a_check() {
    let examples = std::fs::read_dir(workspace().join("examples")).expect("a folder");
    let names = examples.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let checked = CHECKS.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(names.collect::<BTreeSet<_>>(), checked.collect::<BTreeSet<_>>());
}

#[test]
fn each_example_responds_as_its_readme_describes() {
    for (example, check) in CHECKS {
        let commands = commands(example);
        assert!(!commands.is_empty(), "{example}: the README tells no `samovar serve` command");
        for target in commands {
            println!("samovar serve {target}");
            let var = TempDir::new().expect("a temporary folder");
            let server = Server::at(workspace().join(&target))
                .relinked()
                .plain_ini()
                // Keeps generated files out of the source tree.
                .env("APP_CACHE_DIR", &var.path().join("cache").display().to_string())
                .env("APP_LOG_DIR", &var.path().join("log").display().to_string())
                .start();
            check(&server);
            let is_script = PathBuf::from(&target).extension().is_some();
            let model = match is_script {
                true if target.ends_with("checkpoint.php") => "checkpoint",
                true => "resident",
                false => "script",
            };
            let status = server.status();
            let workers = status["workers"].as_array().expect("a list of workers");
            let models: BTreeSet<_> = workers.iter().map(|w| w["model"].as_str()).collect();
            assert!(models.contains(&Some(model)), "{target}: {status}");
            let log = server.stop();
            for complaint in ["PHP Deprecated", "PHP Notice", "PHP Warning", "PHP Fatal"] {
                assert!(!log.contains(complaint), "{target}: {log}");
            }
        }
    }
}

/// Paths that the README of an example serves, relative to the workspace.
fn commands(example: &str) -> Vec<String> {
    let readme: PathBuf = ["examples", example, "README.md"].iter().collect();
    let text = std::fs::read_to_string(workspace().join(&readme))
        .unwrap_or_else(|e| panic!("cannot read `{}`: {e}", readme.display()));
    let targets = text.lines().filter_map(|line| line.strip_prefix("samovar serve "));
    let targets: Vec<String> = targets.map(str::to_owned).collect();
    for target in &targets {
        assert!(!target.contains(' '), "{example}: the test knows no further arguments: {target}");
    }
    targets
}

fn hello(server: &Server) {
    let page = server.get("/?name=Ann");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Hello, Ann!"), "{}", page.text());
    assert_eq!(server.get("/style.css").header("content-type"), Some("text/css"));
}

fn resident(server: &Server) {
    assert!(server.get("/").text().starts_with("Hello from process "));
    let age: serde_json::Value = serde_json::from_str(&server.get("/age").text()).expect("JSON");
    assert!(age["seconds"].is_number() && age["served"].is_number(), "{age}");
    assert_eq!(server.get("/no/such/page").status, 404);
    let body: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    let echo =
        server.client().request(&Request::post("/echo", "application/x-bytes", body.clone()));
    assert_eq!(echo.header("content-type"), Some("application/x-bytes"));
    assert!(echo.body == body, "the body comes back");
    stream(&mut server.client());
}

/// Each line arrives when it is written, not all at the end.
fn stream(client: &mut Client) {
    client.send(&Request::get("/stream").bytes());
    assert_eq!(client.read_head().expect("a head").status, 200);
    for line in ["3\n", "2\n", "1\n", "liftoff\n", ""] {
        let chunk = client.read_chunk().expect("a chunk").expect("no end in between");
        assert_eq!(String::from_utf8_lossy(&chunk), line);
    }
}

fn slim(server: &Server) {
    assert!(server.get("/").text().contains("Hello from Slim"));
    assert_eq!(server.get("/hello/Ann?greeting=Welcome").text(), "Welcome, Ann!\n");
    let mut client = server.client();
    let added =
        client.request(&Request::post("/todos", "application/json", "{\"title\": \"tea\"}"));
    assert_eq!((added.status, added.header("location")), (201, Some("/todos/1")));
    let list = client.request(&Request::get("/todos").header("Cookie", &added.cookies()));
    assert_eq!(list.text(), "[{\"id\":1,\"title\":\"tea\"}]");
    assert_eq!(server.get("/admin").status, 401);
    let login = Request::get("/admin").header("Authorization", "Basic YW5uOnRlYQ==");
    assert_eq!(client.request(&login).text(), "Welcome, ann.\n");
}

fn symfony(server: &Server) {
    let home = server.get("/");
    assert!(home.text().contains("You have been here once."), "{}", home.text());
    let again = server.client().request(&Request::get("/").header("Cookie", &home.cookies()));
    assert!(again.text().contains("You have been here 2 times."), "{}", again.text());
    assert!(server.get("/message").text().contains("Leave a message"));
    assert_eq!(server.get("/countdown/2").text(), "2\n1\nliftoff\n");
    assert_eq!(server.get("/api/square/12").text(), "{\"number\":12,\"square\":144}");
    let boom = server.get("/boom");
    assert_eq!(boom.status, 500);
    assert!(boom.text().contains("Something went wrong"), "{}", boom.text());
}
