//! Addresses of a host, with a time limit: the system's lookup has none of its own.

use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Maximum number of lookups at a time, also of those whose caller has stopped waiting. Each one
/// has a thread.
const LOOKUPS_MAX: usize = 4;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

type Addresses = io::Result<Vec<SocketAddr>>;

/// Returns the addresses of the host. An IP address needs no lookup.
pub(crate) fn lookup(host: &str, port: u16, limit: Duration) -> Addresses {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    let resolve = move || (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
    bounded(&RUNNING, host, limit, resolve)
}

/// A running lookup. It ends with its thread.
struct Permit(&'static AtomicUsize);

impl Permit {
    fn take(running: &'static AtomicUsize) -> Option<Permit> {
        let add = |count| (count < LOOKUPS_MAX).then_some(count + 1);
        running.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).ok()?;
        Some(Permit(running))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs a lookup in a thread, and waits for it until the limit.
fn bounded(
    running: &'static AtomicUsize,
    host: &str,
    limit: Duration,
    resolve: impl FnOnce() -> Addresses + Send + 'static,
) -> Addresses {
    let late = |why: &str| Error::new(ErrorKind::TimedOut, format!("host `{host}`: {why}"));
    let Some(permit) = Permit::take(running) else {
        return Err(late("the lookups before this one have not ended"));
    };
    // The thread never waits for the caller.
    let (sender, receiver) = sync_channel(1);
    std::thread::Builder::new().name("redis-lookup".into()).spawn(move || {
        let found = resolve();
        drop(permit);
        // The caller may have stopped waiting.
        let _ = sender.send(found);
    })?;
    match receiver.recv_timeout(limit) {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => Err(late("the lookup did not end in time")),
        Err(RecvTimeoutError::Disconnected) => Err(Error::other("the lookup has failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const SHORT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_mins(1);

    fn address() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 6379))
    }

    #[test]
    fn address_and_local_host_are_found() {
        assert_eq!(lookup("127.0.0.1", 6379, SHORT).expect("an address"), [address()]);
        assert!(lookup("localhost", 6379, LONG).expect("addresses").contains(&address()));
    }

    #[test]
    fn hanging_lookups_are_bounded_in_time_and_number() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let mut held = Vec::new();
        for _ in 0..LOOKUPS_MAX {
            let (sender, receiver) = channel::<()>();
            held.push(sender);
            let hang = move || {
                let _ = receiver.recv();
                Ok(Vec::new())
            };
            let error = bounded(&RUNNING, "redis.test", SHORT, hang).expect_err("a time limit");
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(error.to_string().contains("`redis.test`: the lookup did not end"), "{error}");
        }
        let find = || Ok(vec![address()]);
        let error = bounded(&RUNNING, "redis.test", LONG, find).expect_err("no thread");
        assert!(error.to_string().contains("have not ended"), "{error}");
        held.clear();
        let found = std::iter::repeat_with(|| bounded(&RUNNING, "redis.test", LONG, find));
        let mut found = found.inspect(|_| std::thread::yield_now());
        assert_eq!(found.find_map(Result::ok), Some(vec![address()]));
    }

    #[test]
    fn panic_of_a_lookup_is_an_error_and_frees_its_permit() {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let error = bounded(&RUNNING, "redis.test", LONG, || panic!("on purpose"));
        assert!(error.expect_err("a failure").to_string().contains("has failed"));
        samovar_testkit::eventually("a free permit", || {
            (RUNNING.load(Ordering::SeqCst) == 0).then_some(())
        });
    }
}
