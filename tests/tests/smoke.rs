//! The first page, through both servers.

use samovar_testkit::{Oracle, Server, workspace};

#[test]
fn the_first_page_is_the_oracles() {
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
