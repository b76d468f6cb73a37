//! Faults around a server, one kind alone or all mixed, under a load of good requests.
//!
//! # Invariants
//!
//! - The server never aborts: it runs throughout, exits with 0 after SIGTERM, and leaves no
//!   process.
//! - No response has a wrong byte: each good request carries a nonce, and its response is known in
//!   advance.
//! - No good request is lost that a healthy worker could have served. Good requests are GET, HEAD,
//!   small POSTs, uploads, files and pipelined GETs, on kept and on fresh connections. Only these
//!   losses are excused:
//!   - A GET on a *kept* connection that was closed before any byte of a response is repeated once
//!     on a fresh one, as browsers and proxies do (RFC 9112, 9.3.1). A second loss is a failure.
//!   - Where a kind kills workers (`Pardon::LostWork`): a POST, which must not be run twice, and a
//!     response larger than its window in the ring, of which the client may have half.
//!   - Where a kind fills `temp_dir` (`Pardon::NoSpool`): uploads.
//!   - Where a kind limits threads and processes (`Pardon::NoThread`): uploads and files.
//!   - Where a script overwrites the ring, the memory of its neighbours (`Pardon::Everything`): all
//!     losses, and also wrong bytes. This holds while the kind runs and for 2.5 s more. Then the
//!     server must recover.
//! - A bad request gets a response. Its content is not checked here.
//! - During a disturbance the good clients make progress: some more responses arrive within the
//!   watchdog's time. The rate is measured in `rates.rs`. Tests assert it only by a generous ratio.
//! - Afterwards the server recovers: all workers idle, no slot and no connection in use, memory and
//!   descriptors of the front near their initial values.
//!
//! # How to run it
//!
//! - `cargo test -p samovar-tests --test suite chaos::` runs each kind alone for `CHAOS_SECONDS`
//!   (2). A kind is a test, so `… --test suite chaos::kill_workers` runs one.
//! - `make chaos` runs the ignored tests. They mix all kinds for `CHAOS_SECONDS` (60), one test per
//!   model.
//! - `CHAOS_ONLY=kill_workers,reload` restricts the kinds. `CHAOS_MODEL=script` selects another
//!   model.
//! - `CHAOS_TRANSPORT=fastcgi` puts nginx between the good clients and the server, which it reaches
//!   by FastCGI. `CHAOS_TRANSPORT=h2` puts HAProxy there, which uses HTTP/2 over TLS.
//! - The seed is printed. `CHAOS_SEED=…` repeats the same disturbances in the same order. Which
//!   requests they meet depends on the machine.
//! - A kind that this machine does not permit is reported on standard error.

mod clients;
mod clock;
mod control;
mod crashes;
mod deaths;
mod garbage;
mod kinds;
mod limits;
mod load;
mod logs;
mod pardon;
mod rates;
mod reloads;
mod run;
mod stage;
mod stops;
mod transport;

use stage::Model;
use transport::Transport;

/// Defines a test for each kind of disturbance in [`kinds::ALL`], under the kind's name.
macro_rules! alone {
    ($($kind:ident),* $(,)?) => {
        $(
            #[test]
            fn $kind() {
                run::alone(stringify!($kind));
            }
        )*

        /// Checks that each kind of the table has a test.
        #[test]
        fn each_kind_has_a_test() {
            let tests = [$(stringify!($kind)),*];
            let kinds: Vec<_> = kinds::ALL.iter().map(|kind| kind.name).collect();
            assert_eq!(tests.as_slice(), kinds.as_slice());
        }
    };
}

alone!(
    kill_workers,
    kill_template,
    kill_image,
    stop_workers,
    stop_template,
    stop_worker_for_good,
    stop_template_for_good,
    stop_image_for_good,
    crash_storm,
    errors,
    afterwork,
    memory_group,
    pids,
    descriptors,
    stderr_gone,
    stderr_stuck,
    stdout_gone,
    stdout_stuck,
    log_full,
    access_log_full,
    temp_full,
    slow_readers,
    slow_writers,
    half_open,
    quiet,
    clock_jumps,
    clock_leaps,
    dates,
    reload,
    reload_broken,
    control_abuse,
    ring_garbage,
    ring_truncated,
);

/// Kinds that end the server's side of the good clients' connections.
const OVER_OTHERS: &[&str] = &["kill_workers", "errors", "reload"];

#[test]
fn chaos_behind_nginx_over_fastcgi_loses_no_requests() {
    run::over(Transport::FastCgi, OVER_OTHERS, Model::Checkpoint);
}

#[test]
fn chaos_behind_haproxy_over_http2_and_tls_loses_no_requests() {
    run::over(Transport::Secure, OVER_OTHERS, Model::Checkpoint);
}

#[test]
#[ignore = "minutes: make chaos"]
fn all_kinds_mixed_script() {
    run::mixed(Model::Script);
}

#[test]
#[ignore = "minutes: make chaos"]
fn all_kinds_mixed_resident() {
    run::mixed(Model::Resident);
}

#[test]
#[ignore = "minutes: make chaos"]
fn all_kinds_mixed_checkpoint() {
    run::mixed(Model::Checkpoint);
}
