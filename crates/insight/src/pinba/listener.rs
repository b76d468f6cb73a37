//! Pinba's packets → figures: what php-fpm hosts with the extension send, taken in on a thread of its own.
//!
//! Anybody who reaches the port may send anything. In each second the thread decodes at most so many packets, and for at
//! most [`BUSY_MAX`]; what comes beyond is read, counted and forgotten, and when that is too much too, it is left to the
//! kernel, which drops what its buffer does not hold.

use crate::pinba::{PACKET_BYTES_MAX, Packet};
use crate::sink::{Fate, Tally};
use crate::turn::Turn;
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Packets of one second that are decoded, unless another number is given.
pub const PACKETS_PER_SECOND: u32 = 20_000;
/// Packets of one second that are read and forgotten, for each that may be decoded.
const FORGOTTEN_FOR_EACH: u32 = 4;
/// How long it may decode in one second.
const BUSY_MAX: Duration = Duration::from_millis(250);
/// How long it waits for a packet before it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);

/// Where packets come in.
#[derive(Clone, Debug)]
pub struct PinbaInOptions {
    /// `host:port` to listen on.
    pub listen: String,
    /// Packets that are decoded in one second at most.
    pub per_second_max: u32,
}

impl PinbaInOptions {
    /// At the usual rate.
    #[must_use]
    pub fn new(listen: &str) -> PinbaInOptions {
        PinbaInOptions { listen: listen.to_owned(), per_second_max: PACKETS_PER_SECOND }
    }
}

/// A bound socket: to be made while the server still may bind.
#[derive(Debug)]
pub struct PinbaIn {
    socket: UdpSocket,
    per_second_max: u32,
    tally: Arc<Tally>,
    turn: Turn,
}

impl PinbaIn {
    /// Binds the address.
    pub fn bind(options: &PinbaInOptions) -> std::io::Result<PinbaIn> {
        let addresses: Vec<SocketAddr> = options.listen.to_socket_addrs()?.collect();
        PinbaIn::new(UdpSocket::bind(&addresses[..])?, options.per_second_max, Turn::now())
    }

    /// A socket that another server has bound, which reads it until the turn has come.
    pub fn take(socket: OwnedFd, options: &PinbaInOptions, turn: Turn) -> std::io::Result<PinbaIn> {
        PinbaIn::new(UdpSocket::from(socket), options.per_second_max, turn)
    }

    fn new(socket: UdpSocket, per_second_max: u32, turn: Turn) -> std::io::Result<PinbaIn> {
        socket.set_read_timeout(Some(LOOK))?;
        Ok(PinbaIn { socket, per_second_max, tally: Tally::new("pinba_in"), turn })
    }

    /// A copy of its socket, for a server that is to take over.
    pub fn copy(&self) -> std::io::Result<OwnedFd> {
        Ok(self.socket.try_clone()?.into())
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// How many packets were taken, were too many, made no sense.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Starts the thread, which shows each packet to `take`, those within others too.
    pub(crate) fn start(
        self,
        take: impl FnMut(&Packet) + Send + 'static,
    ) -> std::io::Result<Listening> {
        let (end, ended) = sync_channel(0);
        let name = "pinba-in".to_owned();
        let thread =
            std::thread::Builder::new().name(name).spawn(move || self.run(take, &ended))?;
        Ok(Listening { end: Mutex::new(Some((end, thread))) })
    }

    fn run(self, mut take: impl FnMut(&Packet), ended: &Receiver<()>) {
        let mut buffer = vec![0; PACKET_BYTES_MAX];
        while !self.turn.wait(LOOK) {
            if !is_wanted(ended, Duration::ZERO) {
                return;
            }
        }
        let mut second = ThisSecond::new(Instant::now(), self.per_second_max);
        while is_wanted(ended, Duration::ZERO) {
            let received = self.socket.recv(&mut buffer);
            let now = Instant::now();
            match received {
                Ok(length) => match second.admit(now) {
                    Admission::Decode => {
                        self.decode(&buffer[..length], &mut take);
                        second.was_busy(now.elapsed());
                    }
                    Admission::Forget => self.tally.add(Fate::Lost, 1),
                    Admission::Rest(pause) => {
                        self.tally.add(Fate::Lost, 1);
                        if !is_wanted(ended, pause) {
                            return;
                        }
                    }
                },
                Err(e) if is_quiet(e.kind()) => {}
                // Whatever it is, it is not to be tried again at once for ever.
                Err(_) => {
                    if !is_wanted(ended, LOOK) {
                        return;
                    }
                }
            }
        }
    }

    fn decode(&self, bytes: &[u8], take: &mut impl FnMut(&Packet)) {
        let Ok(packet) = Packet::decode(bytes) else {
            self.tally.add(Fate::Refused, 1);
            return;
        };
        let within = packet.requests();
        for one in std::iter::once(&packet).chain(&within) {
            // Much of what is garbage can be read as a packet that says nothing.
            if one.script().is_empty() {
                self.tally.add(Fate::Refused, 1);
            } else {
                take(one);
                self.tally.add(Fate::Passed, 1);
            }
        }
    }
}

fn is_quiet(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Whether the thread is still wanted, after at most so long.
fn is_wanted(ended: &Receiver<()>, pause: Duration) -> bool {
    ended.recv_timeout(pause) != Err(RecvTimeoutError::Disconnected)
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Decode,
    Forget,
    /// It is forgotten, and no other is read for so long.
    Rest(Duration),
}

/// How much of a second's allowance is used.
#[derive(Debug)]
struct ThisSecond {
    began: Instant,
    decode_max: u32,
    decoded: u32,
    forgotten: u32,
    busy: Duration,
}

impl ThisSecond {
    fn new(now: Instant, decode_max: u32) -> ThisSecond {
        ThisSecond { began: now, decode_max, decoded: 0, forgotten: 0, busy: Duration::ZERO }
    }

    fn admit(&mut self, now: Instant) -> Admission {
        let passed = now.saturating_duration_since(self.began);
        if passed >= SECOND {
            *self = ThisSecond::new(now, self.decode_max);
        }
        if self.decoded < self.decode_max && self.busy < BUSY_MAX {
            self.decoded += 1;
            Admission::Decode
        } else if self.forgotten < self.decode_max.saturating_mul(FORGOTTEN_FOR_EACH) {
            self.forgotten += 1;
            Admission::Forget
        } else {
            Admission::Rest(SECOND.saturating_sub(passed))
        }
    }

    fn was_busy(&mut self, time: Duration) {
        self.busy += time;
    }
}

/// The thread that listens.
#[derive(Debug)]
pub(crate) struct Listening {
    end: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
}

impl Listening {
    /// Ends it; waits for what it has in hand.
    pub(crate) fn finish(&self) {
        let running = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((end, thread)) = running {
            drop(end);
            // A panic of the thread has been told by the panic hook.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, BUSY_MAX, FORGOTTEN_FOR_EACH, SECOND, ThisSecond};
    use std::time::{Duration, Instant};

    #[test]
    fn a_flood_is_decoded_then_forgotten_then_left_to_the_kernel() {
        let start = Instant::now();
        let mut second = ThisSecond::new(start, 3);
        let mut admit = |ms: u64| second.admit(start + Duration::from_millis(ms));
        assert_eq!([admit(0), admit(1), admit(2)], [Admission::Decode; 3]);
        for _ in 0..3 * FORGOTTEN_FOR_EACH {
            assert_eq!(admit(10), Admission::Forget);
        }
        assert_eq!(admit(400), Admission::Rest(Duration::from_millis(600)));
        assert_eq!(admit(1_000), Admission::Decode);
    }

    #[test]
    fn few_packets_that_take_long_are_a_flood_too() {
        let start = Instant::now();
        let mut second = ThisSecond::new(start, 1_000);
        assert_eq!(second.admit(start), Admission::Decode);
        second.was_busy(BUSY_MAX);
        assert_eq!(second.admit(start), Admission::Forget);
        assert_eq!(second.admit(start + SECOND), Admission::Decode);
    }
}
