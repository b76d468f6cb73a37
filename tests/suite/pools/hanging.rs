//! A file system that hangs is one pool's trouble: the front's threads wait for none.

use super::{API, BLOG, Sites};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{MuteMount, eventually};

/// More than a pool has threads for a disk.
const WAITING: usize = 8;

#[test]
fn a_file_system_that_hangs_holds_up_one_pool() {
    let sites = Sites::new();
    sites.rewrite("api/a.css", "a {}");
    let server = sites.server(&format!("{API}{BLOG}")).start();
    assert_eq!(server.get("/api/x").text(), "api /api/x 77M");
    let folder = sites.path("api");
    let mute = match MuteMount::over(&folder) {
        Ok(mute) => mute,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let mut waiting: Vec<Client> = (0..WAITING).map(|_| server.client()).collect();
    for (number, client) in waiting.iter_mut().enumerate() {
        client.send(&Request::get(&format!("/api/{number}")).bytes());
    }
    // Each has to be looked for.
    for number in 0..WAITING {
        let uri = format!("/shop/{number}");
        assert_eq!(server.get(&uri).text(), format!("shop {uri} 64M"));
        let blog = Request::get(&uri).header("Host", "blog.example");
        assert_eq!(server.client().request(&blog).text(), format!("blog {uri} 64M"));
    }
    for client in &mut waiting {
        let answer = client.read(false);
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "{answer:?}");
    }
    server.wait_for_log("a file system does not answer");
    assert!(server.log().contains(&format!("place=\"{}/", folder.display())), "{}", server.log());
    let reasons = &server.status()["rejected_reasons"];
    assert!(reasons["files"].as_u64() >= Some(WAITING as u64), "{reasons}");
    drop(mute);
    eventually("it is there again", || {
        (server.get("/api/y").text() == "api /api/y 77M").then_some(())
    });
    server.stop();
}
