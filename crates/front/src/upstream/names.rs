//! submit: the addresses that names of php-fpms stand for.
//!
//! The system is asked, by threads, because it may take long: once for each name, and again when what it said is
//! [`HELD_FOR`] old and a request comes. Such a request does not wait for that; only where nothing is known yet one does. An
//! answer that does not come, or is an error, leaves what was known.

use crate::runtime::threads::Threads;
use samovar_log::Throttle;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long the system's answer holds.
const HELD_FOR: Duration = Duration::from_secs(10);
/// Addresses of a name; it may have more.
pub(super) const ADDRESSES_MAX: usize = 16;
/// So many names may be asked for at the same time.
const THREADS: usize = 2;

type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The names that were asked for: those of the settings, and no more.
#[derive(Debug)]
pub(crate) struct Names {
    threads: Threads,
    resolve: Resolve,
    known: RefCell<HashMap<(String, u16), Rc<Name>>>,
    warnings: Throttle,
}

/// What is known of one of them.
#[derive(Debug, Default)]
struct Name {
    addresses: RefCell<Vec<SocketAddr>>,
    /// Which of them is first.
    turn: Cell<usize>,
    answered: Cell<Option<Instant>>,
    is_asked_for: Cell<bool>,
    told: Notify,
}

impl Names {
    /// Starts the threads that ask.
    pub(crate) fn start() -> io::Result<Threads> {
        Threads::start("names", THREADS)
    }

    /// Nothing is known yet.
    pub(crate) fn new(threads: Threads) -> Names {
        Names::by(threads, |name, port| {
            let found: Vec<_> = (name, port).to_socket_addrs()?.take(ADDRESSES_MAX).collect();
            if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
        })
    }

    fn by(threads: Threads, resolve: Resolve) -> Names {
        let (known, warnings) = (RefCell::default(), Throttle::default());
        Names { threads, resolve, known, warnings }
    }

    /// The addresses of a name, each time another one first.
    pub(super) async fn addresses(
        self: &Rc<Names>,
        name: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let key = (name.to_owned(), port);
        let known = Rc::clone(self.known.borrow_mut().entry(key).or_default());
        let is_held = known.answered.get().is_some_and(|at| at.elapsed() < HELD_FOR);
        if !is_held && !known.is_asked_for.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).ask(Rc::clone(&known), name.to_owned(), port));
        }
        if known.addresses.borrow().is_empty() {
            known.told.notified().await;
        }
        let mut addresses = known.addresses.borrow().clone();
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no address is known"));
        }
        let turn = known.turn.get();
        known.turn.set(turn.wrapping_add(1));
        let first = turn % addresses.len();
        addresses.rotate_left(first);
        Ok(addresses)
    }

    async fn ask(self: Rc<Names>, known: Rc<Name>, name: String, port: u16) {
        let (resolve, asked) = (self.resolve, name.clone());
        match self.threads.run(move || resolve(&asked, port)).await {
            Ok(found) => {
                known.addresses.replace(found);
                known.answered.set(Some(Instant::now()));
            }
            Err(error) => {
                let is_known = !known.addresses.borrow().is_empty();
                // Where nothing is known the next request asks again.
                known.answered.set(is_known.then(Instant::now));
                if let Some(suppressed) = self.warnings.pass() {
                    let goes_on = if is_known { "; the addresses of before hold" } else { "" };
                    tracing::warn!(
                        name,
                        %error,
                        suppressed,
                        "the name of a php-fpm stands for no address{goes_on}\n\
                         hint: does `getent ahosts` find it on this machine?"
                    );
                }
            }
        }
        known.is_asked_for.set(false);
        known.told.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
    use tokio::runtime::{Builder, LocalOptions};

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static LAST: AtomicU16 = AtomicU16::new(1);

    fn resolve(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        ASKED.fetch_add(1, Ordering::SeqCst);
        match LAST.load(Ordering::SeqCst) {
            0 => Err(io::Error::other(format!("{name} is nobody"))),
            last => Ok((1..=last).map(|n| SocketAddr::from(([10, 0, 0, n as u8], port))).collect()),
        }
    }

    #[test]
    fn what_is_known_holds_until_there_is_better() {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.expect("a runtime");
        runtime.block_on(async {
            let names = Rc::new(Names::by(Names::start().expect("threads"), resolve));
            let lasts = async || {
                let found =
                    names.addresses("php", 9000).await.map_err(|error| error.to_string())?;
                Ok::<_, String>(found.iter().map(SocketAddr::to_string).collect::<Vec<_>>())
            };
            let forget = || {
                let known = names.known.borrow();
                for known in known.values() {
                    known.answered.set(None);
                }
            };
            let settle = async || {
                let known = Rc::clone(names.known.borrow().values().next().expect("it was asked"));
                while known.is_asked_for.get() {
                    tokio::task::yield_now().await;
                }
            };
            LAST.store(0, Ordering::SeqCst);
            lasts().await.expect_err("nobody knows it");
            LAST.store(2, Ordering::SeqCst);
            assert_eq!(lasts().await.expect("asked again"), ["10.0.0.1:9000", "10.0.0.2:9000"]);
            assert_eq!(lasts().await.expect("known"), ["10.0.0.2:9000", "10.0.0.1:9000"]);
            assert_eq!(ASKED.load(Ordering::SeqCst), 2, "it holds");
            // Old: nobody waits for the next answer.
            LAST.store(1, Ordering::SeqCst);
            forget();
            assert_eq!(lasts().await.expect("the old ones").len(), 2);
            settle().await;
            assert_eq!(lasts().await.expect("the new one"), ["10.0.0.1:9000"]);
            // An error is no answer.
            LAST.store(0, Ordering::SeqCst);
            forget();
            assert_eq!(lasts().await.expect("the old one").len(), 1);
            settle().await;
            assert_eq!(lasts().await.expect("the old one").len(), 1);
            assert_eq!(ASKED.load(Ordering::SeqCst), 4);
        });
    }
}
