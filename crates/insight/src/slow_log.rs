//! thread → log: one record of each slow request, as text or JSON, at a bounded rate.
//!
//! A record has the path and never a query string, cookies or a body; values of tags with secret names are blotted out
//! before they come here (`redaction.rs`).

mod record;

use crate::kept::Kept;
use crate::sink::{Fate, Seen, Sink, Tally};
use std::sync::Arc;

/// Records of one second, unless another number is given.
const PER_SECOND: u32 = 10;

/// How a record is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// One line for people.
    #[default]
    Text,
    /// One line of JSON.
    Json,
}

/// Takes a record, one line without its end. Must not wait.
pub type Write = Box<dyn FnMut(&str) + Send>;

/// What is written, and where to.
pub struct SlowLogOptions {
    /// Wall time from which on a request is slow, ns.
    pub slow_ns: u64,
    /// How.
    pub form: Form,
    /// Records of one second at most; others are counted, and the next record says how many.
    pub per_second_max: u32,
    /// Where to.
    pub write: Write,
}

impl SlowLogOptions {
    /// As text, at the usual rate.
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
    suppressed: u64,
    tally: Arc<Tally>,
}

impl SlowLog {
    /// Nothing was written yet.
    #[must_use]
    pub fn new(options: SlowLogOptions) -> SlowLog {
        let tally = Tally::new("slow_log");
        SlowLog { options, second: 0, written: 0, suppressed: 0, tally }
    }

    fn has_room(&mut self, now: u64) -> bool {
        if now != self.second {
            (self.second, self.written) = (now, 0);
        }
        let has_room = self.written < self.options.per_second_max;
        self.written += u32::from(has_room);
        has_room
    }
}

impl Sink for SlowLog {
    fn take(&mut self, seen: &Seen) {
        if seen.finished.numbers.wall_ns < self.options.slow_ns {
            return;
        }
        if !self.has_room(seen.now) {
            self.suppressed += 1;
            self.tally.add(Fate::Lost, 1);
            return;
        }
        let kept = Kept::new(seen.finished, seen.route, seen.entries);
        let kept = Kept { scene: seen.scene.cloned(), ..kept };
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
