//! Thread that writes the history.

use super::history_file::{Store, StoreError, StoreLimits};
use super::rows::Minute;
use crate::handover_gate::HandoverGate;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of minutes that wait for the disk.
const MINUTES_MAX: usize = 8;
/// Interval at which the thread checks whether the previous server has released the file.
const TURN_LOOK: Duration = Duration::from_millis(100);
/// Maximum time that the server's stop waits for the last minute.
const FINISH_LIMIT: Duration = Duration::from_secs(2);

/// Called with a message when the history fails or recovers.
pub type ProblemSink = Box<dyn Fn(&str) + Send>;

/// State of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Number of lost minutes.
    pub minutes_lost: u64,
    /// Current error; empty if there is none.
    pub trouble: String,
}

#[derive(Debug, Default)]
struct Shared {
    minutes_lost: AtomicU64,
    trouble: Mutex<String>,
}

/// Handle of the thread.
#[derive(Debug)]
pub struct Historian {
    minutes: Option<SyncSender<Minute>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Historian {
    /// Starts the thread, which opens the file. A failure is reported to `trouble` once, and again
    /// only after a recovery.
    pub fn start(
        path: PathBuf,
        limits: StoreLimits,
        trouble: ProblemSink,
    ) -> std::io::Result<Historian> {
        Historian::start_at(HandoverGate::now(), path, limits, trouble)
    }

    /// Like [`Self::start`]. Until the turn comes, the file belongs to another server, and minutes
    /// wait in memory.
    pub fn start_at(
        handover_gate: HandoverGate,
        path: PathBuf,
        limits: StoreLimits,
        trouble: ProblemSink,
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
            .spawn(move || writer.run(&handover_gate, &minutes))?;
        Ok(Historian { minutes: Some(sender), shared, thread: Some(thread) })
    }

    /// Queues a minute; drops it if the queue is full because the disk is too slow.
    pub fn put(&self, minute: Minute) {
        let sent = self.minutes.as_ref().is_some_and(|minutes| minutes.try_send(minute).is_ok());
        if !sent {
            self.shared.minutes_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the state of the store.
    #[must_use]
    pub fn history(&self) -> History {
        let trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        History { minutes_lost: self.shared.minutes_lost.load(Ordering::Relaxed), trouble }
    }

    /// Writes the queued minutes within a limit, for the server's stop.
    pub fn finish(&mut self) {
        self.minutes = None;
        let Some(thread) = self.thread.take() else { return };
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < FINISH_LIMIT {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // A panic of the thread was already reported by the panic hook.
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
    trouble: ProblemSink,
    shared: Arc<Shared>,
    store: Option<Store>,
    is_well: bool,
}

impl Writer {
    fn run(mut self, handover_gate: &HandoverGate, minutes: &Receiver<Minute>) {
        let Some(waiting) = self.wait_for(handover_gate, minutes) else { return };
        // The file is created before the first minute, so that readers can open it.
        let opened = self.open();
        self.tell(&opened);
        for minute in &waiting {
            self.keep(minute);
        }
        while let Ok(minute) = minutes.recv() {
            self.keep(&minute);
        }
    }

    /// Returns the minutes that arrived while waiting. Returns `None` if the server stops before
    /// the turn comes; then nothing is written.
    fn wait_for(
        &self,
        handover_gate: &HandoverGate,
        minutes: &Receiver<Minute>,
    ) -> Option<Vec<Minute>> {
        let mut waiting = Vec::new();
        while !handover_gate.wait(TURN_LOOK) {
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
                    "cannot read the history `{}`; renamed it, and created a new one",
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

    /// Reports changes only: the first failure, and the first success after it.
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
                format!("{text}; new minutes are lost until the history can be written")
            };
            (self.trouble)(&news);
        }
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}
