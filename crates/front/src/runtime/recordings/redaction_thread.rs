//! The thread of a recording: replaces the secrets of requests that are kept.
//!
//! A visitor chooses how much there is to search, so it is not done on the threads that serve
//! visitors. Requests that a recording does not keep are not searched.

use super::recorded::Recorded;
use super::redact::{redact, response_head};
use super::secret_names::SecretNames;
use std::io;
use std::mem;
use std::sync::mpsc::{SyncSender, sync_channel};

/// The place of a request in its recording.
pub(super) trait RecordingPlace: Send + 'static {
    /// Secret values are kept.
    fn has_secrets(&self) -> bool;

    /// Keeps the request.
    fn keep(&self, recorded: Recorded);

    /// The request no longer needs its place.
    fn end(self, is_kept: bool);
}

/// A request to keep. It has its place until then.
#[derive(Debug)]
pub(super) struct Job<P: RecordingPlace> {
    /// `None`: the job is over.
    place: Option<P>,
    /// With all its secrets.
    raw: Recorded,
    words: Vec<String>,
    is_kept: bool,
}

/// Starts the thread. It ends when the queue is dropped, after its last job. `jobs_max`: size of
/// the queue.
pub(super) fn start<P: RecordingPlace>(jobs_max: usize) -> io::Result<SyncSender<Job<P>>> {
    let (queue, jobs) = sync_channel::<Job<P>>(jobs_max);
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

impl<P: RecordingPlace> Job<P> {
    pub(super) fn new(place: P, raw: Recorded, words: Vec<String>) -> Job<P> {
        Job { place: Some(place), raw, words, is_kept: false }
    }

    /// Keeps the request. Returns its words.
    fn carry_out(mut self, names: &SecretNames) -> Vec<String> {
        let words = mem::take(&mut self.words);
        let Some(place) = &self.place else { return words };
        let mut recorded = mem::take(&mut self.raw);
        recorded.response.head = response_head(&recorded.response.head, names);
        let wanted = (!place.has_secrets()).then_some(names);
        if let Some(input) = redact(mem::take(&mut recorded.input), wanted) {
            recorded.input = input;
            place.keep(recorded);
            self.is_kept = true;
        }
        words
    }
}

/// Also of a job that is dropped, because its thread has ended.
impl<P: RecordingPlace> Drop for Job<P> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            place.end(self.is_kept);
        }
    }
}
