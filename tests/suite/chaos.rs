//! Everything that can go wrong around a server, alone and all at once, under a load of good requests.
//!
//! # What must hold
//!
//! - The server is never aborted: it lives throughout, ends with 0 after SIGTERM, and no process of it is left.
//! - No answer has a wrong byte: each good request carries a nonce, and its answer is known in advance.
//! - No good request is lost that a healthy worker could have answered. Good requests are GET, HEAD, small POSTs,
//!   uploads, files, pipelined GETs, on kept connections and fresh ones. None is excused but these:
//!   - a GET on a *kept* connection that was closed before any byte of an answer is asked once more on a fresh
//!     one, as browsers and proxies do (RFC 9112, 9.3.1); its second loss is a failure;
//!   - where a kind kills workers (`Pardon::LostWork`): a POST, which must not be run twice, and an answer larger
//!     than its window in the ring, of which the client may have half;
//!   - where a kind fills `temp_dir` (`Pardon::NoSpool`): uploads;
//!   - where a kind takes away threads and processes (`Pardon::NoThread`): uploads and files;
//!   - where a script writes garbage over the ring, which is its neighbours' memory (`Pardon::Everything`): all, for
//!     as long as the kind goes on and 2.5 s more, a wrong byte included. Then calm must return.
//!
//!   What a bad request gets is not looked at here, but that it gets an answer.
//! - While a disturbance holds, the good clients get on: some more answers within the watchdog. How fast is for
//!   `rates.rs` to measure, and no test asserts it but by a generous ratio.
//! - Afterwards calm returns: all workers idle, no slot and no connection in use, memory and descriptors of the
//!   front near the start.
//!
//! # How to run it
//!
//! `cargo test -p samovar-tests --test chaos` runs each kind alone for `CHAOS_SECONDS` (2); a kind is a test, so
//! `… --test chaos kill_workers` runs one. The ignored tests mix all of them, a test for each model, for
//! `CHAOS_SECONDS` (60): `make chaos`. `CHAOS_ONLY=kill_workers,reload` leaves the others out, `CHAOS_MODEL=script`
//! serves another model. `CHAOS_TRANSPORT=fastcgi` puts nginx between the good clients and the server, which speaks FastCGI to
//! it, `CHAOS_TRANSPORT=h2` HAProxy, which speaks HTTP/2 over TLS. The seed is printed; `CHAOS_SEED=…` makes the same disturbances in the same order again
//! (which request they meet is up to the machine). A kind that this machine does not permit says so on standard error.

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

/// Each kind of disturbance is a test of its own name, in [`kinds::ALL`].
macro_rules! alone {
    ($($kind:ident),* $(,)?) => {
        $(
            #[test]
            fn $kind() {
                run::alone(stringify!($kind));
            }
        )*

        /// Every kind of the table has a test.
        #[test]
        fn each_kind_has_its_test() {
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

/// Kinds that end what the good clients' connections lead to.
const OVER_OTHERS: &[&str] = &["kill_workers", "errors", "reload"];

#[test]
fn through_nginx_by_fastcgi() {
    run::over(Transport::FastCgi, OVER_OTHERS, Model::Checkpoint);
}

#[test]
fn through_haproxy_by_http2_and_tls() {
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
