//! The thread of a recording: replaces the secrets of requests that are kept.
//!
//! A visitor chooses how much there is to search, so it is not done on the threads that serve
//! visitors. Requests that a recording does not keep are not searched.

use super::recorded::Recorded;
use super::redact::{redact, response_head};
use super::secret_names::SecretNames;
use super::{HELD_MAX, HeldPlace};
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// A request to keep. It has its place until then.
#[derive(Debug)]
pub(super) struct Job {
    /// `None`: the job is over.
    place: Option<HeldPlace>,
    /// With all its secrets.
    raw: Recorded,
    words: Vec<String>,
    is_kept: bool,
}

/// Starts the thread. It ends when the queue is dropped, after its last job.
pub(super) fn start() -> io::Result<SyncSender<Job>> {
    let (queue, jobs) = sync_channel::<Job>(HELD_MAX);
    std::thread::Builder::new().name("redaction".to_owned()).spawn(move || {
        let mut known: Option<(Vec<String>, SecretNames)> = None;
        for job in jobs {
            let names = match known.take().filter(|(words, _)| *words == job.words) {
                Some((_, names)) => names,
                None => SecretNames::of(&job.words),
            };
            let words = job.carry_out(&names);
            known = Some((words, names));
        }
    })?;
    Ok(queue)
}

impl Job {
    pub(super) fn new(place: HeldPlace, raw: Recorded, words: Vec<String>) -> Job {
        Job { place: Some(place), raw, words, is_kept: false }
    }

    /// Keeps the request. Returns its words.
    fn carry_out(mut self, names: &SecretNames) -> Vec<String> {
        let words = mem::take(&mut self.words);
        let Some(place) = &self.place else { return words };
        let mut recorded = mem::take(&mut self.raw);
        recorded.response.head = response_head(&recorded.response.head, names);
        let wanted = (!place.has_secrets).then_some(names);
        if let Some(input) = redact(mem::take(&mut recorded.input), wanted) {
            recorded.input = input;
            place.recordings.store().keep(recorded);
            self.is_kept = true;
        }
        words
    }
}

/// Also of a job that is dropped, because its thread has ended.
impl Drop for Job {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let recordings = Arc::clone(&place.recordings);
        // It locks the store.
        drop(place);
        let mut store = recordings.store();
        store.done += 1;
        store.missed += u64::from(!self.is_kept);
        drop(store);
        recordings.has_done.notify_all();
    }
}
