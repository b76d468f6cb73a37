//! Threads that read about processes, and may hang: a process that waits for a disk with its memory
//! locked blocks its readers.
//!
//! A caller waits for a reader only for a limited time. A late reader is not used until it returns.
//! The number of readers is limited.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Maximum number of readers that hang at the same time. Beyond it, no process is read.
const READERS_MAX: usize = 4;

/// Function that reads about a process; one is made per thread.
pub(super) type Reading<Question, Response> = Box<dyn FnMut(&Question) -> Response + Send>;

/// The reader threads.
pub(super) struct Readers<Question, Response> {
    make: fn() -> Reading<Question, Response>,
    limit: Duration,
    idle: Option<Reader<Question, Response>>,
    late: Vec<Reader<Question, Response>>,
}

/// A reader thread, which ends after this is dropped and its current read has returned.
struct Reader<Question, Response> {
    questions: SyncSender<Question>,
    responses: Receiver<Response>,
}

/// Reason for a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoResponse {
    /// The answer takes longer than the limit.
    Late,
    /// All readers hang.
    NoReader,
}

impl<Question: Send + 'static, Response: Send + 'static> Readers<Question, Response> {
    /// Creates readers without threads. `limit`: maximum wait for one answer.
    pub(super) fn new(make: fn() -> Reading<Question, Response>, limit: Duration) -> Self {
        Readers { make, limit, idle: None, late: Vec::new() }
    }

    /// Sends a question to an idle reader, and waits for the answer up to the limit.
    pub(super) fn ask(&mut self, question: Question) -> Result<Response, NoResponse> {
        let reader = self.free().ok_or(NoResponse::NoReader)?;
        // A reader that has panicked does not receive.
        reader.questions.send(question).map_err(|_| NoResponse::NoReader)?;
        match reader.responses.recv_timeout(self.limit) {
            Ok(response) => {
                self.idle = Some(reader);
                Ok(response)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.late.push(reader);
                Err(NoResponse::Late)
            }
            Err(RecvTimeoutError::Disconnected) => Err(NoResponse::NoReader),
        }
    }

    fn free(&mut self) -> Option<Reader<Question, Response>> {
        // Their late answers are no longer needed.
        let returned = |reader: &mut Reader<_, _>| reader.responses.try_recv().is_ok();
        let back = self.late.extract_if(.., returned).last();
        let known = self.idle.take().or(back);
        if known.is_some() || self.late.len() == READERS_MAX {
            return known;
        }
        self.start().ok()
    }

    fn start(&self) -> std::io::Result<Reader<Question, Response>> {
        let (questions, asked) = sync_channel(1);
        let (tell, responses) = sync_channel(1);
        let make = self.make;
        let read = move || {
            let mut reading = make();
            for question in asked {
                // The receiver is dropped: no more questions will come.
                if tell.send(reading(&question)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("inquest".into()).spawn(read)?;
        Ok(Reader { questions, responses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Blocks a reader until a message is sent or the sender is dropped.
    type Held = Option<Mutex<Receiver<()>>>;

    fn reading() -> Reading<Held, &'static str> {
        Box::new(|question: &Held| {
            if let Some(held) = question {
                let _ = held.lock().expect("nobody panics").recv();
            }
            "read"
        })
    }

    #[test]
    fn hanging_reader_is_skipped_until_it_returns() {
        let mut patient = Readers::new(reading, Duration::from_mins(1));
        assert_eq!(patient.ask(None), Ok("read"));
        let mut readers = Readers::new(reading, Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..READERS_MAX {
            let (release, until) = sync_channel(1);
            held.push(release);
            assert_eq!(readers.ask(Some(Mutex::new(until))), Err(NoResponse::Late));
        }
        for _ in 0..3 {
            assert_eq!(readers.ask(None), Err(NoResponse::NoReader));
        }
        readers.limit = Duration::from_mins(1);
        drop(held.pop());
        let back = (0..2_000_000).find_map(|_| {
            std::thread::yield_now();
            readers.ask(None).ok()
        });
        assert_eq!(back, Some("read"));
        assert_eq!(readers.late.len(), READERS_MAX - 1, "the others still hang");
        assert_eq!(readers.ask(None), Ok("read"), "by the same one");
    }

    #[test]
    fn panicked_reader_is_replaced() {
        fn panicking() -> Reading<bool, &'static str> {
            Box::new(|dies: &bool| {
                assert!(!dies, "the reader dies");
                "read"
            })
        }
        let mut readers = Readers::new(panicking, Duration::from_mins(1));
        assert_eq!(readers.ask(true), Err(NoResponse::NoReader));
        assert_eq!(readers.ask(false), Ok("read"));
    }
}
