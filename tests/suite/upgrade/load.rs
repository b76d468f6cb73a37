//! Clients that send requests continuously. Each request must get a response, on kept and on new
//! connections.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Number of clients of each kind.
const CLIENTS: usize = 2;
/// Number of responses that each round waits for.
const MORE: usize = 8;

pub(crate) struct Load {
    over: Arc<AtomicBool>,
    responded: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(server: &Server) -> Load {
        let (over, responded) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let address = server.address();
        let threads = (0..2 * CLIENTS).map(|n| {
            let (over, responded) = (Arc::clone(&over), Arc::clone(&responded));
            std::thread::spawn(move || {
                let ask = if n < CLIENTS { ask_on_kept_ones } else { ask_on_new_ones };
                while !over.load(Ordering::Relaxed) {
                    ask(address, &over, &responded);
                }
            })
        });
        Load { threads: threads.collect(), over, responded }
    }

    /// Waits for some more responses.
    pub(crate) fn wait_for_more(&self) {
        let wanted = self.responded.load(Ordering::Relaxed) + MORE;
        eventually("answers", || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished), "a client was let down");
            (self.responded.load(Ordering::Relaxed) >= wanted).then_some(())
        });
    }

    /// Number of requests, all of which got a response.
    pub(crate) fn finish(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client that was never let down");
        }
        self.responded.load(Ordering::Relaxed)
    }
}

fn check(response: &samovar_testkit::http::Response, method: &str) {
    assert_eq!((response.status, response.text()), (200, format!("page {method}")));
}

/// A POST, which must not be repeated.
fn ask_on_new_ones(address: SocketAddr, _: &AtomicBool, responded: &AtomicUsize) {
    let request = Request::form("/", "a=b");
    let asked = Client::connect(address).try_request(&request);
    check(&asked.expect("an answer on a new connection"), "POST");
    responded.fetch_add(1, Ordering::Relaxed);
}

/// Uses a connection until the server announces its close. A client that was idle for long may find
/// its connection closed, as with any server, and repeats the request on a new one. A response that
/// has begun must be complete.
fn ask_on_kept_ones(address: SocketAddr, over: &AtomicBool, responded: &AtomicUsize) {
    let mut client = Client::connect(address);
    let mut is_first = true;
    while !over.load(Ordering::Relaxed) {
        match client.try_request(&Request::get("/")) {
            Ok(response) => {
                check(&response, "GET");
                responded.fetch_add(1, Ordering::Relaxed);
                if response.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"))
                {
                    return;
                }
            }
            Err(error) if !is_first && !client.has_unread() => {
                drop(error);
                return;
            }
            Err(error) => panic!("no answer on a connection that was just made: {error}"),
        }
        is_first = false;
    }
}
