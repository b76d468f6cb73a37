//! Who reads about processes, and may hang on it: a process that waits for a disk with its memory locked holds up whoever looks.
//!
//! Nobody waits for a reader longer than a moment. One that is late is passed over until it returns, and there are few of them.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Readers that hang at the same time; beyond, nobody is read about.
const READERS_MAX: usize = 4;

/// What reads: it is made once for each thread.
pub(super) type Reading<Question, Answer> = Box<dyn FnMut(&Question) -> Answer + Send>;

/// Those there are.
pub(super) struct Readers<Question, Answer> {
    make: fn() -> Reading<Question, Answer>,
    limit: Duration,
    idle: Option<Reader<Question, Answer>>,
    late: Vec<Reader<Question, Answer>>,
}

/// A thread, which ends when this is dropped and it has returned.
struct Reader<Question, Answer> {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It takes longer than the limit.
    Late,
    /// All readers hang.
    NoReader,
}

impl<Question: Send + 'static, Answer: Send + 'static> Readers<Question, Answer> {
    /// `limit`: for one answer.
    pub(super) fn new(make: fn() -> Reading<Question, Answer>, limit: Duration) -> Self {
        Readers { make, limit, idle: None, late: Vec::new() }
    }

    /// Asks a reader that is not busy, and waits for as long as the limit says.
    pub(super) fn ask(&mut self, question: Question) -> Result<Answer, NoAnswer> {
        let reader = self.free().ok_or(NoAnswer::NoReader)?;
        // One that has panicked does not listen.
        reader.questions.send(question).map_err(|_| NoAnswer::NoReader)?;
        match reader.answers.recv_timeout(self.limit) {
            Ok(answer) => {
                self.idle = Some(reader);
                Ok(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.late.push(reader);
                Err(NoAnswer::Late)
            }
            Err(RecvTimeoutError::Disconnected) => Err(NoAnswer::NoReader),
        }
    }

    fn free(&mut self) -> Option<Reader<Question, Answer>> {
        // What they would have said is of no use any more.
        let returned = |reader: &mut Reader<_, _>| reader.answers.try_recv().is_ok();
        let back = self.late.extract_if(.., returned).last();
        let known = self.idle.take().or(back);
        if known.is_some() || self.late.len() == READERS_MAX {
            return known;
        }
        self.start().ok()
    }

    fn start(&self) -> std::io::Result<Reader<Question, Answer>> {
        let (questions, asked) = sync_channel(1);
        let (tell, answers) = sync_channel(1);
        let make = self.make;
        let read = move || {
            let mut reading = make();
            for question in asked {
                // Nobody wants it any more: nor the next one.
                if tell.send(reading(&question)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("inquest".into()).spawn(read)?;
        Ok(Reader { questions, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// What holds up whoever reads about it: until a word comes, or the other end is gone.
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
    fn who_hangs_is_passed_over_and_comes_back() {
        let mut patient = Readers::new(reading, Duration::from_mins(1));
        assert_eq!(patient.ask(None), Ok("read"));
        let mut readers = Readers::new(reading, Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..READERS_MAX {
            let (release, until) = sync_channel(1);
            held.push(release);
            assert_eq!(readers.ask(Some(Mutex::new(until))), Err(NoAnswer::Late));
        }
        for _ in 0..3 {
            assert_eq!(readers.ask(None), Err(NoAnswer::NoReader));
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
    fn one_that_has_panicked_is_replaced() {
        fn panicking() -> Reading<bool, &'static str> {
            Box::new(|dies: &bool| {
                assert!(!dies, "as it is told");
                "read"
            })
        }
        let mut readers = Readers::new(panicking, Duration::from_mins(1));
        assert_eq!(readers.ask(true), Err(NoAnswer::NoReader));
        assert_eq!(readers.ask(false), Ok("read"));
    }
}
