//! The first page, through both servers.

use samovar_testkit::{Oracle, Server, family, workspace};

#[test]
fn first_page_matches_php_fpm() {
    let root = workspace().join("examples/hello/public");
    let server = Server::at(&root).start();
    let oracle = Oracle::start(&root);
    for target in ["/", "/?name=Ann", "/style.css", "/no/such/page"] {
        let (ours, theirs) = (server.get(target), oracle.get(target));
        assert_eq!(
            (ours.status, ours.header("content-type")),
            (theirs.status, theirs.header("content-type"))
        );
        let plain = |text: String| -> String {
            text.lines().filter(|l| !l.contains("<code>")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(plain(ours.text()), plain(theirs.text()), "{target}");
    }
    let status = server.status();
    assert_eq!(status["requests_total"], 4, "{status}");
    server.stop();
}

/// The runner's check after each test: it finds the processes of a running server, and none of a
/// stopped one.
#[test]
fn remaining_processes_are_detected() {
    let server = Server::at(workspace().join("examples/hello/public")).workers(2).start();
    let (name, value) = server.marker();
    let left = family::with(name, &value);
    assert!(left.len() >= 4, "server, template and two workers: {left:?}");
    assert!(family::with(family::RUN, &family::run()).len() >= left.len(), "they are of this run");
    let worker = server.worker_pid();
    let told = left.iter().find(|one| one.pid == worker).expect("a worker").to_string();
    assert!(told.contains("samovar-php") && told.contains("parent "), "{told}");
    server.stop();
    assert_eq!(family::gone(name, &value), Ok(()));
}
