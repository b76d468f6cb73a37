//! Servers of tests/apps/faults, the state of their processes, and load for them.

use samovar_testkit::http::{Client, Request, Response};
use samovar_testkit::{Server, Start, eventually};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Output is not buffered, so that flushed output is sent immediately.
pub(crate) fn app() -> Start {
    Server::app("faults").define("output_buffering", "0")
}

pub(crate) fn is_hello(response: &Response) -> bool {
    response.status == 200 && response.complete && response.text().starts_with("hello from ")
}

/// Checks that the next requests succeed, each on a separate connection.
pub(crate) fn assert_serves(server: &Server, when: &str) {
    for _ in 0..4 {
        let response = server.get("/hello");
        assert!(is_hello(&response), "{when}: {response:?}\n{}", server.log());
    }
}

/// A file that a script waits for or creates.
pub(crate) fn file_of(server: &Server, name: &str) -> PathBuf {
    server.folder().join(name)
}

pub(crate) fn create(path: &PathBuf) {
    std::fs::write(path, "").expect("our own folder");
}

pub(crate) fn read_when_there(path: &PathBuf) -> String {
    eventually(&format!("text in {}", path.display()), || {
        std::fs::read_to_string(path).ok().filter(|text| !text.is_empty())
    })
}

pub(crate) fn in_flight(server: &Server) -> u64 {
    server.status()["in_flight"].as_u64().expect("a number")
}

pub(crate) fn wait_for_in_flight(server: &Server, wanted: u64) {
    eventually(&format!("{wanted} requests in flight"), || {
        (in_flight(server) == wanted).then_some(())
    });
}

/// Process IDs of the workers in `state`.
pub(crate) fn workers_in(server: &Server, state: &str) -> Vec<i32> {
    let status = server.status();
    let workers = status["workers"].as_array().expect("a list").iter();
    let pids = workers.filter(|w| w["state"] == state).filter_map(|w| w["pid"].as_i64());
    pids.filter_map(|pid| i32::try_from(pid).ok()).collect()
}

pub(crate) fn wait_for_busy(server: &Server) -> i32 {
    eventually("a busy worker", || workers_in(server, "busy").first().copied())
}

/// A number of `/proc/PID/status`; `None` if there is no such process.
pub(crate) fn proc_number(pid: i32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

pub(crate) fn parent_of(pid: i32) -> i32 {
    let parent = proc_number(pid, "PPid").expect("a living process");
    i32::try_from(parent).expect("pids are small")
}

pub(crate) fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|text| !text.contains("State:\tZ"))
}

/// All processes of the server, including itself.
pub(crate) fn processes_of(server: &Server) -> Vec<i32> {
    let workers = server.worker_pids();
    let template = parent_of(workers[0]);
    assert_eq!(parent_of(template), server.pid(), "the template is the server's child");
    [vec![server.pid(), template], workers].concat()
}

pub(crate) fn wait_for_ends(pids: &[i32]) {
    for pid in pids {
        eventually(&format!("the end of process {pid}"), || (!is_alive(*pid)).then_some(()));
    }
}

/// Clients that send requests until they are stopped.
pub(crate) struct Load {
    pub(crate) stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<io::Result<Response>>>>,
}

impl Load {
    pub(crate) fn start(address: SocketAddr, clients: usize, request: &Request) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |_| {
            let (stop, request) = (Arc::clone(&stop), request.clone());
            std::thread::spawn(move || {
                let mut client = Client::connect(address);
                let mut responses = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let response = client.try_request(&request);
                    if response.is_err() {
                        client = Client::connect(address);
                    }
                    responses.push(response);
                }
                responses
            })
        };
        Load { clients: (0..clients).map(client).collect(), stop }
    }

    pub(crate) fn stop(self) -> Vec<io::Result<Response>> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.into_iter().flat_map(|c| c.join().expect("no panic")).collect()
    }
}
