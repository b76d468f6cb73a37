//! Pinba's packets: requests with their timers, as its PHP extension sends them over UDP, one packet each.
//!
//! Out, so that an existing Pinba server sees this fleet; in, so that hosts with php-fpm and the extension are seen here.
//! The message is that of the extension's `pinba.proto` (proto2, [protocol](https://github.com/tony2001/pinba_engine)):
//! strings of timers and tags stand in a dictionary, and timers are columns. What comes in is hostile.
//!
//! A packet is one request, whatever its `request_count` says: the extension writes 0 there, and Pinba's own reports
//! count packets. Packets within a packet, which a relay may send, count one each beside the one that brought them.

mod dictionary;
pub mod listener;
mod message;
pub mod sender;

use crate::batch::{TEXT_BYTES_MAX, cut};
use crate::finished::{End, Finished, Model, Numbers};
use crate::report::{Entry, Tags};
use dictionary::Dictionary;
use message::Request;
use prost::Message as _;

/// The largest packet that is taken in or sent; UDP's own limit over IPv4 is 65,507.
pub const PACKET_BYTES_MAX: usize = 65_507;
/// Timers that are taken from one packet.
const TIMERS_MAX: usize = 1_000;
/// Tags that are taken from one timer.
const TAGS_MAX: usize = 64;
/// Packets that are taken from one packet.
const REQUESTS_MAX: usize = 1_000;
/// Bytes that are taken of a name or value; of a script's name it is what is taken of any path.
const WORD_BYTES_MAX: usize = 255;
/// Bytes that are taken of the tags of one timer, and of all of a packet: as much as a worker of ours may tell.
const TIMER_BYTES_MAX: usize = 1_024;
const TAG_BYTES_MAX: usize = crate::report::REPORT_BYTES_MAX;

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The machine's name.
    pub host: String,
    /// The site's name: `SERVER_NAME`.
    pub server: String,
}

/// A packet that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not Protocol Buffers, or of other types than a packet has.
    #[error("not a Pinba packet: {0}")]
    Garbled(String),
    /// Columns of different lengths, or a word that is not in the dictionary.
    #[error("a Pinba packet contradicts itself: {0}")]
    Contradictory(&'static str),
}

/// The packet of a request, without timers where it would be too long with them.
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
        // Its usage does not tell time in PHP from time in the kernel.
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
            | Entry::Boot(_) => {}
        }
    }
    request.dictionary = words.words();
    request
}

/// A packet that was taken in.
#[derive(Debug)]
pub struct Packet(Request);

impl Packet {
    /// Reads and checks a packet.
    pub fn decode(bytes: &[u8]) -> Result<Packet, Refused> {
        let request = Request::decode(bytes).map_err(|e| Refused::Garbled(e.to_string()))?;
        check(&request)?;
        Ok(Packet(request))
    }

    /// Who has sent it.
    #[must_use]
    pub fn sender(&self) -> Sender {
        Sender { host: word(&self.0.hostname), server: word(&self.0.server_name) }
    }

    /// The request's script: its route. Some sites send a target there; its query string is left out.
    #[must_use]
    pub fn script(&self) -> &str {
        let path = self.0.script_name.split('?').next().unwrap_or_default();
        cut(path, TEXT_BYTES_MAX)
    }

    /// The figures of its request.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let r = &self.0;
        let status = u16::try_from(r.status.unwrap_or(200)).unwrap_or_default();
        Numbers {
            status: if status == 0 { 200 } else { status },
            model: Model::Elsewhere,
            end: End::Answered,
            worker: 1,
            wall_ns: ns(r.request_time),
            run_ns: ns(r.request_time),
            cpu_ns: ns(r.ru_utime).saturating_add(ns(r.ru_stime)),
            peak_bytes: r.memory_peak.into(),
            bytes_out: r.document_size.into(),
            ..Numbers::default()
        }
    }

    /// Its timers and tags.
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
            // All are taken from the columns, as many as there is room for from the packet.
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

    /// Packets within this one, as the extension sends them with `pinba.auto_flush` off. They have none themselves.
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

/// Takes the room that a name and its value need, if there is as much.
fn fits((name, value): (&str, &str), room: &mut usize) -> bool {
    let left = room.checked_sub(name.len() + value.len());
    *room = left.unwrap_or(*room);
    left.is_some()
}

/// Garbage is no time, and no time is beyond what a `u64` of ns holds.
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
        (r.timer_tag_name.len() as u64 == tags, "tags of timers without a name"),
        (r.timer_tag_value.len() as u64 == tags, "tags of timers without a value"),
        (r.tag_name.len() == r.tag_value.len(), "tags without a value"),
        (r.tag_name.len() <= TAGS_MAX, "too many tags"),
        (r.timer_tag_name.iter().all(is_word), "a tag's name is not in the dictionary"),
        (r.timer_tag_value.iter().all(is_word), "a tag's value is not in the dictionary"),
        (r.tag_name.iter().chain(&r.tag_value).all(is_word), "a tag is not in the dictionary"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, broken)) => Err(Refused::Contradictory(broken)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
