//! Overrun diagnosis: when the deadline of a request has passed, finds out where its worker waits
//! and logs it. Then the worker is signalled to end the request, unless it is killed at once.
//!
//! Separate threads do this, because reading about a process that hangs in the kernel may hang,
//! too. One thread waits for the result for a limited time; others read. The signal is sent after
//! the inspection, which it would disturb, or after that time. Does not kill workers that ignore
//! the signal: the supervisor does, after the inspection.

pub(crate) mod blocked;
mod pending;
mod place;
mod readers;

use crate::os;
use pending::Pending;
use place::Places;
use readers::{NoResponse, Readers, Reading};
use samovar_log::Throttle;
use samovar_ring::{Overrun, Run};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing::{info, warn};

/// Maximum number of queued cases. Beyond it, workers are signalled without an inspection.
const CASES_MAX: usize = 64;
/// Maximum time for which a worker's signal waits for the inspection.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// Maximum time for which the end of the server waits for the queued cases.
const END_LIMIT: Duration = Duration::from_secs(3);
/// Maximum number of lines per period; further ones are counted.
const LINES_MAX: u16 = 10;

/// A request whose deadline has passed.
#[derive(Debug)]
pub(crate) struct Case {
    /// Name of the worker's pool; empty if there is only one pool.
    pub(crate) pool: String,
    /// The run that is late.
    pub(crate) run: Run,
    /// Process id and pidfd of the worker: the id may belong to another process when the signal is
    /// sent. `None` if the script has ended meanwhile, for example because its client disconnected.
    pub(crate) worker: Option<(i32, Arc<OwnedFd>)>,
    pub(crate) overrun: Overrun,
    /// Method and target.
    pub(crate) request: String,
    /// The request's id.
    pub(crate) id: String,
    /// Time since a worker took the request.
    pub(crate) ran: Duration,
    /// Time that the script has to end before its worker is killed.
    pub(crate) grace: Duration,
}

/// Queue of cases. When it is dropped, the queued cases are still logged, within a time limit: the
/// server's last lines name the scripts that it did not wait for.
#[derive(Debug)]
pub(crate) struct OverrunDiagnosis {
    /// `None` only while this is dropped.
    cases: Option<SyncSender<Case>>,
    pending: Pending,
    /// Disconnected when the thread has ended. The lock only makes the struct shareable.
    end: Mutex<Receiver<()>>,
}

impl OverrunDiagnosis {
    /// Starts the thread, which ends when this is dropped.
    pub(crate) fn start() -> io::Result<OverrunDiagnosis> {
        let (sender, cases) = sync_channel(CASES_MAX);
        let (ended, end) = sync_channel(0);
        let pending = Pending::default();
        let inspected = pending.clone();
        std::thread::Builder::new().name("overrun".into()).spawn(move || {
            let _ended: SyncSender<()> = ended;
            hold(&cases, &inspected);
        })?;
        Ok(OverrunDiagnosis { cases: Some(sender), pending, end: Mutex::new(end) })
    }

    /// Queues a case. Does not block.
    pub(crate) fn hand_in(&self, case: Case) {
        let Some(cases) = &self.cases else { return case.tell_worker() };
        self.pending.begin(&case.pool, case.run);
        if let Err(TrySendError::Full(case) | TrySendError::Disconnected(case)) =
            cases.try_send(case)
        {
            // The supervisor's thread, which adds actions, is here.
            drop(self.pending.end(&case.pool, case.run));
            case.tell_worker();
        }
    }

    /// Calls the action after the inspection of a run, if there is one that has not ended. Returns
    /// whether there is one. The action comes at the latest when the readers of the queued cases
    /// have reached their time limits.
    pub(crate) fn after(
        &self,
        pool: &str,
        run: Run,
        action: impl FnOnce() + Send + 'static,
    ) -> bool {
        self.pending.after(pool, run, Box::new(action))
    }
}

impl Drop for OverrunDiagnosis {
    fn drop(&mut self) {
        drop(self.cases.take());
        if let Ok(end) = self.end.get_mut() {
            // Disconnected: all cases are logged.
            let _ = end.recv_timeout(END_LIMIT);
        }
    }
}

impl Case {
    /// Signals the worker to end the script. If the script has no time to end, only the kill
    /// follows: a signalled script could end before it, and its worker would live on.
    fn tell_worker(&self) {
        if let Some((_, process)) = self.worker.as_ref().filter(|_| !self.grace.is_zero()) {
            os::have_look(process);
        }
    }
}

fn hold(cases: &Receiver<Case>, pending: &Pending) {
    let (lines, mut readers) = (Throttle::of(LINES_MAX), Readers::new(reading, LOOK_LIMIT));
    while let Ok(case) = cases.recv() {
        let _named = samovar_log::pool::enter(&case.pool);
        let said = lines.pass().map(|suppressed| {
            let gone = || ("its script has ended".to_owned(), String::new());
            let look = |worker| readers.ask(worker).unwrap_or_else(unseen);
            (case.worker.clone().map_or_else(gone, look), suppressed)
        });
        match pending.end(&case.pool, case.run) {
            // The time to end is over already.
            Some(kill) => kill(),
            None => case.tell_worker(),
        }
        if let Some(((scene, place), suppressed)) = said {
            say(&case, &scene, &place, suppressed);
        } else {
            info!(request_id = case.id, "a request exceeded its time limit");
        }
    }
}

/// Makes a function that finds the system call in which a process waits, and its PHP calls.
fn reading() -> Reading<(i32, Arc<OwnedFd>), (String, String)> {
    let mut places = Places::default();
    Box::new(move |(pid, process)| (blocked::scene(*pid, process), places.of(*pid)))
}

fn unseen(why: NoResponse) -> (String, String) {
    let scene = match why {
        NoResponse::Late => {
            "unknown: reading /proc hangs, for example during disk I/O in the kernel"
        }
        NoResponse::NoReader => "unknown: all readers hang",
    };
    (scene.to_owned(), "unknown".to_owned())
}

fn say(case: &Case, scene: &str, place: &str, suppressed: u64) {
    let Case { worker, overrun, request, id, ran, .. } = case;
    let pid = worker.as_ref().map(|(pid, _)| *pid);
    let limit = overrun.name();
    let next = if case.grace.is_zero() {
        "its worker is killed"
    } else {
        "its script is signalled to end; after timeouts.grace its worker is killed"
    };
    warn!(
        pid,
        request,
        request_id = id,
        limit,
        ?ran,
        blocked = scene,
        php = place,
        suppressed,
        "a request exceeded its time limit: {next}\nhint: {}",
        match overrun {
            Overrun::Response =>
                "the response made no progress within timeouts.response, or the client \
                 disconnected; call Samovar\\extend_deadline() for more time, or \
                 fastcgi_finish_request() to complete the response",
            Overrun::Request =>
                "give pages more time in [timeouts.path], or a single request with \
                 Samovar\\extend_deadline()",
            Overrun::After =>
                "use a queue for work that takes more than timeouts.post_response after the \
                 response",
            Overrun::Drain =>
                "the server stops and waits for timeouts.drain; use a queue for work that takes \
                 longer",
        }
    );
}
