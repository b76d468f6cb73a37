//! A simulated slow database: scripts connect to a gate and wait until the test opens it. Also
//! clients that send requests at the same time.

use samovar_testkit::http::{Client, Request};
use samovar_testkit::{Server, Start, eventually};
use serde_json::Value;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The work of each request, for all models: waits at the gate, sleeps, computes until a file
/// exists or for a number of milliseconds, and prints its process ID.
pub(crate) const WORK: &str = r"
function work(): void {
    if (isset($_GET['gate'])) {
        $gate = fsockopen('127.0.0.1', (int) $_GET['gate'], $code, $why, 60);
        stream_set_timeout($gate, 60);
        fgets($gate);
    }
    if (isset($_GET['sleep'])) {
        usleep(1000 * (int) $_GET['sleep']);
    }
    // It computes, and looks now and then whether it may end.
    while (isset($_GET['until']) && !file_exists($_GET['until'])) {
        for ($n = 0; $n < 100_000; $n++) {
        }
    }
    $end = hrtime(true) + 1_000_000 * (int) ($_GET['compute'] ?? 0);
    while (hrtime(true) < $end) {
    }
    echo getmypid();
}
";

pub(crate) const MODELS: [(&str, &str); 3] = [
    ("script", "work();"),
    ("resident", "Samovar\\serve(function () { work(); });"),
    ("checkpoint", "Samovar\\checkpoint(); work();"),
];

/// A server with the model of `body`.
pub(crate) fn server(body: &str) -> Start {
    server_with_idle(body, "1s")
}

/// The same, with `idle_max` as the time after which idle workers are removed.
pub(crate) fn server_with_idle(body: &str, idle_max: &str) -> Start {
    let script = format!("<?php {WORK}\n{body}");
    Server::script(&script).args(["--workers-idle-max", idle_max, "--log-level", "info"])
}

/// A listener at which scripts wait.
pub(crate) struct Gate {
    address: SocketAddr,
    waiting: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let waiting: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let taken = Arc::clone(&waiting);
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                taken.lock().expect("no panic").push(stream);
            }
        });
        Gate { address, waiting }
    }

    pub(crate) fn target(&self) -> String {
        format!("/?gate={}", self.address.port())
    }

    /// Number of scripts that have connected since the gate was last opened.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().expect("no panic").len()
    }

    pub(crate) fn wait_for(&self, count: usize, server: &Server) {
        eventually(&format!("{count} at the gate"), || {
            let found = self.waiting();
            assert!(found <= count, "{found} at the gate, not {count}: {}", server.status());
            (found == count).then_some(())
        });
    }

    /// Releases all waiting scripts.
    pub(crate) fn open(&self) {
        for mut stream in self.waiting.lock().expect("no panic").drain(..) {
            // Its script may have been killed.
            let _ = stream.write_all(b"go\n");
        }
    }
}

/// Clients that have each sent one request.
pub(crate) struct Crowd(Vec<Client>);

impl Crowd {
    pub(crate) fn ask(server: &Server, count: usize, target: &str) -> Crowd {
        let ask = |_| {
            let mut client = server.client();
            client.send(&Request::get(target).bytes());
            client
        };
        Crowd((0..count).map(ask).collect())
    }

    /// Checks that all clients receive a complete response with status 200.
    pub(crate) fn responded(self, server: &Server) {
        for mut client in self.0 {
            let response = client.read(false);
            let is_well = response.status == 200 && response.complete;
            assert!(is_well, "{response:?}\n{}\n{}", server.status(), server.log());
        }
    }
}

/// Number of workers without those that are leaving.
pub(crate) fn workers(server: &Server) -> usize {
    let status = server.status();
    let workers = status["workers"].as_array().expect("a list");
    workers.iter().filter(|worker| worker["state"] != "leaving").count()
}

pub(crate) fn scaling(server: &Server) -> Value {
    server.status()["scaling"][0].clone()
}

pub(crate) fn wait_for_workers(server: &Server, count: usize) {
    eventually(&format!("{count} workers"), || (workers(server) == count).then_some(()));
}

pub(crate) fn wait_for_reason(server: &Server, reason: &str) {
    eventually(&format!("the reason `{reason}`"), || {
        (scaling(server)["reason"] == reason).then_some(())
    });
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
