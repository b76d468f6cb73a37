//! The boot's objects whose end nobody sees are not ended by each request: nobody can tell, and nothing is written.

use crate::isolation::ends::open_to_all;
use crate::isolation::memory::image;
use crate::isolation::stage::{json, start};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually};
use std::path::Path;

const FRONT: &str = "unseen.php";
/// Far fewer than the boot's 5,000 objects take, and far more than a request that does nothing writes.
const HOT_MAX: u64 = 150;
/// Of a request that only says a word: 22 on 2026-11-25, with the 40 extensions of a distribution.
const HOT_OF_NOTHING_MAX: u64 = 30;

fn serve() -> Server {
    start(FRONT).workers(1).start()
}

fn target(how: &str, folder: &Path) -> String {
    format!("/{FRONT}?how={}&folder={}", how.replace(' ', "%20"), folder.display())
}

/// The answer, and what has been told until nothing more comes: the expected, if there is any.
fn end(client: &dyn Fn() -> Client, how: &str, expected: Option<&str>) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    open_to_all(folder.path());
    let page = client().get(&target(how, folder.path())).text();
    let told = || client().get(&target("told", folder.path())).text();
    // One worker: what it tells of this request comes before it takes the next.
    let told = match expected {
        Some(expected) => {
            eventually("the request's end", || Some(told()).filter(|t| t == expected))
        }
        None => told(),
    };
    (page, told)
}

#[test]
fn whoever_looks_sees_what_php_fpm_shows() {
    let oracle = crate::isolation::ends::oracle();
    let server = serve();
    let (ours, theirs) = (|| server.client(), || oracle.client());
    let names = json(&ours().get(&target("names", Path::new("/"))));
    for how in names.as_array().expect("a list").iter().filter_map(|name| name.as_str()) {
        let (page, told) = end(&theirs, how, None);
        assert_eq!(end(&ours, how, Some(&told)), (page, told), "{how}");
    }
    assert_eq!(server.status()["image"]["refork_total"], 0);
    server.stop();
}

#[test]
fn a_request_does_not_write_into_objects_of_the_boot_at_its_end() {
    let server = serve();
    for how in ["nothing", "objects", "of extensions"] {
        for _ in 0..30 {
            end(&|| server.client(), how, Some(""));
        }
        let hot = image(&server)["hot_pages"].as_u64().expect("a number");
        assert!(hot < HOT_MAX, "{how}: {hot} hot pages");
    }
    server.stop();
}

/// There were 34: libraries' thread-local variables, which each request had allocated anew under the dynamic linker's locks,
/// a log that was closed and had never been opened, and what extensions free at a request's end.
#[test]
fn a_request_that_does_nothing_writes_few_pages() {
    let server = Server::script("<?php Samovar\\checkpoint(); echo 'word';").workers(1).start();
    for _ in 0..30 {
        assert_eq!(server.get("/").text(), "word");
    }
    let hot = image(&server)["hot_pages"].as_u64().expect("a number");
    assert!(hot <= HOT_OF_NOTHING_MAX, "{hot} hot pages");
    server.stop();
}
