//! Thread that stores minutes and answers queries, and the interface to it for other threads.
//!
//! Adding a sample holds a lock only for the time of one addition. Only this thread waits for the
//! disk. A minute is lost, and counted, if the disk is too slow for it.

use crate::current_minute::{Minute, Running};
use crate::push::Pusher;
use crate::query::{ProfileResult, Sources};
use crate::sample::Sample;
use crate::store::{Store, StoreError, StoreLimits};
use samovar_insight::{Finished, HandoverGate, Scene, Witness};
use samovar_outbound::ProblemSink;
use samovar_wire::ProfileQuestion;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of minutes and queries that wait for the thread.
const JOBS_MAX: usize = 32;
/// Timeout for a query.
const RESPONSE_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time that the server's stop waits for the last minute.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
const FINISH_LOOK: Duration = Duration::from_millis(2);

/// Size and location of the stored data.
pub struct Options {
    /// Path of the file; `None`: in memory.
    pub path: Option<PathBuf>,
    /// Maximum size in bytes.
    pub bytes_max: u64,
    /// Maximum age of the data.
    pub keep: Duration,
    /// Samples per second of each busy worker.
    pub hertz: u32,
    /// Whether ends of requests are reported to [`Witness`].
    pub is_told: bool,
    /// Name of the default pool if there are several pools.
    pub default_pool: &'static str,
    /// Called with a message when storing fails or recovers.
    pub trouble: ProblemSink,
    /// Until this turn comes, the file belongs to another server.
    pub handover_gate: HandoverGate,
    /// Pusher that also sends the minutes elsewhere.
    pub push: Option<Arc<Pusher>>,
}

type Reply = Box<dyn FnOnce(ProfileResult) + Send>;

enum Job {
    Keep(Minute),
    Ask(Box<ProfileQuestion>, Reply),
}

/// Profiles of the workers.
#[derive(Debug)]
pub struct Profiles {
    running: Arc<Mutex<Running>>,
    jobs: Mutex<Option<SyncSender<Job>>>,
    minutes_lost: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Samples that were only half added at a panic are still usable.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiles {
    /// Starts the thread, which opens the file. A failure is reported once, and again only after a
    /// recovery.
    pub fn start(options: Options) -> std::io::Result<Profiles> {
        let now = samovar_insight::now();
        let running =
            Arc::new(Mutex::new(Running::new(options.is_told, options.default_pool, now)));
        let (sender, jobs) = sync_channel(JOBS_MAX);
        let (store, waiting) = (None, (!options.handover_gate.is_open()).then(Vec::new));
        let running_too = Arc::clone(&running);
        let keeper =
            Keeper { running: running_too, options, run: now, store, waiting, is_well: true };
        let thread = std::thread::Builder::new()
            .name("profiles".to_owned())
            .spawn(move || keeper.run(&jobs))?;
        Ok(Profiles {
            running,
            jobs: Mutex::new(Some(sender)),
            minutes_lost: AtomicU64::new(0),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Notes the generation of a worker, identified by its pool and incarnation.
    pub fn knows(&self, pool: &str, life: u32, generation: u64) {
        lock(&self.running).knows(pool, life, generation);
    }

    /// Adds a sample.
    pub fn add(&self, sample: &Sample<'_>) {
        lock(&self.running).add(sample, samovar_insight::now());
    }

    /// Notes the state of a request (id, script, path) of this pool at the time it became slow.
    pub fn is_slow(&self, pool: &str, request: (&str, &str, &str), scene: Scene) {
        lock(&self.running).is_slow(pool, request, scene, samovar_insight::now());
    }

    /// Closes the minute that is over, if there is one, and passes it to the thread. Called
    /// regularly.
    pub fn handover_gate(&self) {
        let minute = lock(&self.running).close_minute(samovar_insight::now());
        if let Some(minute) = minute {
            self.keep(minute);
        }
    }

    fn keep(&self, minute: Minute) {
        let sent = |jobs: &SyncSender<Job>| jobs.try_send(Job::Keep(minute)).is_ok();
        if !lock(&self.jobs).as_ref().is_some_and(sent) {
            self.minutes_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the number of minutes lost because the disk was too slow.
    pub fn minutes_lost(&self) -> u64 {
        self.minutes_lost.load(Ordering::Relaxed)
    }

    /// Answers a query on the thread, through `reply`. Rejects it at once if the thread's queue is
    /// full.
    pub fn ask(
        &self,
        question: ProfileQuestion,
        reply: impl FnOnce(ProfileResult) + Send + 'static,
    ) {
        let jobs = lock(&self.jobs).clone();
        let job = Job::Ask(Box::new(question), Box::new(reply));
        let refused = match jobs {
            Some(jobs) => jobs.try_send(job).err().map(|error| match error {
                TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
            }),
            None => Some(job),
        };
        if let Some(Job::Ask(_, reply)) = refused {
            reply(ProfileResult::refused("too many queries are pending\nhint: try again"));
        }
    }

    /// Answers a query and waits for the result.
    pub fn respond(&self, question: ProfileQuestion) -> ProfileResult {
        let (tell, told) = sync_channel(1);
        self.ask(question, move |response| {
            // An error means that the caller no longer waits, which is fine.
            let _ = tell.send(response);
        });
        told.recv_timeout(RESPONSE_LIMIT).unwrap_or_else(|_| {
            let limit = RESPONSE_LIMIT.as_secs();
            ProfileResult::refused(format!(
                "no response within {limit} s\nhint: query a shorter period"
            ))
        })
    }

    /// Stores the current, incomplete minute and ends the thread, for the server's stop.
    pub fn finish(&self) {
        let last = lock(&self.running).close_minute(u64::MAX);
        if let Some(minute) = last {
            self.keep(minute);
        }
        *lock(&self.jobs) = None;
        let Some(thread) = lock(&self.thread).take() else { return };
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < FINISH_LIMIT {
            std::thread::sleep(FINISH_LOOK);
        }
        if thread.is_finished() {
            // A panic of the thread was already reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Witness for Profiles {
    fn ended(&self, finished: &Finished, route: &str) -> Option<Scene> {
        lock(&self.running).ended(finished, route)
    }

    fn looks_for(&self, marks: &mut Vec<u64>) {
        marks.extend(lock(&self.running).marks());
    }

    fn saw(&self, mark: u64, route: &str) {
        lock(&self.running).saw_marked(mark, route);
    }

    fn counted(&self, common: &Finished, by_worker: &[(u32, u64)], route: &str) {
        lock(&self.running).counted(common, by_worker, route);
    }
}

/// State of the thread.
struct Keeper {
    running: Arc<Mutex<Running>>,
    options: Options,
    run: u64,
    store: Option<Store>,
    /// Minutes in memory that are also written to the file as soon as its turn comes.
    waiting: Option<Vec<Minute>>,
    is_well: bool,
}

impl Keeper {
    fn run(mut self, jobs: &Receiver<Job>) {
        let opened = self.open().map(|_| ());
        self.tell(&opened);
        while let Ok(job) = jobs.recv() {
            self.move_in();
            match job {
                Job::Keep(minute) => {
                    if let Some(push) = &self.options.push {
                        push.put(&minute, samovar_insight::now());
                    }
                    self.keep(&minute);
                    if let Some(waiting) = self.waiting.as_mut().filter(|w| w.len() < JOBS_MAX) {
                        waiting.push(minute);
                    }
                }
                Job::Ask(question, reply) => reply(self.respond(&question)),
            }
        }
        self.move_in();
        if let Some(push) = &self.options.push {
            push.finish();
        }
    }

    fn keep(&mut self, minute: &Minute) {
        let kept = self.open().and_then(|store| store.put(minute));
        // The file may have been moved away, so it is opened again. A store in memory is kept:
        // there is no other copy.
        if kept.is_err() && self.options.path.is_some() {
            self.store = None;
        }
        self.tell(&kept);
    }

    /// Writes the minutes from memory to the file, once the previous server has released it.
    fn move_in(&mut self) {
        if let Some(waiting) = self.waiting.take_if(|_| self.options.handover_gate.is_open()) {
            self.store = None;
            for minute in &waiting {
                self.keep(minute);
            }
        }
    }

    fn open(&mut self) -> Result<&mut Store, StoreError> {
        let Options { path, bytes_max, keep, .. } = &self.options;
        if let Some(store) = self.store.take() {
            return Ok(self.store.insert(store));
        }
        let limits = StoreLimits { bytes_max: *bytes_max, keep: *keep };
        let path = path.as_deref().filter(|_| self.waiting.is_none());
        let store = Store::open(path, limits, self.run)?;
        Ok(self.store.insert(store))
    }

    fn respond(&mut self, question: &ProfileQuestion) -> ProfileResult {
        // The lock is held only for the copy, because threads that add samples wait for it.
        let running = lock(&self.running).copy(|_, _| true);
        let (run, hertz) = (self.run, self.options.hertz);
        let default_pool = self.options.default_pool;
        match self.open() {
            Ok(store) => {
                let now = samovar_insight::now();
                Sources { store, running: &running, now, run, hertz, default_pool }
                    .respond(question)
            }
            Err(error) => ProfileResult::refused(error.to_string()),
        }
    }

    /// Reports changes only: the first failure, and the first success after it.
    fn tell(&mut self, outcome: &Result<(), StoreError>) {
        if outcome.is_ok() == self.is_well {
            return;
        }
        self.is_well = outcome.is_ok();
        (self.options.trouble)(&match outcome {
            Ok(()) => "profiles are stored again".to_owned(),
            Err(error) => format!("{error}; profiles are lost until it can be written"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::At;
    use samovar_insight::Model;
    use samovar_spy::profile::Weight;

    fn options(path: Option<PathBuf>) -> Options {
        Options {
            path,
            bytes_max: 1 << 20,
            keep: Duration::from_hours(24),
            hertz: 49,
            is_told: false,
            default_pool: "default",
            trouble: Box::new(|_| {}),
            handover_gate: HandoverGate::now(),
            push: None,
        }
    }

    fn bring(profiles: &Profiles) {
        profiles.add(&Sample {
            pool: "",
            generation: 1,
            model: Model::Script,
            is_boot: false,
            request: Some(("id", "/index.php", "/a")),
            at: At::NoCode,
            weight: Weight { samples: 1, wall_ns: 1, cpu_ns: 1 },
        });
    }

    #[test]
    fn profiles_of_earlier_run_are_found_by_next_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profiles.sqlite");
        let profiles = Profiles::start(options(Some(path.clone()))).expect("a thread");
        bring(&profiles);
        let response = profiles.respond(ProfileQuestion::default());
        assert_eq!((response.now.profile.total().samples, response.error), (1, None));
        profiles.finish();
        let late = profiles.respond(ProfileQuestion::default());
        assert!(late.error.is_some(), "the thread has ended");
        let profiles = Profiles::start(options(Some(path))).expect("a thread");
        let response = profiles.respond(ProfileQuestion::default());
        assert_eq!(response.now.profile.total().samples, 1);
        profiles.finish();
    }

    #[test]
    fn unwritable_file_is_reported_and_queries_return_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tell, told) = std::sync::mpsc::channel();
        let mut options = options(Some(folder.path().join("missing/profiles.sqlite")));
        options.trouble = Box::new(move |trouble| drop(tell.send(trouble.to_owned())));
        let profiles = Profiles::start(options).expect("a thread");
        let trouble = told.recv().expect("it is said");
        assert!(trouble.contains("missing/profiles.sqlite"), "{trouble}");
        bring(&profiles);
        assert!(profiles.respond(ProfileQuestion::default()).error.is_some());
        profiles.finish();
    }
}
