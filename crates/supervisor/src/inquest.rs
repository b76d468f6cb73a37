//! A request's time is over: what its worker waits for is looked up and logged, then the worker is told to end it.
//!
//! On threads of their own, because reading about a process that hangs in the kernel may hang, too: one asks, and waits for a
//! moment, others read. The signal comes after the look, which it would disturb, or after that moment; whoever does not heed it
//! is killed by the supervisor, for which nobody here is needed.

pub(crate) mod blocked;
mod place;
mod readers;

use crate::os;
use place::Places;
use readers::{NoAnswer, Readers, Reading};
use samovar_log::Throttle;
use samovar_ring::Overrun;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;
use tracing::{info, warn};

/// Workers that may be waiting to be looked at; beyond, they are told without a look.
const CASES_MAX: usize = 64;
/// How long a worker's signal waits for the look at it.
const LOOK_LIMIT: Duration = Duration::from_secs(1);
/// Lines at a time; beyond, they are counted.
const LINES_MAX: u16 = 10;

/// A request that has to end.
#[derive(Debug)]
pub(crate) struct Case {
    /// Whose worker it is; empty where there is one pool.
    pub(crate) pool: String,
    /// Its worker's number, and the same process: the number may be another's by the time that it is told. None: the script
    /// has ended meanwhile, as one does that is told of its client's loss.
    pub(crate) worker: Option<(i32, Arc<OwnedFd>)>,
    pub(crate) overrun: Overrun,
    /// Method and target.
    pub(crate) request: String,
    /// The request's id.
    pub(crate) id: String,
    /// For how long a worker had it.
    pub(crate) ran: Duration,
}

/// Where cases are handed in.
#[derive(Debug)]
pub(crate) struct Inquest(SyncSender<Case>);

impl Inquest {
    /// Starts the thread, which ends when this is dropped.
    pub(crate) fn start() -> io::Result<Inquest> {
        let (sender, cases) = sync_channel(CASES_MAX);
        std::thread::Builder::new().name("inquest".into()).spawn(move || hold(&cases))?;
        Ok(Inquest(sender))
    }

    /// Returns at once.
    pub(crate) fn hand_in(&self, case: Case) {
        if let Err(TrySendError::Full(case) | TrySendError::Disconnected(case)) =
            self.0.try_send(case)
        {
            case.tell_worker();
        }
    }
}

impl Case {
    fn tell_worker(&self) {
        if let Some((_, process)) = &self.worker {
            os::have_look(process);
        }
    }
}

fn hold(cases: &Receiver<Case>) {
    let (lines, mut readers) = (Throttle::of(LINES_MAX), Readers::new(reading, LOOK_LIMIT));
    while let Ok(case) = cases.recv() {
        let _named = samovar_log::pool::enter(&case.pool);
        let said = lines.pass().map(|suppressed| {
            let gone = || ("its script has ended meanwhile".to_owned(), String::new());
            let look = |worker| readers.ask(worker).unwrap_or_else(unseen);
            (case.worker.clone().map_or_else(gone, look), suppressed)
        });
        case.tell_worker();
        if let Some(((scene, place), suppressed)) = said {
            say(&case, &scene, &place, suppressed);
        } else {
            info!(request_id = case.id, "the time of a request is over");
        }
    }
}

/// What a process waits for, and where PHP stands in it.
fn reading() -> Reading<(i32, Arc<OwnedFd>), (String, String)> {
    let mut places = Places::default();
    Box::new(move |(pid, process)| (blocked::scene(*pid, process), places.of(*pid)))
}

fn unseen(why: NoAnswer) -> (String, String) {
    let scene = match why {
        NoAnswer::Late => "unknown: reading about it hangs, as where the kernel waits for a disk",
        NoAnswer::NoReader => "unknown: reading about others hangs",
    };
    (scene.to_owned(), "unknown".to_owned())
}

fn say(case: &Case, scene: &str, place: &str, suppressed: u64) {
    let Case { worker, overrun, request, id, ran, .. } = case;
    let pid = worker.as_ref().map(|(pid, _)| *pid);
    let limit = overrun.name();
    warn!(
        pid,
        request,
        request_id = id,
        limit,
        ?ran,
        blocked = scene,
        php = place,
        suppressed,
        "the time of a request is over: its script is told to end, and its worker killed if it does not within \
         timeouts.grace\nhint: {}",
        match overrun {
            Overrun::Answer =>
                "nothing was heard of it for timeouts.answer, or its client had gone; Samovar\\extend_deadline() asks for more, \
                 fastcgi_finish_request() completes the answer",
            Overrun::Request =>
                "[timeouts.path] gives pages more time, Samovar\\extend_deadline() a single request",
            Overrun::After =>
                "a queue is the place for work of more than timeouts.after behind an answer",
            Overrun::Drain =>
                "the server stops, and waits for timeouts.drain; a queue is the place for work that takes longer",
        }
    );
}
