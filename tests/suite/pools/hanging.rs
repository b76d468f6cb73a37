//! A hanging file system affects one pool only: the front's threads do not wait for it.

use super::{API, BLOG, Sites};
use samovar_testkit::http::{Client, Request};
use samovar_testkit::{MuteMount, eventually};

/// More than the number of disk threads of a pool.
const WAITING: usize = 8;

#[test]
fn hanging_file_system_blocks_one_pool_only() {
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
    // New targets, so that each causes a file lookup.
    for number in 0..WAITING {
        let uri = format!("/shop/{number}");
        assert_eq!(server.get(&uri).text(), format!("shop {uri} 64M"));
        let blog = Request::get(&uri).header("Host", "blog.example");
        assert_eq!(server.client().request(&blog).text(), format!("blog {uri} 64M"));
    }
    for client in &mut waiting {
        let response = client.read(false);
        assert_eq!(
            (response.status, response.header("retry-after")),
            (503, Some("1")),
            "{response:?}"
        );
    }
    server.wait_for_log("file system does not respond");
    assert!(server.log().contains(&format!("place=\"{}/", folder.display())), "{}", server.log());
    let reasons = &server.status()["rejected_reasons"];
    assert!(reasons["files"].as_u64() >= Some(WAITING as u64), "{reasons}");
    drop(mute);
    eventually("it is there again", || {
        (server.get("/api/y").text() == "api /api/y 77M").then_some(())
    });
    server.stop();
}
