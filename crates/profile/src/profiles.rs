//! The thread that keeps minutes and answers questions, and what others have of it.
//!
//! Whoever brings samples holds a lock for the time of one addition; a disk is waited for on the thread alone. A minute that the
//! disk is too slow for is lost, and counted.

use crate::push::Pusher;
use crate::question::{Answer, Sources};
use crate::running::{Minute, Running};
use crate::sample::Sample;
use crate::store::{Store, StoreError, StoreLimits};
use samovar_insight::{Finished, Scene, Turn, Witness};
use samovar_wire::ProfileQuestion;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minutes and questions that wait for the thread.
const JOBS_MAX: usize = 32;
/// How long an answer is waited for.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// How long the server's end waits for the last minute.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
const FINISH_LOOK: Duration = Duration::from_millis(2);

/// What goes wrong with the file, for whoever says so.
pub type Trouble = Box<dyn Fn(&str) + Send>;

/// How much is kept, and where.
pub struct Options {
    /// The file; `None`: in memory.
    pub path: Option<PathBuf>,
    /// Bytes at most.
    pub bytes_max: u64,
    /// How long.
    pub keep: Duration,
    /// Looks per second at each busy worker.
    pub hertz: u32,
    /// Whether somebody tells of requests' ends.
    pub is_told: bool,
    /// What the default pool is called where there are others.
    pub default_pool: &'static str,
    /// Whom to tell what goes wrong.
    pub trouble: Trouble,
    /// The file is another server's until it has come.
    pub turn: Turn,
    /// Who sends minutes elsewhere, too.
    pub push: Option<Arc<Pusher>>,
}

type Reply = Box<dyn FnOnce(Answer) + Send>;

enum Job {
    Keep(Minute),
    Ask(Box<ProfileQuestion>, Reply),
}

/// What workers did.
#[derive(Debug)]
pub struct Profiles {
    running: Arc<Mutex<Running>>,
    jobs: Mutex<Option<SyncSender<Job>>>,
    minutes_lost: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Samples that a panic has left half added up are still samples.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiles {
    /// Starts the thread, which opens the file; what fails is told once until it works again.
    pub fn start(options: Options) -> std::io::Result<Profiles> {
        let now = crate::now();
        let running =
            Arc::new(Mutex::new(Running::new(options.is_told, options.default_pool, now)));
        let (sender, jobs) = sync_channel(JOBS_MAX);
        let (store, waiting) = (None, (!options.turn.has_come()).then(Vec::new));
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

    /// A worker of that pool, in that life, is of that generation.
    pub fn knows(&self, pool: &str, life: u32, generation: u64) {
        lock(&self.running).knows(pool, life, generation);
    }

    /// Adds a look at a worker.
    pub fn add(&self, sample: &Sample<'_>) {
        lock(&self.running).add(sample, crate::now());
    }

    /// Notes what a request of that pool (id, script, path) was at when it became slow.
    pub fn is_slow(&self, pool: &str, request: (&str, &str, &str), scene: Scene) {
        lock(&self.running).is_slow(pool, request, scene, crate::now());
    }

    /// Time has passed: hands on the minute that is over.
    pub fn turn(&self) {
        let minute = lock(&self.running).close_minute(crate::now());
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

    /// Minutes that are lost because the disk was too slow.
    pub fn minutes_lost(&self) -> u64 {
        self.minutes_lost.load(Ordering::Relaxed)
    }

    /// Answers, on the thread, through `reply`; at once if it has too much to do.
    pub fn ask(&self, question: ProfileQuestion, reply: impl FnOnce(Answer) + Send + 'static) {
        let jobs = lock(&self.jobs).clone();
        let job = Job::Ask(Box::new(question), Box::new(reply));
        let refused = match jobs {
            Some(jobs) => jobs.try_send(job).err().map(|error| match error {
                TrySendError::Full(job) | TrySendError::Disconnected(job) => job,
            }),
            None => Some(job),
        };
        if let Some(Job::Ask(_, reply)) = refused {
            reply(Answer::refused("too much is asked at once\nhint: ask again"));
        }
    }

    /// Answers, and waits for it.
    pub fn answer(&self, question: ProfileQuestion) -> Answer {
        let (tell, told) = sync_channel(1);
        self.ask(question, move |answer| {
            // Nobody minds if he has left.
            let _ = tell.send(answer);
        });
        told.recv_timeout(ANSWER_LIMIT).unwrap_or_else(|_| {
            let limit = ANSWER_LIMIT.as_secs();
            Answer::refused(format!("no answer within {limit} s\nhint: ask for a shorter time"))
        })
    }

    /// The end: the minute that is not over is kept all the same, now or never.
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
            // A panic of the thread has been told by the panic hook.
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

/// The thread.
struct Keeper {
    running: Arc<Mutex<Running>>,
    options: Options,
    run: u64,
    store: Option<Store>,
    /// Minutes that the file is to have when its turn has come; meanwhile they are in memory only.
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
                        push.put(&minute, crate::now());
                    }
                    self.keep(&minute);
                    if let Some(waiting) = self.waiting.as_mut().filter(|w| w.len() < JOBS_MAX) {
                        waiting.push(minute);
                    }
                }
                Job::Ask(question, reply) => reply(self.answer(&question)),
            }
        }
        self.move_in();
        if let Some(push) = &self.options.push {
            push.finish();
        }
    }

    fn keep(&mut self, minute: &Minute) {
        let kept = self.open().and_then(|store| store.put(minute));
        // A file may have been moved away; what is in memory is nowhere else.
        if kept.is_err() && self.options.path.is_some() {
            self.store = None;
        }
        self.tell(&kept);
    }

    /// The server before this one has let the file go: what was kept in memory meanwhile goes there.
    fn move_in(&mut self) {
        if let Some(waiting) = self.waiting.take_if(|_| self.options.turn.has_come()) {
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

    fn answer(&mut self, question: &ProfileQuestion) -> Answer {
        // Held for the time of the copy: who brings samples waits for it.
        let running = lock(&self.running).copy(|_, _| true);
        let (run, hertz) = (self.run, self.options.hertz);
        let default_pool = self.options.default_pool;
        match self.open() {
            Ok(store) => {
                let now = crate::now();
                Sources { store, running: &running, now, run, hertz, default_pool }.answer(question)
            }
            Err(error) => Answer::refused(error.to_string()),
        }
    }

    /// Says what changes: the first failure, and the first success after it.
    fn tell(&mut self, outcome: &Result<(), StoreError>) {
        if outcome.is_ok() == self.is_well {
            return;
        }
        self.is_well = outcome.is_ok();
        (self.options.trouble)(&match outcome {
            Ok(()) => "profiles are kept again".to_owned(),
            Err(error) => format!("{error}; minutes of profiles are lost until it can be written"),
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
            turn: Turn::now(),
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
    fn what_a_run_has_brought_the_next_one_finds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profiles.sqlite");
        let profiles = Profiles::start(options(Some(path.clone()))).expect("a thread");
        bring(&profiles);
        let answer = profiles.answer(ProfileQuestion::default());
        assert_eq!((answer.now.profile.total().samples, answer.error), (1, None));
        profiles.finish();
        let late = profiles.answer(ProfileQuestion::default());
        assert!(late.error.is_some(), "nobody is there any more");
        let profiles = Profiles::start(options(Some(path))).expect("a thread");
        let answer = profiles.answer(ProfileQuestion::default());
        assert_eq!(answer.now.profile.total().samples, 1);
        profiles.finish();
    }

    #[test]
    fn a_file_that_cannot_be_written_costs_history_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (tell, told) = std::sync::mpsc::channel();
        let mut options = options(Some(folder.path().join("missing/profiles.sqlite")));
        options.trouble = Box::new(move |trouble| drop(tell.send(trouble.to_owned())));
        let profiles = Profiles::start(options).expect("a thread");
        let trouble = told.recv().expect("it is said");
        assert!(trouble.contains("missing/profiles.sqlite"), "{trouble}");
        bring(&profiles);
        assert!(profiles.answer(ProfileQuestion::default()).error.is_some());
        profiles.finish();
    }
}
