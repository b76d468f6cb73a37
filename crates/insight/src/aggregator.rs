//! Aggregation thread: batches from the front in, figures for readers and minutes for the history
//! out.

use crate::aggregate::{Aggregate, Limits};
use crate::bounds::Bounds;
use crate::handover_gate::HandoverGate;
use crate::intake::Outlet;
use crate::observation::Witness;
use crate::pinba::listener::{Listening, PinbaIn};
use crate::redaction::Redaction;
use crate::releases::{Release, Releases};
use crate::sink::{Sink, Tally};
use crate::store::{Event, EventKind, Historian, History, Minute, ProblemSink, StoreLimits};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum time to wait for a batch before the thread checks the clock.
const LOOK: Duration = Duration::from_millis(500);
/// Message about a full table of routes.
const ROUTES_FULL: &str = "the table of routes is full: further routes are counted as (other)\n\
    hint: raise insight.routes_max, or name routes with Samovar\\route()";
/// Maximum number of events per minute that are kept for the history.
const EVENTS_MAX: usize = 1_000;
/// Maximum number of events in memory, for reading without the history.
const RECENT_EVENTS_MAX: usize = 200;
/// Maximum number of starts and reloads in memory: other events do not push them out.
const STARTS_MAX: usize = 32;
/// Maximum number of parts of minutes that wait for the thread.
const PARTS_MAX: usize = 2 * EVENTS_OF_KIND_MAX;
/// Maximum number of events of one kind per minute: many crashes must not push out the reload
/// before them.
const EVENTS_OF_KIND_MAX: usize = 20;

/// Options of the history.
pub struct HistoryOptions {
    /// Path of the file.
    pub path: PathBuf,
    /// Limits of the stored data.
    pub limits: StoreLimits,
    /// Called with a message when the history fails or recovers.
    pub trouble: ProblemSink,
}

/// Options of the aggregation thread.
#[derive(Default)]
pub struct Options {
    /// History, if there is one.
    pub history: Option<HistoryOptions>,
    /// Labels of the releases.
    pub releases: Releases,
    /// Bounds of exported histograms.
    pub bounds: Bounds,
    /// Names whose values are redacted everywhere.
    pub redaction: Redaction,
    /// Receivers of each single request.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Listener for other machines' requests, if there is one.
    pub pinba_in: Option<PinbaIn>,
    /// Returns the CPU time that the server itself has used, ns.
    pub cpu: Option<Clock>,
    /// Sampler of the workers; it is notified of each request.
    pub witness: Option<Arc<dyn Witness>>,
    /// Called with a message when the table of routes becomes full.
    pub routes_full: Option<Notice>,
    /// The history is written from this turn on.
    pub handover_gate: HandoverGate,
}

/// Reports a message to the server's log.
pub type Notice = Box<dyn Fn(&str) + Send>;

/// Returns the current value of a clock, ns.
pub type Clock = Box<dyn Fn() -> u64 + Send>;

/// All figures of a running server, shared by readers and exporters.
#[derive(Debug)]
pub struct Insight {
    shared: Arc<Shared>,
    history_path: Option<PathBuf>,
    thread: Mutex<Option<JoinHandle<()>>>,
    listening: Option<Listening>,
    tallies: Vec<Arc<Tally>>,
    /// Minimum wall time of requests that are sent whole, ns; now, and usually.
    whole_from: Arc<AtomicU64>,
    whole_from_ns: u64,
    releases: Releases,
}

#[derive(Debug)]
struct Shared {
    figures: Mutex<Aggregate>,
    events: Mutex<Vec<Event>>,
    recent: Mutex<VecDeque<Event>>,
    starts: Mutex<VecDeque<Event>>,
    /// Releases that are not in the history yet.
    begun: Mutex<Vec<Release>>,
    /// Parts of minutes that a reload has ended, for the history.
    parts: Mutex<Vec<Minute>>,
    events_by_kind: [AtomicU64; EventKind::COUNT],
    history: Mutex<Option<History>>,
    lost: AtomicU64,
}

/// Returns the current time in seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Figures that were only half added at a panic are still usable.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Insight {
    /// Starts the thread, and the history's thread if there is one.
    pub fn start(
        outlet: Outlet,
        limits: Limits,
        history: Option<HistoryOptions>,
    ) -> std::io::Result<Insight> {
        Insight::start_with(outlet, limits, Options { history, ..Options::default() })
    }

    /// Like [`Insight::start`], with importers and exporters.
    pub fn start_with(
        outlet: Outlet,
        limits: Limits,
        options: Options,
    ) -> std::io::Result<Insight> {
        let Options { redaction, mut sinks, pinba_in, cpu, witness, routes_full, .. } = options;
        let (history, handover_gate) = (options.history, options.handover_gate);
        let releases = options.releases;
        let figures = Aggregate::redacting(limits, redaction).witnessed(witness);
        let figures = Mutex::new(figures.labelled(releases.clone()).bounded(options.bounds));
        let history_path = history.as_ref().map(|h| h.path.clone());
        let historian = match history {
            Some(h) => Some(Historian::start_at(handover_gate, h.path, h.limits, h.trouble)?),
            None => None,
        };
        let shared = Arc::new(Shared {
            figures,
            events: Mutex::default(),
            recent: Mutex::default(),
            starts: Mutex::default(),
            begun: Mutex::default(),
            parts: Mutex::default(),
            events_by_kind: Default::default(),
            history: Mutex::default(),
            lost: AtomicU64::new(0),
        });
        let wanted = sinks.iter().map(|sink| sink.wants_from_ns()).min();
        let whole_from_ns = wanted.map_or(limits.slow_ns, |ns| ns.min(limits.slow_ns));
        outlet.want_whole_from(whole_from_ns);
        let whole_from = outlet.whole_from();
        let mut tallies: Vec<_> = sinks.iter().map(|sink| sink.tally()).collect();
        tallies.extend(pinba_in.as_ref().map(PinbaIn::tally));
        let of_listener = Arc::clone(&shared);
        let listening = pinba_in
            .map(|p| p.start(move |packet| lock(&of_listener.figures).take_packet(packet, now())))
            .transpose()?;
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("insight".to_owned()).spawn(move || {
            let notices = (cpu.as_ref(), routes_full.as_ref());
            of_thread.run(&outlet, historian, &mut sinks, notices);
        })?;
        let thread = Mutex::new(Some(thread));
        Ok(Insight {
            shared,
            history_path,
            thread,
            listening,
            tallies,
            whole_from,
            whole_from_ns,
            releases,
        })
    }

    /// Passes every single request to the sinks from the next batch on, also those that no sink
    /// needs usually; or ends that.
    pub fn want_all(&self, is_wanted: bool) {
        let ns = if is_wanted { 0 } else { self.whole_from_ns };
        self.whole_from.store(ns, Ordering::Relaxed);
    }

    /// Returns the counters of each importer and exporter.
    #[must_use]
    pub fn tallies(&self) -> &[Arc<Tally>] {
        &self.tallies
    }

    /// Returns the figures, locked while they are read: the aggregation thread waits, the front
    /// does not.
    pub fn figures(&self) -> MutexGuard<'_, Aggregate> {
        lock(&self.shared.figures)
    }

    /// Returns the number of requests that are not counted because the thread was too slow.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Returns the state of the history, if there is one.
    #[must_use]
    pub fn history(&self) -> Option<History> {
        lock(&self.shared.history).clone()
    }

    /// Returns the path of the history, if there is one; [`crate::store::Store::reader`] reads it.
    #[must_use]
    pub fn history_path(&self) -> Option<&Path> {
        self.history_path.as_deref()
    }

    /// Records an event. All events are counted; of each kind, a limited number per minute is kept.
    /// A start or a reload also divides the figures of the minute.
    pub fn event(&self, kind: EventKind, text: String) {
        self.event_at(now(), kind, text);
    }

    /// Records a start or a reload, and the releases that serve from now on.
    pub fn release(&self, kind: EventKind, text: String, begun: Vec<Release>) {
        let at = now();
        let mut new = lock(&self.shared.begun);
        for release in begun {
            let release = Release { at, ..release };
            if new.len() < EVENTS_MAX {
                new.push(release.clone());
            }
            self.releases.begin(release);
        }
        drop(new);
        self.event_at(at, kind, text);
    }

    fn event_at(&self, at: u64, kind: EventKind, text: String) {
        self.shared.events_by_kind[kind as usize].fetch_add(1, Ordering::Relaxed);
        let event = Event { at, kind, text };
        let minute = event.at - event.at % 60;
        let is_same = |other: &&Event| other.kind == kind && other.at >= minute;
        let so_far = lock(&self.shared.recent).iter().filter(is_same).count();
        if so_far >= EVENTS_OF_KIND_MAX {
            return;
        }
        if event.is_release() {
            self.shared.close_part(event.at);
            let mut starts = lock(&self.shared.starts);
            if starts.len() == STARTS_MAX {
                starts.pop_front();
            }
            starts.push_back(event.clone());
        }
        self.remember(event.clone());
        let mut events = lock(&self.shared.events);
        if events.len() < EVENTS_MAX {
            events.push(event);
        }
    }

    fn remember(&self, event: Event) {
        let mut recent = lock(&self.shared.recent);
        if recent.len() == RECENT_EVENTS_MAX {
            recent.pop_front();
        }
        recent.push_back(event);
    }

    /// Returns the number of events of each kind.
    pub fn events_by_kind(&self) -> impl Iterator<Item = (EventKind, u64)> {
        EventKind::all().zip(self.shared.events_by_kind.iter().map(|n| n.load(Ordering::Relaxed)))
    }

    /// Returns the last events since the start, latest last.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        lock(&self.shared.recent).iter().cloned().collect()
    }

    /// Returns the start and the last reloads, latest last.
    #[must_use]
    pub fn starts(&self) -> Vec<Event> {
        lock(&self.shared.starts).iter().cloned().collect()
    }

    /// Returns the releases of all pools since the start.
    #[must_use]
    pub fn releases(&self) -> &Releases {
        &self.releases
    }

    /// Stops listening for other machines' requests: another server takes over.
    pub fn stop_listening(&self) {
        if let Some(listening) = &self.listening {
            listening.finish();
        }
    }

    /// Waits for the end of the thread. The front must have dropped its end of the channel. Writes
    /// the last minute, and lets the sinks send or drop their queued data.
    pub fn finish(&self) {
        self.stop_listening();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(
        &self,
        outlet: &Outlet,
        mut historian: Option<Historian>,
        sinks: &mut [Box<dyn Sink>],
        (cpu, routes_full): (Option<&Clock>, Option<&Notice>),
    ) {
        let mut was_full = false;
        let mut looked = Instant::now();
        let mut cpu_ns = cpu.map_or(0, |cpu| cpu());
        loop {
            let taken = outlet.take(LOOK, |batch| {
                let now = now();
                self.close_minute(now, historian.as_ref());
                let mut figures = lock(&self.figures);
                if let Some(cpu) = &cpu {
                    let before = std::mem::replace(&mut cpu_ns, cpu());
                    figures.take_front(cpu_ns.saturating_sub(before), now);
                }
                figures.take_and(batch, now, |seen| {
                    for sink in sinks.iter_mut() {
                        sink.take(seen);
                    }
                });
                let is_full = figures.routes_are_full(now);
                drop(figures);
                if let Some(notice) = routes_full.filter(|_| is_full && !was_full) {
                    notice(ROUTES_FULL);
                }
                was_full = is_full;
            });
            self.lost.store(outlet.lost(), Ordering::Relaxed);
            match taken {
                Ok(true) => {}
                Ok(false) => self.close_minute(now(), historian.as_ref()),
                Err(_) => break,
            }
            if !sinks.is_empty() && looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look(sinks);
            }
        }
        self.look(sinks);
        for sink in sinks.iter_mut() {
            sink.finish();
        }
        // The current minute is written although it is not complete.
        self.close_part(now());
        self.close_minute(now(), historian.as_ref());
        if let Some(historian) = &mut historian {
            historian.finish();
        }
    }

    fn look(&self, sinks: &mut [Box<dyn Sink>]) {
        let (figures, lost, now) = (lock(&self.figures), self.lost.load(Ordering::Relaxed), now());
        for sink in sinks.iter_mut() {
            sink.look(&figures, lost, now);
        }
    }

    /// Ends the current part of the minute, so that requests before and after `now` are separate.
    fn close_part(&self, now: u64) {
        let ended = lock(&self.figures).close_part(now);
        let mut parts = lock(&self.parts);
        if parts.len() < PARTS_MAX {
            parts.extend(ended);
        }
    }

    fn close_minute(&self, now: u64, historian: Option<&Historian>) {
        let ended = lock(&self.figures).close_minute(now);
        let parts = std::mem::take(&mut *lock(&self.parts));
        let Some(historian) = historian else { return };
        // The store adds the parts of a minute.
        for part in parts {
            historian.put(part);
        }
        let events = std::mem::take(&mut *lock(&self.events));
        let releases = std::mem::take(&mut *lock(&self.begun));
        if ended.is_some() || !events.is_empty() || !releases.is_empty() {
            let happened = Minute { at: self::now(), ..Minute::default() };
            historian.put(Minute { events, releases, ..ended.unwrap_or(happened) });
        }
        *lock(&self.history) = Some(historian.history());
    }
}

#[cfg(test)]
mod tests {
    use super::{HistoryOptions, Insight};
    use crate::aggregate::Limits;
    use crate::finished::{Finished, Numbers};
    use crate::intake::intake;
    use crate::store::{EventKind, Store, StoreLimits};

    #[test]
    fn requests_from_front_are_added_and_written_at_the_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("history.sqlite");
        let history = HistoryOptions {
            path: path.clone(),
            limits: StoreLimits { bytes_max: 1 << 24, days_max: 1 },
            trouble: Box::new(|text| panic!("{text}")),
        };
        let (mut front, outlet) = intake();
        let limits = Limits { routes_max: 10, slow_ns: u64::MAX };
        let insight = Insight::start(outlet, limits, Some(history)).expect("a thread");
        for _ in 0..1_000 {
            let numbers = Numbers { status: 200, ..Numbers::default() };
            front.put(&Finished { numbers, path: "/", ..Finished::default() });
        }
        front.flush();
        insight.event(EventKind::Start, "a test".to_owned());
        drop(front);
        insight.finish();
        assert_eq!((insight.figures().total().requests, insight.lost()), (1_000, 0));
        assert_eq!(insight.history_path(), Some(&*path));
        assert_eq!(insight.events().len(), 1);
        let store = Store::reader(&path).expect("a history");
        let minutes = store.minutes(0, u64::from(u32::MAX)).expect("minutes");
        assert_eq!(minutes.iter().map(|(.., m)| m.requests).sum::<u64>(), 1_000);
        assert_eq!(store.events(0, u64::from(u32::MAX)).expect("events").len(), 1);
    }
}
