//! Thread that receives graphs from the workers, adds them up and stores them. Queries read its
//! state under a lock.

use super::graph::Graph;
use super::store::Store;
use super::trace::Trace;
use crate::memory_file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use samovar_channel::{GraphEnd, Heard};
use samovar_insight::{HandoverGate, route_by_path};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum size of one request's graph: the most that a worker writes.
const GRAPH_BYTES_MAX: u64 = 8 << 20;
/// Maximum number of routes per pool and day.
const ROUTES_MAX: usize = 200;
/// Name for all routes beyond the limit.
const OTHER_ROUTES: &str = "(other routes)";
/// Number of days to keep: a week, and the week before it.
const DAYS_MAX: u64 = 15;
/// Number of days before a day that it is compared with.
const WEEK: u64 = 7;
const DAY_S: u64 = 86_400;
/// Interval between two writes of new data.
const KEEP_EVERY: Duration = Duration::from_secs(10);
/// Maximum time that the thread waits for a graph before it checks whether it must end.
const LOOK_MS: i64 = 250;
/// Maximum number of graphs received in a row.
const GRAPHS_AT_ONCE: usize = 64;
/// Maximum time that the server's stop waits for the last write.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
const FINISH_LOOK: Duration = Duration::from_millis(2);

/// Source and storage of graphs.
pub struct CallsOptions {
    /// Socket of each pool's workers, by pool name. The default pool has an empty name.
    pub graphs: Vec<(String, GraphEnd)>,
    /// Path of the file; `None`: in memory.
    pub path: Option<PathBuf>,
    /// Maximum size in bytes.
    pub bytes_max: u64,
    /// Called with a message when storing fails or recovers.
    pub trouble: Box<dyn Fn(&str) + Send>,
    /// Until this turn comes, the file belongs to another server.
    pub handover_gate: HandoverGate,
}

/// Counters of the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallsReport {
    /// Graphs added.
    pub graphs: u64,
    /// Messages that were not valid graphs.
    pub refused: u64,
}

/// Result of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// Name of the pool; empty for the default pool.
    pub pool: String,
    /// Days with data, latest first; in days since 1970.
    pub days: Vec<u64>,
    /// Day of the graph.
    pub day: u64,
    /// Routes of this day with their number of traced requests.
    pub routes: Vec<(String, u64)>,
    /// Route of the graph.
    pub route: String,
    /// Call graph of the route on this day.
    pub graph: Graph,
    /// Call graph of the same route over the seven days before; its `requests` is 0 if there were
    /// none.
    pub before: Graph,
}

#[derive(Debug)]
struct State {
    store: Store,
    /// One entry per pool.
    pools: Vec<Today>,
    day: u64,
    report: CallsReport,
}

/// Graphs of one pool for the current day.
#[derive(Debug)]
struct Today {
    pool: String,
    /// Graph by route, and whether it has changes that are not stored.
    routes: HashMap<String, (Graph, bool)>,
}

impl Today {
    fn of(pool: String) -> Today {
        Today { pool, routes: HashMap::new() }
    }

    fn add(&mut self, trace: &Trace, store: &Store, day: u64) {
        let mut name = String::new();
        let named = Some(&*trace.route).filter(|route| !route.is_empty());
        let route = named.unwrap_or_else(|| route_by_path(&trace.script, &trace.path, &mut name));
        let is_known = self.routes.contains_key(route);
        let route = if is_known || self.routes.len() < ROUTES_MAX { route } else { OTHER_ROUTES };
        if !self.routes.contains_key(route) {
            // Data of this day from an earlier run of the server is continued.
            let kept = store.get(&self.pool, day, route).ok().flatten().unwrap_or_default();
            self.routes.insert(route.to_owned(), (kept, false));
        }
        if let Some((graph, is_new)) = self.routes.get_mut(route) {
            graph.add(trace);
            *is_new = true;
        }
    }
}

/// Call graphs of requests.
#[derive(Debug)]
pub struct Calls {
    state: Arc<Mutex<State>>,
    ends: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked while holding the lock leaves sums that are still usable.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// `at` is the pool's index in `pools`.
    fn add(&mut self, at: usize, trace: &Trace, now: u64) -> rusqlite::Result<()> {
        let mut kept = Ok(());
        if self.day != now / DAY_S {
            kept = self.keep();
            self.pools.iter_mut().for_each(|today| today.routes.clear());
            self.day = now / DAY_S;
        }
        self.pools[at].add(trace, &self.store, self.day);
        self.report.graphs += 1;
        kept
    }

    /// Adds the sums in memory to those that the file has for this day, and switches to the file.
    fn move_into(&mut self, store: Store) {
        for Today { pool, routes } in &mut self.pools {
            for (route, (graph, is_new)) in routes {
                let mut sum = store.get(pool, self.day, route).ok().flatten().unwrap_or_default();
                sum.merge(graph);
                (*graph, *is_new) = (sum, true);
            }
        }
        self.store = store;
    }

    fn keep(&mut self) -> rusqlite::Result<()> {
        for Today { pool, routes } in &mut self.pools {
            for (route, (graph, is_new)) in routes.iter_mut().filter(|(_, (_, is_new))| *is_new) {
                self.store.put(pool, self.day, route, graph)?;
                *is_new = false;
            }
        }
        Ok(())
    }

    fn select(
        &mut self,
        pool: &str,
        day: Option<u64>,
        route: Option<&str>,
    ) -> rusqlite::Result<Selected> {
        // The result includes graphs received a moment ago.
        self.keep()?;
        let days = self.store.days(pool)?;
        let day = day.or_else(|| days.first().copied()).unwrap_or(self.day);
        let routes = self.store.routes(pool, day)?;
        let first = || routes.first().map(|(name, _)| name.clone());
        let route = route.map(str::to_owned).or_else(first).unwrap_or_default();
        let graph = self.store.get(pool, day, &route)?.unwrap_or_default();
        let mut before = Graph::default();
        let week = (day.saturating_sub(WEEK), day);
        self.store.between(pool, week, &route, |graph| before.merge(graph))?;
        Ok(Selected { pool: pool.to_owned(), days, day, routes, route, graph, before })
    }
}

impl Calls {
    /// Opens the store and starts the thread.
    pub fn start(options: CallsOptions) -> std::io::Result<Calls> {
        let CallsOptions { graphs, path, bytes_max, trouble, handover_gate } = options;
        let mut file = path.map(|path| (path, bytes_max));
        let opened =
            file.take_if(|_| handover_gate.is_open()).and_then(|file| open(&file, &trouble));
        let in_memory = || Store::open(None, bytes_max, DAYS_MAX).map_err(std::io::Error::other);
        let store = opened.map_or_else(in_memory, Ok)?;
        let report = CallsReport::default();
        let (names, graphs): (Vec<String>, Vec<GraphEnd>) = graphs.into_iter().unzip();
        let pools = names.into_iter().map(Today::of).collect();
        let state = State { store, pools, day: samovar_insight::now() / DAY_S, report };
        let state = Arc::new(Mutex::new(state));
        let ends = Arc::new(AtomicBool::new(false));
        let keeper = Keeper {
            graphs,
            state: Arc::clone(&state),
            ends: Arc::clone(&ends),
            trouble,
            is_well: true,
            later: file.map(|file| (handover_gate, file)),
        };
        let thread = std::thread::Builder::new()
            .name("call graphs".to_owned())
            .spawn(move || keeper.run())?;
        Ok(Calls { state, ends, thread: Mutex::new(Some(thread)) })
    }

    /// Returns the call graph of a pool's route on a day (days since 1970). `None` is the latest
    /// day, or the route with the most traced requests. The default pool has an empty name.
    pub fn select(
        &self,
        pool: &str,
        day: Option<u64>,
        route: Option<&str>,
    ) -> Result<Selected, String> {
        let selected = lock(&self.state).select(pool, day, route);
        selected.map_err(|error| format!("cannot read the call graphs: {error}"))
    }

    /// Returns the counters.
    #[must_use]
    pub fn report(&self) -> CallsReport {
        lock(&self.state).report
    }

    /// Stores all received graphs and ends the thread, for the server's stop.
    pub fn finish(&self) {
        self.ends.store(true, Ordering::SeqCst);
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

/// State of the thread.
struct Keeper {
    /// One socket per pool.
    graphs: Vec<GraphEnd>,
    state: Arc<Mutex<State>>,
    ends: Arc<AtomicBool>,
    trouble: Box<dyn Fn(&str) + Send>,
    is_well: bool,
    /// The file that another server still uses, and the turn to wait for.
    later: Option<(HandoverGate, (PathBuf, u64))>,
}

/// Opens the file. If that fails, reports it and returns `None`.
fn open((path, bytes_max): &(PathBuf, u64), trouble: &dyn Fn(&str)) -> Option<Store> {
    let opened = Store::open(Some(path), *bytes_max, DAYS_MAX);
    let say = |error: &rusqlite::Error| {
        trouble(&format!(
            "cannot open the call graphs `{}`: {error}; they are stored in memory\nhint: make the \
             file writable for the server's user",
            path.display()
        ));
    };
    opened.inspect_err(say).ok()
}

impl Keeper {
    fn run(mut self) {
        let mut kept = Instant::now();
        loop {
            let ends = self.ends.load(Ordering::SeqCst);
            if !ends {
                self.wait();
            }
            (0..self.graphs.len()).for_each(|at| self.take_in(at));
            if let Some((_, file)) =
                self.later.take_if(|(handover_gate, _)| handover_gate.is_open())
                && let Some(store) = open(&file, &self.trouble)
            {
                lock(&self.state).move_into(store);
            }
            if ends || kept.elapsed() >= KEEP_EVERY {
                kept = Instant::now();
                let outcome = lock(&self.state).keep();
                self.tell(&outcome);
            }
            if ends {
                return;
            }
        }
    }

    fn wait(&self) {
        let limit = Timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
        let of = |graphs| PollFd::new(graphs, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = self.graphs.iter().map(of).collect();
        let has_left = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::HUP);
        match poll(&mut fds, Some(&limit)) {
            // All senders of a socket have closed it. A pause avoids a busy loop.
            Ok(1..) if fds.iter().any(has_left) => {
                std::thread::sleep(Duration::from_millis(LOOK_MS.unsigned_abs()));
            }
            // After an error the thread also checks for work.
            Ok(_) | Err(_) => {}
        }
    }

    fn take_in(&mut self, at: usize) {
        for _ in 0..GRAPHS_AT_ONCE {
            let (note, file) = match self.graphs[at].hear_now() {
                Ok(Some(Heard::Message(note, file))) => (note, file),
                Ok(Some(Heard::Garbled(_))) => {
                    lock(&self.state).report.refused += 1;
                    continue;
                }
                Ok(Some(Heard::End) | None) | Err(_) => return,
            };
            let trace = file
                .and_then(|file| memory_file::read(file, note.bytes, GRAPH_BYTES_MAX))
                .and_then(|text| Trace::read(&text));
            let mut state = lock(&self.state);
            match trace {
                Some(trace) => {
                    let outcome = state.add(at, &trace, samovar_insight::now());
                    drop(state);
                    self.tell(&outcome);
                }
                None => state.report.refused += 1,
            }
        }
    }

    /// Reports changes only: the first failure, and the first success after it.
    fn tell(&mut self, outcome: &rusqlite::Result<()>) {
        if outcome.is_ok() == self.is_well {
            return;
        }
        self.is_well = outcome.is_ok();
        (self.trouble)(&match outcome {
            Ok(()) => "call graphs are stored again".to_owned(),
            Err(error) => format!("cannot store call graphs: {error}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Order, rows};
    use super::*;

    fn state() -> State {
        let store = Store::open(None, 1 << 20, DAYS_MAX).expect("memory");
        let pools = vec![Today::of(String::new()), Today::of("api".to_owned())];
        State { store, pools, day: 0, report: CallsReport::default() }
    }

    /// A request of the route `shop` that spent this time in `total`.
    fn trace(total_ns: u64) -> Trace {
        let text = format!(
            "samovar-graph 1\nq\tid\tGET\t/a\t/index.php\tshop\nr\t0\t2\t0\t0\n\
             f\t0\t1\t{total_ns}\t0\t{total_ns}\t0\t0\t0\t0\t\t(request)\n\
             f\t0\t3\t{total_ns}\t{total_ns}\t{total_ns}\t{total_ns}\t0\t0\t7\t/a.php\ttotal\n\
             e\t0\t1\t3\t{total_ns}\t{total_ns}\t0\nend\n"
        );
        Trace::read(text.as_bytes()).expect("a graph")
    }

    /// Growth of `total` per request on a day; `None`: there is no data to compare with.
    fn growth(state: &mut State, day: u64) -> Option<f64> {
        let selected = state.select("", Some(day), Some("shop")).expect("it is in memory");
        let rows = rows(&selected.graph, &selected.before, Order::Growth);
        rows.iter().find(|row| row.function.name == "total").and_then(|row| row.growth)
    }

    #[test]
    fn growth_compares_with_seven_days_before() {
        let mut state = state();
        // Ten requests a day, slower from the 20th on. Data older than a week does not count.
        for (day, ns) in [(10, 90_000), (13, 1_000), (15, 3_000), (20, 7_000), (21, 7_000)] {
            for request in 0..10 {
                state.add(0, &trace(ns), day * DAY_S + request).expect("it is in memory");
            }
        }
        assert_eq!(growth(&mut state, 10), None, "nothing was before");
        assert_eq!(growth(&mut state, 13), Some(1_000.0 - 90_000.0));
        assert_eq!(
            growth(&mut state, 20),
            Some(7_000.0 - 2_000.0),
            "the mean of the 13th and the 15th"
        );
        // Mean of the 15th and the 20th.
        let mean = 5_000.0;
        assert_eq!(growth(&mut state, 21), Some(7_000.0 - mean), "the 13th is eight days away");
        let selected = state.select("", None, None).expect("it is in memory");
        assert_eq!((selected.day, &*selected.route), (21, "shop"), "the latest day is shown");
        assert_eq!((selected.graph.requests, selected.before.requests), (10, 20));
        assert_eq!(selected.days, [21, 20, 15, 13, 10]);
        // The order by growth lists it first.
        let first = rows(&selected.graph, &selected.before, Order::Growth);
        assert_eq!(first[0].function.name, "total");
    }

    #[test]
    fn growth_of_new_function_is_its_whole_time() {
        let mut state = state();
        let before = trace(5_000);
        let mut now = trace(5_000);
        now.functions[1].name = "new".to_owned();
        state.add(0, &before, DAY_S).expect("it is in memory");
        state.add(0, &now, 2 * DAY_S).expect("it is in memory");
        let selected = state.select("", Some(2), Some("shop")).expect("it is in memory");
        let rows = rows(&selected.graph, &selected.before, Order::Growth);
        assert_eq!((&*rows[0].function.name, rows[0].growth), ("new", Some(5_000.0)));
        // Functions that no longer exist are not listed for that day.
        assert!(rows.iter().all(|row| row.function.name != "total"));
    }

    #[test]
    fn pools_have_separate_days_and_routes() {
        let mut state = state();
        for (at, ns, day) in [(0, 1_000, 3), (1, 5_000, 2), (1, 7_000, 3)] {
            state.add(at, &trace(ns), day * DAY_S).expect("it is in memory");
        }
        let mut told = |pool: &str| {
            let Selected { days, route, graph, before, .. } =
                state.select(pool, None, None).expect("it is in memory");
            (days, route, graph.requests, before.requests)
        };
        assert_eq!(told(""), (vec![3], "shop".to_owned(), 1, 0));
        assert_eq!(told("api"), (vec![3, 2], "shop".to_owned(), 1, 1));
        assert_eq!(told("other"), (vec![], String::new(), 0, 0));
    }

    #[test]
    fn file_of_first_version_is_migrated() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("graphs.sqlite");
        let old = rusqlite::Connection::open(&file).expect("a file");
        old.execute_batch(
            "CREATE TABLE graphs (day INTEGER NOT NULL, route TEXT NOT NULL,
             requests INTEGER NOT NULL, graph BLOB NOT NULL,
             PRIMARY KEY (day, route)) WITHOUT ROWID;
             INSERT INTO graphs VALUES (3, 'shop', 7, x'00'); PRAGMA user_version = 1;",
        )
        .expect("the first version");
        drop(old);
        for _ in 0..2 {
            let store = Store::open(Some(&file), 1 << 20, DAYS_MAX).expect("it is taken over");
            assert_eq!(store.days("").expect("readable"), [3]);
            assert_eq!(store.routes("", 3).expect("readable"), [("shop".to_owned(), 7)]);
            assert_eq!(store.days("api").expect("readable"), [0; 0]);
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
