//! Ports for programs that cannot choose one themselves and report it: nginx, HAProxy, Apache,
//! PostgreSQL.
//!
//! A port that was bound, closed and passed on may be taken in the meantime: by a test that did the
//! same, or by any connection, to which the kernel assigns ports of its own range. A leased port is
//! outside of that range, and a locked file names its holder, so that no other test on this machine
//! leases it.

use std::fs::{File, OpenOptions, TryLockError};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

/// The first leased port.
const FIRST: u16 = 20_000;

/// Number of ports for leases, from the first on.
const COUNT: u16 = 12_000;

/// The leases of this process, which end with it.
static LEASES: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// An address of the loopback interface on which no process listens, and which no other test takes
/// while this process lives.
pub fn port() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first_of_kernel = first_ephemeral_port();
    assert!(
        first_of_kernel >= FIRST + COUNT,
        "net.ipv4.ip_local_port_range begins at {first_of_kernel}, within {FIRST} to {}",
        FIRST + COUNT
    );
    let folder = PathBuf::from("/tmp/samovar-test-ports");
    std::fs::create_dir_all(&folder).expect("a folder of leases");
    // Other processes start at other numbers: most leases succeed at the first attempt.
    let begin = (std::process::id() as u16).wrapping_mul(37) % COUNT;
    for _ in 0..COUNT {
        let place = (begin + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, FIRST + place));
        let path = folder.join(address.port().to_string());
        let lease = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let lease = lease.unwrap_or_else(|e| panic!("cannot open `{}`: {e}", path.display()));
        match lease.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => panic!("cannot lock `{}`: {error}", path.display()),
        }
        // A program that does not use leases may listen there.
        if TcpListener::bind(address).is_ok() {
            LEASES.lock().expect("no panic under the lock").push(lease);
            return address;
        }
    }
    panic!("all {COUNT} ports from {FIRST} on are leased or taken");
}

/// The first port that the kernel assigns to connections, and to listeners that request any port.
fn first_ephemeral_port() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.expect("Linux has it");
    text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a port")
}
