//! Clients that ask all the time: each request must be answered, on connections that are kept and on new ones.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, eventually};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Of each kind.
const CLIENTS: usize = 2;
/// Requests that each round waits for.
const MORE: usize = 8;

pub(crate) struct Load {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(server: &Server) -> Load {
        let (over, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let address = server.address();
        let threads = (0..2 * CLIENTS).map(|n| {
            let (over, answered) = (Arc::clone(&over), Arc::clone(&answered));
            std::thread::spawn(move || {
                let ask = if n < CLIENTS { ask_on_kept_ones } else { ask_on_new_ones };
                while !over.load(Ordering::Relaxed) {
                    ask(address, &over, &answered);
                }
            })
        });
        Load { threads: threads.collect(), over, answered }
    }

    /// Some requests more have been answered.
    pub(crate) fn wait_for_more(&self) {
        let wanted = self.answered.load(Ordering::Relaxed) + MORE;
        eventually("answers", || {
            assert!(!self.threads.iter().any(JoinHandle::is_finished), "a client was let down");
            (self.answered.load(Ordering::Relaxed) >= wanted).then_some(())
        });
    }

    /// How many requests there were; each of them was answered.
    pub(crate) fn finish(self) -> usize {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client that was never let down");
        }
        self.answered.load(Ordering::Relaxed)
    }
}

fn check(response: &samovar_testkit::http::Response, method: &str) {
    assert_eq!((response.status, response.text()), (200, format!("page {method}")));
}

/// A POST, which nobody may repeat.
fn ask_on_new_ones(address: SocketAddr, _: &AtomicBool, answered: &AtomicUsize) {
    let request = Request::form("/", "a=b");
    let asked = Client::connect(address).try_request(&request);
    check(&asked.expect("an answer on a new connection"), "POST");
    answered.fetch_add(1, Ordering::Relaxed);
}

/// Until the server says that it was the last time. A client that was away for long may find its connection closed when it
/// comes back, as at any server's, and asks again on a new one; what it has begun to hear it hears to the end.
fn ask_on_kept_ones(address: SocketAddr, over: &AtomicBool, answered: &AtomicUsize) {
    let mut client = Client::connect(address);
    let mut is_first = true;
    while !over.load(Ordering::Relaxed) {
        match client.try_request(&Request::get("/")) {
            Ok(response) => {
                check(&response, "GET");
                answered.fetch_add(1, Ordering::Relaxed);
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
