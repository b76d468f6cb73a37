//! worker → thread: what a worker says of its request beside its usage.
//!
//! The worker writes entries into its slot, the front copies them unread, and here they are read: hostile bytes, because a
//! worker's memory may be garbage. An entry is a tag, the payload's length (u16, little-endian) and the payload; all
//! numbers are little-endian. `worker/csrc/insight/report.c` is the other half.
//!
//! | tag | payload |
//! |---|---|
//! | 1 route | the name, UTF-8 |
//! | 2 wait | kind u8, times u32, ns u64, then whom for: UTF-8, may be empty |
//! | 3 timer | hits u32, wall ns u64, user ns u64, system ns u64, then name and value of each tag, each a length u8 and UTF-8 |
//! | 4 tag of the request | name and value, as a timer's |
//! | 5 place | where PHP stood when it waited longest, UTF-8: `App\Foo::bar() src/Foo.php:12` |
//! | 6 dropped | how many entries did not fit, u32 |
//! | 7 boot | how long before the take it began, ns u64 (0: at the take, a part of the run), and how long it took, ns u64 |

use serde::{Deserialize, Serialize};

/// Most bytes of a report.
pub const REPORT_BYTES_MAX: usize = 8 * 1024;
/// Most bytes of a name: a route's, a peer's, a tag's.
const NAME_BYTES_MAX: usize = 255;

/// Boots of one request: its worker's and its script's.
pub(crate) const BOOTS_MAX: usize = 2;

/// What a worker waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A TCP peer: `10.0.0.5:5432`.
    Tcp = 0,
    /// A unix socket: `/run/mysqld/mysqld.sock`.
    Unix = 1,
    /// A UDP peer.
    Udp = 2,
    /// A file's or a System V lock: its path, if there is one.
    Lock = 3,
    /// Names: `getaddrinfo` and its like.
    Dns = 4,
    /// `sleep`, `usleep`, `time_nanosleep` …
    Sleep = 5,
    /// A pipe, a terminal, a child's end.
    Pipe = 6,
    /// A file on a disk.
    File = 7,
    /// The client: its body, or its reading of the answer.
    Client = 8,
    /// Several descriptors at once, of which none was ready first.
    Poll = 9,
    /// Anything else.
    Other = 10,
}

impl WaitKind {
    /// In the order of their numbers.
    pub const ALL: [WaitKind; 11] = [
        WaitKind::Tcp,
        WaitKind::Unix,
        WaitKind::Udp,
        WaitKind::Lock,
        WaitKind::Dns,
        WaitKind::Sleep,
        WaitKind::Pipe,
        WaitKind::File,
        WaitKind::Client,
        WaitKind::Poll,
        WaitKind::Other,
    ];

    /// Its name in labels and pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Tcp => "tcp",
            WaitKind::Unix => "unix",
            WaitKind::Udp => "udp",
            WaitKind::Lock => "lock",
            WaitKind::Dns => "dns",
            WaitKind::Sleep => "sleep",
            WaitKind::Pipe => "pipe",
            WaitKind::File => "file",
            WaitKind::Client => "client",
            WaitKind::Poll => "poll",
            WaitKind::Other => "other",
        }
    }
}

/// Time spent waiting for one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    /// What it is.
    pub kind: WaitKind,
    /// Whom for: an address, a path; empty where the kind says it all.
    pub peer: &'a str,
    /// How often.
    pub times: u32,
    /// How long together.
    pub ns: u64,
}

/// A boot: of its worker, which took the request as its first, or of the script itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// How long before the take it began. 0: at the take; it is the first part of the run.
    pub ago_ns: u64,
    /// How long it took.
    pub ns: u64,
}

impl Boot {
    /// From when after the request's begin on, and how long, the request waited for it or ran in it; `None`: it was over before.
    #[must_use]
    pub fn within(self, queue_ns: u64) -> Option<(u64, u64)> {
        if self.ago_ns == 0 {
            return Some((queue_ns, self.ns));
        }
        let end_ns = queue_ns.checked_sub(self.ago_ns.saturating_sub(self.ns))?;
        let begin_ns = queue_ns.saturating_sub(self.ago_ns);
        (end_ns > begin_ns).then_some((begin_ns, end_ns - begin_ns))
    }

    /// Whether it is a part of the run.
    #[must_use]
    pub fn is_of_run(self) -> bool {
        self.ago_ns == 0
    }
}

/// Tags as (name, value).
pub type Tags<'a> = Vec<(&'a str, &'a str)>;

/// One entry of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// The route, as the application calls it.
    Route(&'a str),
    /// Time spent waiting.
    Wait(Wait<'a>),
    /// A timer's hits, wall, user and system time in ns.
    Timer {
        /// How often it was started and stopped.
        hits: u32,
        /// Wall time.
        wall_ns: u64,
        /// CPU time in PHP.
        user_ns: u64,
        /// CPU time in the kernel.
        system_ns: u64,
        /// What it is called by.
        tags: Tags<'a>,
    },
    /// A tag of the whole request.
    Tag(&'a str, &'a str),
    /// Where PHP stood when it waited longest.
    Place(&'a str),
    /// Entries that did not fit.
    Dropped(u32),
    /// What was made ready before the application's work.
    Boot(Boot),
}

impl Entry<'_> {
    /// Its bytes, as a worker writes them: for whoever plays a worker's part. Names beyond 255 bytes are cut.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let name = |text: &str| {
            let length = text.floor_char_boundary(NAME_BYTES_MAX);
            [&[length as u8], &text.as_bytes()[..length]].concat()
        };
        let (tag, payload) = match self {
            Entry::Route(route) => (1, name(route)[1..].to_vec()),
            Entry::Wait(Wait { kind, peer, times, ns }) => {
                let numbers = [&times.to_le_bytes()[..], &ns.to_le_bytes()].concat();
                (2, [&[*kind as u8], &numbers[..], &name(peer)[1..]].concat())
            }
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                let mut payload = hits.to_le_bytes().to_vec();
                for ns in [wall_ns, user_ns, system_ns] {
                    payload.extend(ns.to_le_bytes());
                }
                payload.extend(tags.iter().flat_map(|(n, v)| [name(n), name(v)].concat()));
                (3, payload)
            }
            Entry::Tag(n, v) => (4, [name(n), name(v)].concat()),
            Entry::Place(place) => (5, name(place)[1..].to_vec()),
            Entry::Dropped(n) => (6, n.to_le_bytes().to_vec()),
            Entry::Boot(Boot { ago_ns, ns }) => {
                (7, [ago_ns.to_le_bytes(), ns.to_le_bytes()].concat())
            }
        };
        [&[tag], &(payload.len() as u16).to_le_bytes()[..], &payload[..]].concat()
    }
}

/// A report that breaks its grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker's report breaks its grammar at byte {at}")]
pub struct Malformed {
    /// Where the entry begins.
    pub at: usize,
}

/// The entries of a report. Ends with the first that is malformed.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Report<'a> {
    /// Reads `bytes`, of which at most [`REPORT_BYTES_MAX`] are looked at.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Report<'a> {
        Report { bytes: &bytes[..bytes.len().min(REPORT_BYTES_MAX)], at: 0 }
    }
}

impl<'a> Iterator for Report<'a> {
    type Item = Result<Entry<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let mut rest = Fields(&self.bytes[self.at..]);
        let Some(entry) = rest.entry() else {
            let at = std::mem::replace(&mut self.at, self.bytes.len());
            return Some(Err(Malformed { at }));
        };
        self.at = self.bytes.len() - rest.0.len();
        Some(Ok(entry))
    }
}

/// What is still to be read. `None` from each: there is less than it needs.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn entry(&mut self) -> Option<Entry<'a>> {
        let tag = self.u8()?;
        let length = self.array().map(u16::from_le_bytes)?;
        let mut payload = Fields(self.bytes(length.into())?);
        let entry = match tag {
            1 => Entry::Route(payload.rest()?),
            2 => Entry::Wait(Wait {
                kind: *WaitKind::ALL.get(usize::from(payload.u8()?))?,
                times: payload.u32()?,
                ns: payload.u64()?,
                peer: payload.rest()?,
            }),
            3 => Entry::Timer {
                hits: payload.u32()?,
                wall_ns: payload.u64()?,
                user_ns: payload.u64()?,
                system_ns: payload.u64()?,
                tags: payload.tags()?,
            },
            4 => Entry::Tag(payload.name()?, payload.name()?),
            5 => Entry::Place(payload.rest()?),
            6 => Entry::Dropped(payload.u32()?),
            7 => Entry::Boot(Boot { ago_ns: payload.u64()?, ns: payload.u64()? }),
            _ => return None,
        };
        payload.0.is_empty().then_some(entry)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A text to the payload's end.
    fn rest(&mut self) -> Option<&'a str> {
        let all = self.bytes(self.0.len())?;
        (all.len() <= NAME_BYTES_MAX).then(|| std::str::from_utf8(all).ok())?
    }

    /// A text after its length.
    fn name(&mut self) -> Option<&'a str> {
        let length = self.u8()?;
        std::str::from_utf8(self.bytes(length.into())?).ok()
    }

    fn tags(&mut self) -> Option<Tags<'a>> {
        let mut tags = Vec::new();
        while !self.0.is_empty() {
            tags.push((self.name()?, self.name()?));
        }
        Some(tags)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Boot, Entry, Malformed, Report, Wait, WaitKind};
    use proptest::prelude::*;

    pub(crate) fn encode(entry: &Entry) -> Vec<u8> {
        entry.encode()
    }

    fn examples() -> Vec<Entry<'static>> {
        vec![
            Entry::Route("shop_show"),
            Entry::Wait(Wait { kind: WaitKind::Tcp, peer: "10.0.0.5:5432", times: 3, ns: 62_000 }),
            Entry::Wait(Wait { kind: WaitKind::Sleep, peer: "", times: 1, ns: u64::MAX }),
            Entry::Timer {
                hits: 2,
                wall_ns: 5,
                user_ns: 3,
                system_ns: 1,
                tags: vec![("group", "mysql"), ("server", "db1")],
            },
            Entry::Tag("country", "ä"),
            Entry::Place("App\\Foo::bar() src/Foo.php:12"),
            Entry::Dropped(7),
            Entry::Boot(Boot { ago_ns: 9, ns: 8 }),
        ]
    }

    #[test]
    fn what_a_worker_writes_is_read() {
        let bytes: Vec<u8> = examples().iter().flat_map(encode).collect();
        let read: Result<Vec<_>, _> = Report::new(&bytes).collect();
        assert_eq!(read, Ok(examples()));
    }

    #[test]
    fn what_breaks_the_grammar_ends_the_report() {
        let route = encode(&Entry::Route("a"));
        for broken in [
            &[9, 0, 0][..],                                      // an unknown tag
            &[1, 200, 0, b'a'],                                  // longer than what is there
            &[1, 1, 0, 0xff],                                    // no UTF-8
            &[2, 1, 0, 0],                                       // a wait without its numbers
            &[2, 13, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // an unknown kind
            &[4, 2, 0, 1, b'a'],                                 // a name without its value
            &[6, 5, 0, 0, 0, 0, 0, 0],                           // too long
            &[7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0],                  // a boot without its length
            &[1],
        ] {
            let bytes = [&route[..], broken, &route[..]].concat();
            let mut read = Report::new(&bytes);
            assert_eq!(read.next(), Some(Ok(Entry::Route("a"))), "{broken:?}");
            assert_eq!(read.next(), Some(Err(Malformed { at: route.len() })), "{broken:?}");
            assert_eq!(read.next(), None);
        }
    }

    #[test]
    fn a_request_has_waited_for_what_it_was_there_for() {
        let boot = |ago_ns, ns| Boot { ago_ns, ns };
        for (boot, queue_ns, within) in [
            (boot(0, 5), 100, Some((100, 5))),       // of the run
            (boot(50, 20), 100, Some((50, 20))),     // all of it in the queue
            (boot(150, 120), 100, Some((0, 70))),    // it had begun before
            (boot(150, 50), 100, None),              // it was over
            (boot(900, 120), 100, None),             // long
            (boot(5, u64::MAX), 100, Some((95, 5))), // nonsense stays within the request
            (boot(u64::MAX, u64::MAX), 0, None),
        ] {
            assert_eq!(boot.within(queue_ns), within, "{boot:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(Report::new(&bytes).count() <= bytes.len());
        }
    }
}
