//! The capacity plan of this server. It is computed on a thread of its own: reading a year of
//! minutes takes longer than a page may.

use samovar_plan::{Collector, Input, Options, Plan, Problem, server};
use samovar_wire::Status;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Minimum time for which a plan is used.
const GOOD_FOR_MIN: Duration = Duration::from_mins(15);
/// A plan is used for this many times the time that it took.
const COST_FACTOR: u32 = 200;
/// Days to look ahead.
const HORIZON: i64 = 365;

type Outcome = Result<Arc<Plan>, Problem>;

/// State of the plan.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    /// The first plan is not complete yet.
    Computing,
    /// The last plan, and its time in seconds since 1970.
    Done { at: u64, plan: Outcome },
}

/// The last plan, and the thread that computes the next one.
#[derive(Debug, Default)]
pub(crate) struct Planner(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    running: Option<(Instant, JoinHandle<Outcome>)>,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    at: u64,
    made: Instant,
    good_for: Duration,
    plan: Outcome,
}

impl Planner {
    /// Returns the last plan. Starts a thread for a new one if it is old; `prepare` returns its
    /// computation, and is not called otherwise.
    pub(crate) fn get<M>(&self, now: u64, prepare: impl FnOnce() -> M) -> Planned
    where
        M: FnOnce() -> Result<Plan, Problem> + Send + 'static,
    {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((begun, thread)) = state.running.take() {
            if thread.is_finished() {
                let plan = thread.join().unwrap_or_else(|_| {
                    let hint = "please report it: samovar plan prints the place";
                    Err(Problem::new("the computation of the plan failed", hint))
                });
                let good_for = GOOD_FOR_MIN.max(begun.elapsed() * COST_FACTOR);
                state.last = Some(Last { at: now, made: Instant::now(), good_for, plan });
            } else {
                state.running = Some((begun, thread));
            }
        }
        let is_old = state.last.as_ref().is_none_or(|last| last.made.elapsed() >= last.good_for);
        if is_old && state.running.is_none() {
            let thread = std::thread::Builder::new().name("plan".into());
            let make = prepare();
            match thread.spawn(move || make().map(Arc::new)) {
                Ok(thread) => state.running = Some((Instant::now(), thread)),
                Err(error) => {
                    let problem = Problem::new(
                        format!("cannot start a thread for the plan: {error}"),
                        "raise the limit of processes of the server's user",
                    );
                    return Planned::Done { at: now, plan: Err(problem) };
                }
            }
        }
        match &state.last {
            Some(last) => Planned::Done { at: last.at, plan: last.plan.clone() },
            None => Planned::Computing,
        }
    }
}

/// Computes the plan of a server from its history on disk.
pub(crate) fn compute(status: &Status, now: u64) -> Result<Plan, Problem> {
    if status.history_file.is_empty() {
        return Err(server::no_history());
    }
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let mut all = Collector::default();
    server::history(Path::new(&status.history_file), now, server::own_cpu(status), &mut all)
        .map_err(|error| {
            Problem::new(error.to_string(), "check the file that `insight.store` names")
        })?;
    let others = status.capacity.cores_others;
    let input = Input { machine: server::machine(status), history: all.finish(), others };
    samovar_plan::plan(&[input], &Options { horizon: HORIZON, now, ..Options::default() })
}

#[cfg(test)]
mod tests {
    use super::{Planned, Planner, compute};
    use samovar_plan::{Plan, Problem};
    use samovar_testkit::eventually;
    use std::sync::mpsc::channel;

    type Make = fn() -> Result<Plan, Problem>;

    #[test]
    fn plan_is_computed_once_and_kept() {
        let planner = Planner::default();
        let (go, gate) = channel::<()>();
        let first = planner.get(100, || {
            move || {
                gate.recv().expect("a sender");
                Err(Problem::new("no data", "wait"))
            }
        });
        assert!(matches!(first, Planned::Computing), "{first:?}");
        let again = planner.get(101, || -> Make { unreachable!("one thread at a time") });
        assert!(matches!(again, Planned::Computing), "{again:?}");
        go.send(()).expect("a receiver");
        let (at, plan) = eventually("the plan", || {
            match planner.get(102, || -> Make { unreachable!("it is new") }) {
                Planned::Done { at, plan } => Some((at, plan)),
                Planned::Computing => None,
            }
        });
        assert_eq!((at, plan.expect_err("a problem").message()), (102, "no data"));
    }

    #[test]
    fn panic_of_computation_is_a_problem() {
        let planner = Planner::default();
        planner.get(1, || || panic!("planted"));
        let plan = eventually("the end", || {
            match planner.get(2, || -> Make { unreachable!("it is new") }) {
                Planned::Done { plan, .. } => Some(plan),
                Planned::Computing => None,
            }
        });
        assert!(plan.is_err());
    }

    #[test]
    fn server_without_history_has_a_hint() {
        let problem = compute(&samovar_wire::Status::default(), 1).expect_err("no history");
        assert!(problem.hint().contains("insight.store"), "{problem}");
    }
}
