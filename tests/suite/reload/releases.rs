//! Labels of releases: in the status, in metrics, in ranges of the dashboard, with errors and in
//! traces. A failed reload, an aborted canary and another pool do not change the label.

use samovar_testkit::collector::Collector;
use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::protoc::{self, TRACES};
use samovar_testkit::{Server, binary, eventually};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// A page of each execution model, by the begin and end of its handler.
const MODELS: [(&str, &str); 3] =
    [("(", ")();"), ("Samovar\\serve(", ", 0);"), ("Samovar\\serve(", ", 1);")];

/// Writes a page that fails if it is asked to.
fn page(root: &Path, (begin, end): (&str, &str)) {
    let php = format!(
        "<?php {begin}static function () {{
            if (isset($_GET['fail'])) {{ throw new RuntimeException('no stock'); }}
            echo 'shop';
        }}{end}"
    );
    std::fs::write(root.join("index.php"), php).expect("a script");
}

fn ask(server: &Server, path: &str) -> Response {
    let status = server.status();
    let admin: SocketAddr =
        status["admin"][0].as_str().and_then(|text| text.parse().ok()).expect("an address");
    Client::connect(admin).request(&Request::get(path))
}

fn json(server: &Server, path: &str) -> Value {
    serde_json::from_str(&ask(server, path).text()).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the samples of the metric, without its name.
fn metric(server: &Server) -> Vec<String> {
    let page = ask(server, "/metrics").text();
    let samples = page.lines().filter_map(|line| line.strip_prefix("samovar_release_info"));
    samples.map(str::to_owned).collect()
}

fn requests(server: &Server, range: &str) -> u64 {
    let found = json(server, &format!("/api/overview?compare=none&range={range}"));
    found["total"]["costs"]["requests"].as_u64().unwrap_or_else(|| panic!("{range}: {found}"))
}

/// Waits for the end of a second: a release that serves for less has no range of its own.
fn a_second_later() {
    let now = samovar_insight::now();
    eventually("the next second", || (samovar_insight::now() > now + 1).then_some(()));
}

/// Runs a reload with a label that is refused. Returns the exit code and the message.
fn refused(server: &Server, label: &str) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    let command = command.args(["reload", "--control"]).arg(server.control());
    let output = command.args(["--release", label]).output().expect("the binary runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Sends a line to the control socket, as another program might.
fn control(server: &Server, line: &str) -> String {
    let mut socket = UnixStream::connect(server.control()).expect("the control socket");
    socket.write_all(line.as_bytes()).expect("a line");
    let mut said = String::new();
    BufReader::new(socket).read_line(&mut said).expect("a response");
    said
}

/// Runs a command for the canary.
fn canary(server: &Server, action: &str) {
    let mut command = Command::new(binary());
    let command = command.args(["canary", "--control"]).arg(server.control()).arg(action);
    assert!(command.output().expect("the binary runs").status.success(), "{action}");
}

#[test]
fn label_follows_reloads_and_canaries_and_no_failure() {
    for model in MODELS {
        let folder = tempfile::tempdir().expect("a folder");
        page(folder.path(), model);
        let history = folder.path().join("history.sqlite");
        let settings = format!(
            "release = '1.0'\nadmin = '127.0.0.1:0'\n[insight]\nstore = '{}'\n",
            history.display()
        );
        let server = Server::at(folder.path()).workers(2).config(&settings).start();
        let label = |server: &Server| server.status()["release"].clone();
        assert_eq!(label(&server), "1.0");
        assert_eq!(metric(&server), ["{arm=\"serving\",release=\"1.0\"} 1"]);
        for path in ["/a", "/a", "/a?fail"] {
            server.get(path);
        }
        eventually("the first release's requests", || {
            (requests(&server, "release") == 3).then_some(())
        });

        a_second_later();
        let said = server.reload_with(["--release", "2.0+8c1f"]).expect("a reload");
        assert!(said.contains("generation 2, release 2.0+8c1f, serves"), "{said}");
        assert_eq!(label(&server), "2.0+8c1f");
        server.get("/a?fail");
        eventually("the second release's error", || {
            let groups = json(&server, "/api/errors");
            let group = &groups[0];
            (group["count"] == 2).then(|| {
                assert_eq!(group["first_release"], "1.0", "{group}");
                assert_eq!(group["last_release"], "2.0+8c1f", "{group}");
            })
        });
        let errors = ask(&server, "/errors").text();
        assert!(errors.contains("release 2.0+8c1f") && errors.contains("release 1.0"), "{errors}");
        for (range, expected) in [
            ("release", 1),
            ("release:2.0%2B8c1f", 1),
            ("release:1.0", 3),
            ("previous-release", 3),
            ("start", 4),
        ] {
            assert_eq!(requests(&server, range), expected, "{range}");
        }
        let compared = json(&server, "/api/routes?range=release&compare=release:1.0");
        let before = compared["routes"][0]["before"]["requests"].clone();
        assert_eq!(before, 3, "{compared}");
        let routes = ask(&server, "/routes?range=release:1.0").text();
        assert!(routes.contains(", release 1.0"), "{routes}");
        assert!(routes.contains("range=release%3A2%2E0%2B8c1f"), "a link of the list: {routes}");
        for range in ["release:3", "release:%3Cb%3E", "release:", "release:1.0%0A"] {
            let refused = ask(&server, &format!("/routes?range={range}"));
            assert_eq!(refused.status, 400, "{range}");
            assert!(refused.text().contains("Invalid time range"), "{range}");
            assert!(!refused.text().contains("<b>"), "{range}");
            assert_eq!(ask(&server, &format!("/api/routes?range={range}")).status, 400, "{range}");
        }

        // Same label again: it is the same release.
        a_second_later();
        server.reload_with(["--release", "2.0+8c1f"]).expect("a reload");
        assert_eq!(requests(&server, "release"), 1);

        let long = "a".repeat(101);
        for hostile in ["<b>1</b>", "1 2", "1\u{202e}2", "1\n2", "é", &long] {
            let (code, refused) = refused(&server, hostile);
            assert_eq!(code, Some(2), "{hostile:?}");
            assert!(refused.contains("hint: it takes up to 100"), "{hostile:?}: {refused}");
        }
        for hostile in ["<b>1</b>", "é", &long] {
            let said = control(&server, &format!("reload release={hostile}\n"));
            assert!(said.contains("invalid label of a release"), "{hostile}: {said}");
        }
        std::fs::remove_file(folder.path().join("index.php")).expect("our own file");
        server.reload_with(["--release", "3.0"]).expect_err("no front controller");
        page(folder.path(), model);
        assert_eq!(label(&server), "2.0+8c1f");

        let begin = ["--canary", "50%", "--step", "0", "--by", "random", "--release", "4.0"];
        for (action, expected) in [("abort", "2.0+8c1f"), ("promote", "4.0")] {
            let said = server.reload_with(begin).expect("a canary");
            assert!(said.contains("(release 4.0)"), "{said}");
            assert_eq!(label(&server), "2.0+8c1f");
            assert_eq!(
                metric(&server),
                ["{arm=\"serving\",release=\"2.0+8c1f\"} 1", "{arm=\"canary\",release=\"4.0\"} 1"]
            );
            canary(&server, action);
            eventually("the canary has ended", || {
                let status = server.status();
                (status["canary"].is_null() && status["release"] == expected).then_some(())
            });
            assert_eq!(metric(&server), [format!("{{arm=\"serving\",release=\"{expected}\"}} 1")]);
        }
        // Without a label the setting applies.
        server.reload().expect("a reload");
        assert_eq!(label(&server), "1.0");
        server.stop();
    }
}

#[test]
fn label_in_file_is_read_at_each_reload() {
    let folder = tempfile::tempdir().expect("a folder");
    page(folder.path(), MODELS[1]);
    let revision = folder.path().join("REVISION");
    std::fs::write(&revision, "8c1f2e0\n").expect("a file");
    let settings = format!("release_file = '{}'\n", revision.display());
    let server = Server::at(folder.path()).workers(2).config(&settings).start();
    assert_eq!(server.status()["release"], "8c1f2e0", "without request accounting");
    std::fs::write(&revision, "d02bb1a").expect("a file");
    server.reload().expect("a reload");
    assert_eq!(server.status()["release"], "d02bb1a");
    for (text, wanted) in [("<script>", "invalid label of a release"), ("", "invalid label")] {
        std::fs::write(&revision, text).expect("a file");
        let refused = server.reload().expect_err("an invalid label");
        assert!(refused.contains(wanted) && refused.contains("REVISION"), "{refused}");
    }
    std::fs::remove_file(&revision).expect("our own file");
    let file = format!("--release-file={}", revision.display());
    let mut check = Command::new(binary());
    let check = check.args(["check", "--listen", "127.0.0.1:0", &file]).arg(folder.path());
    let checked = check.output().expect("the binary runs");
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(said.contains("error    release: cannot read `release_file`"), "{said}");
    let refused = server.reload().expect_err("no file");
    assert!(refused.contains("cannot read `release_file`"), "{refused}");
    assert_eq!(
        (server.status()["release"].as_str(), server.get("/").status),
        (Some("d02bb1a"), 200)
    );
    server.reload_with(["--release", "hotfix"]).expect("the command is before the file");
    assert_eq!(server.status()["release"], "hotfix");
    server.stop();
}

#[test]
fn each_pool_has_its_own_label() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = folder.path().join("api");
    let shop = folder.path().join("shop");
    for root in [&api, &shop] {
        std::fs::create_dir(root).expect("a folder");
        page(root, MODELS[2]);
    }
    let settings = format!(
        "release = '1.0'\nadmin = '127.0.0.1:0'\n[[pool]]\nname = 'api'\nmatch = '/api/*'\nroot = \
         '{}'\n",
        api.display()
    );
    let server = Server::at(&shop).workers(2).config(&settings).start();
    let labels = |server: &Server| -> Vec<String> {
        let status = server.status();
        let pools = status["pools"].as_array().expect("pools");
        pools.iter().map(|pool| pool["release"].as_str().unwrap_or("").to_owned()).collect()
    };
    assert_eq!(labels(&server), ["1.0", ""], "another application has another label");
    let said = server.reload_with(["--pool", "api", "--release", "7"]).expect("a reload");
    assert!(said.contains("pool api: generation 2, release 7, serves"), "{said}");
    assert_eq!(labels(&server), ["1.0", "7"]);
    assert_eq!(
        metric(&server),
        [
            "{pool=\"default\",arm=\"serving\",release=\"1.0\"} 1",
            "{pool=\"api\",arm=\"serving\",release=\"7\"} 1"
        ]
    );
    server.get("/api/x?fail");
    eventually("the error of the pool", || {
        (json(&server, "/api/errors")[0]["last_release"] == "7").then_some(())
    });
    server.stop();
}

#[test]
fn spans_have_the_release_that_served_them() {
    let collector = Collector::start([]);
    let settings = format!(
        "release = '1.0'\n[insight]\notlp = '{}'\notlp_interval = '50ms'\n",
        collector.endpoint
    );
    let folder = tempfile::tempdir().expect("a folder");
    page(folder.path(), MODELS[2]);
    let server = Server::at(folder.path()).workers(2).config(&settings).start();
    server.get("/first");
    server.reload_with(["--release", "2.0"]).expect("a reload");
    server.get("/second");
    let texts = eventually("both requests are sent", || {
        let posted = collector.posted();
        let traces = posted.iter().filter(|posted| posted.head.starts_with("post /v1/traces "));
        let texts: Vec<_> = traces.map(|posted| protoc::decode(TRACES, &posted.body)).collect();
        let has = |path: &str| texts.iter().any(|text| text.contains(path));
        (has("/first") && has("/second")).then_some(texts)
    });
    // The parts of a body begin with their resource.
    let all = texts.join("\n");
    let of = |path: &str| {
        let part = all.split("resource_spans {").find(|part| part.contains(path)).expect("spans");
        let (_, label) = part.split_once("key: \"service.version\"").expect("a label");
        label.split('"').nth(1).expect("a text").to_owned()
    };
    assert_eq!((of("/first").as_str(), of("/second").as_str()), ("1.0", "2.0"));
    server.stop();
}
