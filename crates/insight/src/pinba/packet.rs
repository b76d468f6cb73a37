//! One packet: written from a request of this server, or read from another machine and validated.

use super::dictionary::Dictionary;
use super::message::Request;
use crate::batch::{TEXT_BYTES_MAX, cut};
use crate::finished::{End, Finished, Model, Numbers};
use crate::report::{Entry, REPORT_BYTES_MAX, Tags};
use prost::Message as _;

/// Maximum size of a packet, sent or received; UDP's own limit over IPv4 is 65,507.
pub const PACKET_BYTES_MAX: usize = 65_507;
/// Maximum number of timers in a packet.
pub(super) const TIMERS_MAX: usize = 1_000;
/// Maximum number of tags of a timer.
const TAGS_MAX: usize = 64;
/// Maximum number of packets read from within a packet.
const REQUESTS_MAX: usize = 1_000;
/// Maximum bytes read of a name or value. A script's name has the same limit as other paths.
const WORD_BYTES_MAX: usize = 255;
/// Maximum bytes read of one timer's tags, and of all tags in a packet: the same limits as for our
/// own workers.
const TIMER_BYTES_MAX: usize = 1_024;
const TAG_BYTES_MAX: usize = REPORT_BYTES_MAX;

/// Sender of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Name of the machine.
    pub host: String,
    /// Name of the site: `SERVER_NAME`.
    pub server: String,
}

/// Reason why a packet is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not Protocol Buffers, or fields of wrong types.
    #[error("not a Pinba packet: {0}")]
    Garbled(String),
    /// Columns of different lengths, or an index that is not in the dictionary.
    #[error("inconsistent Pinba packet: {0}")]
    Contradictory(&'static str),
}

/// Returns the packet of a request. Timers are omitted if the packet would be too long with them.
#[must_use]
pub fn encode(sender: &Sender, finished: &Finished, route: &str, entries: &[Entry]) -> Vec<u8> {
    let bytes = message(sender, finished, route, entries).encode_to_vec();
    if bytes.len() <= PACKET_BYTES_MAX {
        return bytes;
    }
    message(sender, finished, route, &[]).encode_to_vec()
}

fn seconds(ns: u64) -> f32 {
    std::time::Duration::from_nanos(ns).as_secs_f32()
}

fn message(sender: &Sender, finished: &Finished, route: &str, entries: &[Entry]) -> Request {
    let n = &finished.numbers;
    let mut words = Dictionary::default();
    let mut request = Request {
        hostname: sender.host.clone(),
        server_name: sender.server.clone(),
        script_name: route.to_owned(),
        request_count: 1,
        document_size: u32::try_from(n.bytes_out).unwrap_or(u32::MAX),
        memory_peak: u32::try_from(n.peak_bytes).unwrap_or(u32::MAX),
        request_time: seconds(n.wall_ns),
        // The request accounting has no separate time in the kernel.
        ru_utime: seconds(n.cpu_ns),
        ru_stime: 0.0,
        status: Some(u32::from(n.status)),
        ..Request::default()
    };
    for entry in entries {
        match entry {
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                request.timer_hit_count.push(*hits);
                request.timer_value.push(seconds(*wall_ns));
                request.timer_ru_utime.push(seconds(*user_ns));
                request.timer_ru_stime.push(seconds(*system_ns));
                request.timer_tag_count.push(u32::try_from(tags.len()).unwrap_or(u32::MAX));
                for (name, value) in tags {
                    request.timer_tag_name.push(words.place(name));
                    request.timer_tag_value.push(words.place(value));
                }
            }
            Entry::Tag(name, value) => {
                request.tag_name.push(words.place(name));
                request.tag_value.push(words.place(value));
            }
            Entry::Wait(_)
            | Entry::Route(_)
            | Entry::Place(_)
            | Entry::Dropped(_)
            | Entry::Boot(_)
            | Entry::Error(_)
            | Entry::Statement(_)
            | Entry::Spans(_)
            | Entry::CpuDelay(_) => {}
        }
    }
    request.dictionary = words.words();
    request
}

/// A received packet.
#[derive(Debug)]
pub struct Packet(Request);

impl Packet {
    /// Parses and validates a packet.
    pub fn decode(bytes: &[u8]) -> Result<Packet, Refused> {
        let request = Request::decode(bytes).map_err(|e| Refused::Garbled(e.to_string()))?;
        check(&request)?;
        Ok(Packet(request))
    }

    /// Returns the sender.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender { host: word(&self.0.hostname), server: word(&self.0.server_name) }
    }

    /// Returns the request's script, which is its route. Some sites send a target instead; its
    /// query string is removed.
    #[must_use]
    pub fn script(&self) -> &str {
        let path = self.0.script_name.split('?').next().unwrap_or_default();
        cut(path, TEXT_BYTES_MAX)
    }

    /// Returns the figures of the request.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let r = &self.0;
        let status = u16::try_from(r.status.unwrap_or(200)).unwrap_or_default();
        Numbers {
            status: if status == 0 { 200 } else { status },
            model: Model::Elsewhere,
            end: End::Completed,
            worker: 1,
            wall_ns: ns(r.request_time),
            run_ns: ns(r.request_time),
            cpu_ns: ns(r.ru_utime).saturating_add(ns(r.ru_stime)),
            peak_bytes: r.memory_peak.into(),
            bytes_out: r.document_size.into(),
            ..Numbers::default()
        }
    }

    /// Returns the timers and tags.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let r = &self.0;
        let mut tags = r.timer_tag_name.iter().zip(&r.timer_tag_value);
        let mut entries = Vec::new();
        let mut room = TAG_BYTES_MAX;
        for (n, hits) in r.timer_hit_count.iter().enumerate() {
            let count = r.timer_tag_count[n] as usize;
            let all = tags.by_ref().take(count).map(|(a, b)| (self.word(*a), self.word(*b)));
            let before = room.min(TIMER_BYTES_MAX);
            let mut left = before;
            // Consumes all of the timer's tags in the columns, and keeps those for which the packet
            // has room.
            let of_timer: Tags = all.filter(|pair| fits(*pair, &mut left)).collect();
            room -= before - left;
            entries.push(Entry::Timer {
                hits: *hits,
                wall_ns: ns(r.timer_value[n]),
                user_ns: r.timer_ru_utime.get(n).copied().map(ns).unwrap_or_default(),
                system_ns: r.timer_ru_stime.get(n).copied().map(ns).unwrap_or_default(),
                tags: of_timer,
            });
        }
        let pairs = r.tag_name.iter().zip(&r.tag_value);
        let pairs = pairs.map(|(name, value)| (self.word(*name), self.word(*value)));
        let fitting = pairs.filter(|pair| fits(*pair, &mut room));
        entries.extend(fitting.map(|(name, value)| Entry::Tag(name, value)));
        entries
    }

    /// Returns the packets within this one, as the extension sends them with `pinba.auto_flush`
    /// off. Those with further packets in them are skipped.
    #[must_use]
    pub fn requests(&self) -> Vec<Packet> {
        let inner = self.0.requests.iter().take(REQUESTS_MAX);
        let whole = inner.filter(|r| r.requests.is_empty() && check(r).is_ok());
        whole.map(|request| Packet(request.clone())).collect()
    }

    fn word(&self, place: u32) -> &str {
        let whole = self.0.dictionary.get(place as usize).map(String::as_str).unwrap_or_default();
        cut(whole, WORD_BYTES_MAX)
    }
}

fn word(name: &str) -> String {
    cut(name, WORD_BYTES_MAX).to_owned()
}

/// Subtracts the bytes of a name and its value from `room`, if there are enough.
fn fits((name, value): (&str, &str), room: &mut usize) -> bool {
    let left = room.checked_sub(name.len() + value.len());
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// Converts seconds to ns. Invalid values are 0, too large ones are the maximum.
fn ns(seconds: f32) -> u64 {
    let duration = std::time::Duration::try_from_secs_f32(seconds).unwrap_or_default();
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn check(r: &Request) -> Result<(), Refused> {
    let timers = r.timer_hit_count.len();
    let tags: u64 = r.timer_tag_count.iter().map(|n| u64::from(*n)).sum();
    let is_word = |place: &u32| (*place as usize) < r.dictionary.len();
    let optional = |column: &[f32]| column.is_empty() || column.len() == timers;
    let rules = [
        (timers <= TIMERS_MAX, "too many timers"),
        (r.timer_value.len() == timers, "timers without a value"),
        (r.timer_tag_count.len() == timers, "timers without a number of tags"),
        (r.timer_tag_count.iter().all(|n| *n as usize <= TAGS_MAX), "too many tags"),
        (optional(&r.timer_ru_utime) && optional(&r.timer_ru_stime), "timers without CPU time"),
        (r.timer_tag_name.len() as u64 == tags, "timer tags without a name"),
        (r.timer_tag_value.len() as u64 == tags, "timer tags without a value"),
        (r.tag_name.len() == r.tag_value.len(), "tags without a value"),
        (r.tag_name.len() <= TAGS_MAX, "too many tags"),
        (r.timer_tag_name.iter().all(is_word), "tag name not in the dictionary"),
        (r.timer_tag_value.iter().all(is_word), "tag value not in the dictionary"),
        (r.tag_name.iter().chain(&r.tag_value).all(is_word), "tag not in the dictionary"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, broken)) => Err(Refused::Contradictory(broken)),
        None => Ok(()),
    }
}
