//! Pinba's packets → figures: receives packets of php-fpm hosts with the extension, on a thread of
//! its own.
//!
//! Any host that reaches the port can send anything. In each second the thread decodes a limited
//! number of packets, for at most [`BUSY_MAX`]. Further packets are read, counted and discarded.
//! Beyond a second limit they are left to the kernel, which drops packets when its buffer is full.

use crate::handover_gate::HandoverGate;
use crate::pinba::packet::{PACKET_BYTES_MAX, Packet};
use crate::sink::{Fate, Tally};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Default for the maximum number of packets decoded per second.
pub const PACKETS_PER_SECOND: u32 = 20_000;
/// Maximum number of packets discarded per second, as a multiple of the maximum for decoding.
const FORGOTTEN_FOR_EACH: u32 = 4;
/// Maximum time spent decoding per second.
const BUSY_MAX: Duration = Duration::from_millis(250);
/// Maximum time to wait for a packet before the thread checks whether it must end.
const LOOK: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);

/// Options of the listener.
#[derive(Clone, Debug)]
pub struct PinbaInOptions {
    /// Address to listen on, `host:port`.
    pub listen: String,
    /// Maximum number of packets decoded per second.
    pub per_second_max: u32,
}

impl PinbaInOptions {
    /// Creates options with the default rate.
    #[must_use]
    pub fn new(listen: &str) -> PinbaInOptions {
        PinbaInOptions { listen: listen.to_owned(), per_second_max: PACKETS_PER_SECOND }
    }
}

/// A bound socket. It must be created while the server still has the rights to bind.
#[derive(Debug)]
pub struct PinbaIn {
    socket: UdpSocket,
    per_second_max: u32,
    tally: Arc<Tally>,
    handover_gate: HandoverGate,
}

impl PinbaIn {
    /// Binds the address.
    pub fn bind(options: &PinbaInOptions) -> std::io::Result<PinbaIn> {
        let addresses: Vec<SocketAddr> = options.listen.to_socket_addrs()?.collect();
        PinbaIn::new(UdpSocket::bind(&addresses[..])?, options.per_second_max, HandoverGate::now())
    }

    /// Uses a socket that another server has bound. That server reads from it until the turn comes.
    pub fn take(
        socket: OwnedFd,
        options: &PinbaInOptions,
        handover_gate: HandoverGate,
    ) -> std::io::Result<PinbaIn> {
        PinbaIn::new(UdpSocket::from(socket), options.per_second_max, handover_gate)
    }

    fn new(
        socket: UdpSocket,
        per_second_max: u32,
        handover_gate: HandoverGate,
    ) -> std::io::Result<PinbaIn> {
        socket.set_read_timeout(Some(LOOK))?;
        Ok(PinbaIn { socket, per_second_max, tally: Tally::new("pinba_in"), handover_gate })
    }

    /// Returns a duplicate of the socket, for a server that takes over.
    pub fn copy(&self) -> std::io::Result<OwnedFd> {
        Ok(self.socket.try_clone()?.into())
    }

    /// Returns the bound address.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the counters of accepted, excess and invalid packets.
    #[must_use]
    pub fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }

    /// Starts the thread, which passes each packet to `take`, including those within other packets.
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
        while !self.handover_gate.wait(LOOK) {
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
                // After an unknown error the thread pauses, to avoid a busy loop.
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
            // Random bytes often parse as an empty packet.
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

/// Waits for at most `pause`, and returns whether the thread must continue.
fn is_wanted(ended: &Receiver<()>, pause: Duration) -> bool {
    ended.recv_timeout(pause) != Err(RecvTimeoutError::Disconnected)
}

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    Decode,
    Forget,
    /// Discard the packet, and read none for this duration.
    Rest(Duration),
}

/// Usage of the limits in the current second.
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

/// Handle of the listener's thread.
#[derive(Debug)]
pub(crate) struct Listening {
    end: Mutex<Option<(SyncSender<()>, JoinHandle<()>)>>,
}

impl Listening {
    /// Ends the thread, and waits until it has finished its current packet.
    pub(crate) fn finish(&self) {
        let running = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((end, thread)) = running {
            drop(end);
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admission, BUSY_MAX, FORGOTTEN_FOR_EACH, SECOND, ThisSecond};
    use std::time::{Duration, Instant};

    #[test]
    fn flood_is_decoded_then_discarded_then_left_to_kernel() {
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
    fn slow_packets_use_up_the_decoding_time() {
        let start = Instant::now();
        let mut second = ThisSecond::new(start, 1_000);
        assert_eq!(second.admit(start), Admission::Decode);
        second.was_busy(BUSY_MAX);
        assert_eq!(second.admit(start), Admission::Forget);
        assert_eq!(second.admit(start + SECOND), Admission::Decode);
    }
}
