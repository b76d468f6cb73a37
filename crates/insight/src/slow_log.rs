//! Aggregation thread → log: one record per slow request, as text or JSON, at a limited rate.
//!
//! A record contains the path, but never the query string, cookies or a body. Values of tags with
//! secret names are redacted before they arrive here (`redaction.rs`).

mod record;

use crate::batch::id_mark;
use crate::observation::Seen;
use crate::recent_requests::RecentRequest;
use crate::sink::{Fate, Sink, Tally};
use std::sync::Arc;

/// Default for the maximum number of records per second.
const PER_SECOND: u32 = 10;
/// Part of the records per second that is reserved for routes without a record in that second.
const RESERVED_PART: u32 = 5;

/// Format of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One line for people.
    #[default]
    Text,
    /// One line of JSON.
    Json,
}

/// Writes a record, one line without its end. Must not block.
pub type Write = Box<dyn FnMut(&str) + Send>;

/// Options of the slow log.
pub struct SlowLogOptions {
    /// Minimum wall time of a slow request, ns.
    pub slow_ns: u64,
    /// Format.
    pub form: Form,
    /// Maximum number of records per second. Further ones are counted, and the next record contains
    /// their number.
    pub per_second_max: u32,
    /// Output.
    pub write: Write,
}

impl SlowLogOptions {
    /// Creates options for text at the default rate.
    #[must_use]
    pub fn new(slow_ns: u64, write: Write) -> SlowLogOptions {
        SlowLogOptions { slow_ns, form: Form::Text, per_second_max: PER_SECOND, write }
    }
}

/// Writes records of slow requests.
pub struct SlowLog {
    options: SlowLogOptions,
    second: u64,
    written: u32,
    /// Routes with a record in this second, as hashes; at most `per_second_max`.
    routes: Vec<u64>,
    suppressed: u64,
    tally: Arc<Tally>,
}

impl SlowLog {
    /// Creates the sink; nothing is written yet.
    #[must_use]
    pub fn new(options: SlowLogOptions) -> SlowLog {
        let tally = Tally::new("slow_log");
        SlowLog { options, second: 0, written: 0, routes: Vec::new(), suppressed: 0, tally }
    }

    fn has_room(&mut self, route: &str, now: u64) -> bool {
        if now != self.second {
            (self.second, self.written) = (now, 0);
            self.routes.clear();
        }
        let most = self.options.per_second_max;
        let route = id_mark(route.as_bytes());
        let is_first = !self.routes.contains(&route);
        let reserved = if is_first { 0 } else { most / RESERVED_PART };
        let has_room = self.written < most - reserved;
        self.written += u32::from(has_room);
        if has_room && is_first {
            self.routes.push(route);
        }
        has_room
    }
}

impl Sink for SlowLog {
    fn take(&mut self, seen: &Seen) {
        if seen.finished.numbers.wall_ns < self.options.slow_ns {
            return;
        }
        if !self.has_room(seen.route, seen.now) {
            self.suppressed += 1;
            self.tally.add(Fate::Lost, 1);
            return;
        }
        let kept = RecentRequest::new(seen.finished, seen.route, seen.entries);
        let kept = RecentRequest { scene: seen.scene.cloned(), ..kept };
        let suppressed = std::mem::take(&mut self.suppressed);
        let line = match self.options.form {
            Form::Text => record::text(&kept, suppressed),
            Form::Json => record::json(&kept, suppressed),
        };
        (self.options.write)(&line);
        self.tally.add(Fate::Passed, 1);
    }

    fn wants_from_ns(&self) -> u64 {
        self.options.slow_ns
    }

    fn tally(&self) -> Arc<Tally> {
        Arc::clone(&self.tally)
    }
}

#[cfg(test)]
mod tests;
