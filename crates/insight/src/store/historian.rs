//! The thread that writes history.

use super::rows::Minute;
use super::{Store, StoreError, StoreLimits};
use crate::turn::Turn;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minutes that wait for a disk.
const MINUTES_MAX: usize = 8;
/// How often it is looked whether the server before this one has let the file go.
const TURN_LOOK: Duration = Duration::from_millis(100);
/// How long the server's end waits for the last minute.
const FINISH_LIMIT: Duration = Duration::from_secs(2);

/// What goes wrong with history, for whoever says so.
pub type Trouble = Box<dyn Fn(&str) + Send>;

/// Figures about the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Minutes that were lost.
    pub minutes_lost: u64,
    /// What is wrong now; empty if nothing is.
    pub trouble: String,
}

#[derive(Debug, Default)]
struct Shared {
    minutes_lost: AtomicU64,
    trouble: Mutex<String>,
}

/// The way to the thread.
#[derive(Debug)]
pub struct Historian {
    minutes: Option<SyncSender<Minute>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Historian {
    /// Starts the thread, which opens the file; what fails is told to `trouble`, once until it works again.
    pub fn start(
        path: PathBuf,
        limits: StoreLimits,
        trouble: Trouble,
    ) -> std::io::Result<Historian> {
        Historian::start_at(Turn::now(), path, limits, trouble)
    }

    /// As [`Self::start`]; the file is another server's until the turn has come, and minutes wait in memory.
    pub fn start_at(
        turn: Turn,
        path: PathBuf,
        limits: StoreLimits,
        trouble: Trouble,
    ) -> std::io::Result<Historian> {
        let (sender, minutes) = sync_channel(MINUTES_MAX);
        let shared = Arc::new(Shared::default());
        let writer = Writer {
            path,
            limits,
            trouble,
            shared: Arc::clone(&shared),
            store: None,
            is_well: true,
        };
        let thread = std::thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || writer.run(&turn, &minutes))?;
        Ok(Historian { minutes: Some(sender), shared, thread: Some(thread) })
    }

    /// Hands a minute on; loses it if the disk is that slow.
    pub fn put(&self, minute: Minute) {
        let sent = self.minutes.as_ref().is_some_and(|minutes| minutes.try_send(minute).is_ok());
        if !sent {
            self.shared.minutes_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How it is doing.
    #[must_use]
    pub fn history(&self) -> History {
        let trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        History { minutes_lost: self.shared.minutes_lost.load(Ordering::Relaxed), trouble }
    }

    /// The end: what was handed on is written now or never.
    pub fn finish(&mut self) {
        self.minutes = None;
        let Some(thread) = self.thread.take() else { return };
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < FINISH_LIMIT {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // A panic of the thread has been told by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Historian {
    fn drop(&mut self) {
        self.finish();
    }
}

struct Writer {
    path: PathBuf,
    limits: StoreLimits,
    trouble: Trouble,
    shared: Arc<Shared>,
    store: Option<Store>,
    is_well: bool,
}

impl Writer {
    fn run(mut self, turn: &Turn, minutes: &Receiver<Minute>) {
        let Some(waiting) = self.wait_for(turn, minutes) else { return };
        // The file is there before its first minute: whoever reads may look.
        let opened = self.open();
        self.tell(&opened);
        for minute in &waiting {
            self.keep(minute);
        }
        while let Ok(minute) = minutes.recv() {
            self.keep(&minute);
        }
    }

    /// What has come meanwhile; `None`: it ends before it is its turn, and writes nothing.
    fn wait_for(&self, turn: &Turn, minutes: &Receiver<Minute>) -> Option<Vec<Minute>> {
        let mut waiting = Vec::new();
        while !turn.wait(TURN_LOOK) {
            match minutes.try_recv() {
                Ok(minute) if waiting.len() < MINUTES_MAX => waiting.push(minute),
                Ok(_) => {
                    self.shared.minutes_lost.fetch_add(1, Ordering::Relaxed);
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return None,
            }
        }
        Some(waiting)
    }

    fn keep(&mut self, minute: &Minute) {
        let written = self.write(minute);
        if written.is_err() {
            self.store = None;
            self.shared.minutes_lost.fetch_add(1, Ordering::Relaxed);
        }
        self.tell(&written);
    }

    fn open(&mut self) -> Result<(), StoreError> {
        if self.store.is_none() {
            let (store, was_moved_aside) = Store::open(&self.path, self.limits)?;
            if was_moved_aside {
                (self.trouble)(&format!(
                    "the history `{}` could not be read; it was moved aside, and a new one begun",
                    self.path.display()
                ));
            }
            self.store = Some(store);
        }
        Ok(())
    }

    fn write(&mut self, minute: &Minute) -> Result<(), StoreError> {
        self.open()?;
        self.store.as_mut().map_or(Ok(()), |store| store.put(minute))
    }

    /// Says what changes: the first failure, and the first success after it.
    fn tell(&mut self, outcome: &Result<(), StoreError>) {
        let text = match outcome {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        };
        if outcome.is_ok() != self.is_well {
            self.is_well = outcome.is_ok();
            let news = if self.is_well {
                "history is written again".to_owned()
            } else {
                format!("{text}; minutes are lost until it can be written")
            };
            (self.trouble)(&news);
        }
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}
