//! Events: changes of workers and reloads are counted, and shown on the admin pages.

use super::{ask_admin, sample};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, eventually};

fn comes_to(server: &Server, kind: &str, least: u64) {
    let name = format!("samovar_events_total{{kind=\"{kind}\"}}");
    eventually(&format!("{least} {kind}"), || (sample(server, &name) >= least).then_some(()));
}

fn history(server: &Server) -> String {
    ask_admin(server, &Request::get("/history")).text()
}

#[test]
fn reloads_crashes_and_changes_are_recorded_as_events() {
    let server =
        Server::script("<?php if (isset($_GET['die'])) posix_kill(getmypid(), 11); echo 1;")
            .workers(2)
            .config("admin = '127.0.0.1:0'\n[insight]\nstore = 'history.sqlite'\n")
            .start();
    comes_to(&server, "start", 1);
    assert_eq!(server.get("/?die").status, 502);
    comes_to(&server, "crash", 1);
    server.reload().expect("a reload");
    comes_to(&server, "reload", 1);
    let file = server.folder().join("samovar.toml");
    let text = std::fs::read_to_string(&file).expect("the settings");
    std::fs::write(&file, format!("static_files = false\n{text}")).expect("the settings");
    server.reload().expect("a reload");
    comes_to(&server, "config", 1);
    std::fs::write(&file, "nonsense").expect("the settings");
    server.reload().expect_err("no settings");
    comes_to(&server, "reload_failed", 1);
    let page = history(&server);
    for expected in ["segmentation fault", "static_files", "took over after"] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
    server.stop();
}

#[test]
fn killed_worker_is_recorded_with_reason_not_as_crash() {
    let server = Server::script(
        "<?php if (isset($_GET['hang'])) { while (true) { usleep(1000); } } echo 1;",
    )
    .config(
        "admin = '127.0.0.1:0'\n[timeouts]\nresponse = '200ms'\ngrace = 0\n\
         [insight]\nstore = 'history.sqlite'\n",
    )
    .start();
    assert_eq!(server.get("/?hang").status, 504);
    comes_to(&server, "kill", 1);
    comes_to(&server, "limit", 1);
    eventually("its successor answers", || (server.get("/").status == 200).then_some(()));
    assert!(history(&server).contains("timeouts.response"));
    assert_eq!(sample(&server, "samovar_events_total{kind=\"crash\"}"), 0);
    server.stop();
}
