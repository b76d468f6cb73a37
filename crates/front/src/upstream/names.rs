//! submit: resolves the names of php-fpm servers to addresses.
//!
//! Resolver threads query the system, because a lookup may take long. A name is looked up when it
//! is first used, and again when the result is older than [`HELD_FOR`] and a request arrives. Such
//! a request does not wait for the new result; it waits only if no address is known yet. If a
//! lookup fails or does not return, the known addresses stay valid.

use crate::runtime::threads::Threads;
use samovar_log::Throttle;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time for which the result of a lookup is valid.
const HELD_FOR: Duration = Duration::from_secs(10);
/// Maximum number of addresses used for a name; it may have more.
pub(super) const ADDRESSES_MAX: usize = 16;
/// Maximum number of concurrent lookups.
const THREADS: usize = 2;

type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The names used so far: only names in the settings.
#[derive(Debug)]
pub(crate) struct Names {
    threads: Threads,
    resolve: Resolve,
    known: RefCell<HashMap<(String, u16), Rc<Name>>>,
    warnings: Throttle,
}

/// State of one name.
#[derive(Debug, Default)]
struct Name {
    addresses: RefCell<Vec<SocketAddr>>,
    /// Counter that selects the first address.
    turn: Cell<usize>,
    responded: Cell<Option<Instant>>,
    is_asked_for: Cell<bool>,
    told: Notify,
}

impl Names {
    /// Starts the resolver threads.
    pub(crate) fn start() -> io::Result<Threads> {
        Threads::start("names", THREADS)
    }

    /// Creates an empty cache.
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

    /// Returns the addresses of a name; each call starts with the next address.
    pub(super) async fn addresses(
        self: &Rc<Names>,
        name: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let key = (name.to_owned(), port);
        let known = Rc::clone(self.known.borrow_mut().entry(key).or_default());
        let is_held = known.responded.get().is_some_and(|at| at.elapsed() < HELD_FOR);
        if !is_held && !known.is_asked_for.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).ask(Rc::clone(&known), name.to_owned(), port));
        }
        if known.addresses.borrow().is_empty() {
            known.told.notified().await;
        }
        let mut addresses = known.addresses.borrow().clone();
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no known address"));
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
                known.responded.set(Some(Instant::now()));
            }
            Err(error) => {
                let is_known = !known.addresses.borrow().is_empty();
                // If no address is known, the next request starts another lookup.
                known.responded.set(is_known.then(Instant::now));
                if let Some(suppressed) = self.warnings.pass() {
                    let goes_on =
                        if is_known { "; the previous addresses stay in use" } else { "" };
                    tracing::warn!(
                        name,
                        %error,
                        suppressed,
                        "cannot resolve the name of a php-fpm server{goes_on}\n\
                         hint: check with `getent ahosts` on this machine"
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
            0 => Err(io::Error::other(format!("{name} is unknown"))),
            last => Ok((1..=last).map(|n| SocketAddr::from(([10, 0, 0, n as u8], port))).collect()),
        }
    }

    #[test]
    fn known_addresses_stay_valid_until_lookup_succeeds() {
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
                    known.responded.set(None);
                }
            };
            let settle = async || {
                let known = Rc::clone(names.known.borrow().values().next().expect("it was asked"));
                while known.is_asked_for.get() {
                    tokio::task::yield_now().await;
                }
            };
            LAST.store(0, Ordering::SeqCst);
            lasts().await.expect_err("the name is unknown");
            LAST.store(2, Ordering::SeqCst);
            assert_eq!(lasts().await.expect("asked again"), ["10.0.0.1:9000", "10.0.0.2:9000"]);
            assert_eq!(lasts().await.expect("known"), ["10.0.0.2:9000", "10.0.0.1:9000"]);
            assert_eq!(ASKED.load(Ordering::SeqCst), 2, "it holds");
            // Outdated: the request does not wait for the next result.
            LAST.store(1, Ordering::SeqCst);
            forget();
            assert_eq!(lasts().await.expect("the old ones").len(), 2);
            settle().await;
            assert_eq!(lasts().await.expect("the new one"), ["10.0.0.1:9000"]);
            // An error does not replace the known addresses.
            LAST.store(0, Ordering::SeqCst);
            forget();
            assert_eq!(lasts().await.expect("the old one").len(), 1);
            settle().await;
            assert_eq!(lasts().await.expect("the old one").len(), 1);
            assert_eq!(ASKED.load(Ordering::SeqCst), 4);
        });
    }
}
