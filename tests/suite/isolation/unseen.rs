//! Objects of the boot with unobservable destruction are not destroyed at the end of each request.
//! The result is the same, and no memory is written.

use crate::isolation::ends::open_to_all;
use crate::isolation::memory::image;
use crate::isolation::stage::{json, start};
use samovar_testkit::http::Client;
use samovar_testkit::{Server, eventually};
use std::path::Path;

const FRONT: &str = "unseen.php";
/// Far fewer pages than the boot's 5,000 objects need, and far more than a request without any
/// action writes.
const HOT_MAX: u64 = 150;
/// For a request that prints one word: 22 on 2026-11-25, with the 40 extensions of a distribution.
const HOT_OF_NOTHING_MAX: u64 = 30;

fn serve() -> Server {
    start(FRONT).workers(1).start()
}

fn target(how: &str, folder: &Path) -> String {
    format!("/{FRONT}?how={}&folder={}", how.replace(' ', "%20"), folder.display())
}

/// The response, and the messages that objects wrote at the request's end. Waits for the expected
/// messages, if there are any.
fn end(client: &dyn Fn() -> Client, how: &str, expected: Option<&str>) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    open_to_all(folder.path());
    let page = client().get(&target(how, folder.path())).text();
    let told = || client().get(&target("told", folder.path())).text();
    // With one worker, the messages of this request precede the next request.
    let told = match expected {
        Some(expected) => {
            eventually("the request's end", || Some(told()).filter(|t| t == expected))
        }
        None => told(),
    };
    (page, told)
}

#[test]
fn observable_destruction_matches_php_fpm() {
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
fn request_end_writes_no_boot_objects() {
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

/// There once were 34: thread-local variables of libraries, which each request allocated again
/// under the dynamic linker's locks; a log that was closed without having been opened; and memory
/// that extensions free at a request's end.
#[test]
fn empty_request_writes_few_pages() {
    let server = Server::script("<?php Samovar\\checkpoint(); echo 'word';").workers(1).start();
    for _ in 0..30 {
        assert_eq!(server.get("/").text(), "word");
    }
    let hot = image(&server)["hot_pages"].as_u64().expect("a number");
    assert!(hot <= HOT_OF_NOTHING_MAX, "{hot} hot pages");
    server.stop();
}
