//! Several processes, read repeatedly: the work of `samovar spy` between two screens.

use crate::activity::{Activity, activity, cpu_ns};
use crate::engine::Files;
use crate::error::Error;
use crate::heap::HeapUse;
use crate::names::Names;
use crate::peek::Peek;
use crate::processes;
use crate::reader::{Reader, Reading};
use crate::stack::Stack;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Interval of the search for new processes, and for threads that come and go.
const NEWS_EVERY: Duration = Duration::from_secs(1);

/// Number of successive torn reads after which a process is opened again: it may have started
/// another program.
const TORN_MAX: u32 = 20;

/// Maximum number of processes watched at once.
pub const WATCHED_MAX: usize = 4096;

/// Watched processes and the facts about them.
#[derive(Debug)]
pub struct Watch {
    /// `None`: all PHP processes of the machine whose command line contains `pattern`.
    wanted: Option<Vec<u32>>,
    pattern: String,
    watched: BTreeMap<u32, Watched>,
    /// Processes that cannot be read, and the reasons.
    refused: BTreeMap<u32, String>,
    files: Files,
    counts: Counts,
    news_at: Option<Instant>,
    /// Variables that are read with each stack.
    peeks: Vec<Peek>,
    /// Whether the size of the heap is read with each stack.
    reads_heap: bool,
}

#[derive(Debug)]
struct Watched {
    reader: Reader,
    names: Names,
    cpu_ns: HashMap<u32, u64>,
    /// Heap of each thread at its last sample.
    heap: HashMap<u32, HeapUse>,
    torn_in_a_row: u32,
    opened: Instant,
}

/// Results of all reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stacks.
    pub stacks: u64,
    /// Threads that ran no PHP code.
    pub idle: u64,
    /// Stacks that changed at each attempt, and are not shown.
    pub torn: u64,
    /// Processes that ended.
    pub gone: u64,
    /// Stacks of threads whose heap cannot be read, although it is wanted.
    pub without_heap: u64,
}

/// A thread that runs PHP code.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Process id.
    pub pid: u32,
    /// Its calls.
    pub stack: Stack,
    /// Its activity.
    pub activity: Activity,
    /// CPU time since it was last seen, in nanoseconds.
    pub cpu_ns: u64,
    /// The request that it serves, if a web server has set one.
    pub request: Option<String>,
    /// Values of the variables of [`Watch::peek`]. `None`: there is no such variable, or it has no
    /// value.
    pub peeked: Vec<Option<String>>,
    /// Size of PHP's heap, if it is read.
    pub heap: Option<HeapUse>,
    /// Bytes by which the heap has grown in this request since the thread was last seen.
    pub grown_bytes: u64,
}

impl Watch {
    /// Watches these processes. Returns an error if one of them cannot be read.
    pub fn of(pids: &[u32]) -> Result<Self, Error> {
        let mut watch = Self::new(Some(pids.to_vec()));
        for pid in pids {
            watch.open(*pid)?;
        }
        Ok(watch)
    }

    /// Watches the PHP processes of the machine, including those that start later.
    pub fn all() -> Self {
        let mut watch = Self::new(None);
        watch.look_for_news();
        watch
    }

    /// Watches the PHP processes whose command line contains this text, including those that start
    /// later.
    pub fn matching(pattern: &str) -> Self {
        let mut watch = Self { pattern: pattern.to_owned(), ..Self::new(None) };
        watch.look_for_news();
        watch
    }

    fn new(wanted: Option<Vec<u32>>) -> Self {
        let (watched, refused) = (BTreeMap::new(), BTreeMap::new());
        Self {
            wanted,
            pattern: String::new(),
            watched,
            refused,
            files: Files::default(),
            counts: Counts::default(),
            news_at: None,
            peeks: Vec::new(),
            reads_heap: false,
        }
    }

    /// Reads these variables with each stack; at most [`PEEKS_MAX`](crate::PEEKS_MAX).
    pub fn peek(&mut self, peeks: Vec<Peek>) {
        for watched in self.watched.values_mut() {
            watched.reader.peek(&peeks);
        }
        self.peeks = peeks;
    }

    /// Reads the size of the heap with each stack.
    pub fn read_heap(&mut self) {
        self.reads_heap = true;
    }

    fn open(&mut self, pid: u32) -> Result<(), Error> {
        let mut reader = Reader::open(pid, &mut self.files)?;
        reader.peek(&self.peeks);
        // Forks of one program share only the facts about shared memory; each has its own cache.
        let (names, cpu_ns, heap) = (Names::new(), HashMap::new(), HashMap::new());
        let (torn_in_a_row, opened) = (0, Instant::now());
        let watched = Watched { reader, names, cpu_ns, heap, torn_in_a_row, opened };
        self.watched.insert(pid, watched);
        Ok(())
    }

    /// Results of all reads so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The processes watched now, with the version of their PHP.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &'static str)> {
        self.watched.iter().map(|(pid, watched)| (*pid, watched.reader.engine().version()))
    }

    /// Processes that look like PHP and cannot be read, with the reasons.
    pub fn refused(&self) -> impl Iterator<Item = (u32, &str)> {
        self.refused.iter().map(|(pid, why)| (*pid, why.as_str()))
    }

    /// Whether no process is left to watch.
    pub fn is_over(&self) -> bool {
        self.wanted.is_some() && self.watched.is_empty()
    }

    /// Reads each thread of each process once.
    pub fn look(&mut self) -> Vec<Sample> {
        if self.news_at.is_none_or(|at| at.elapsed() > NEWS_EVERY) {
            self.look_for_news();
        }
        let mut samples = Vec::new();
        let mut ended = Vec::new();
        for (pid, watched) in &mut self.watched {
            match watched.reader.read(&mut watched.names) {
                Ok(readings) => {
                    for reading in readings {
                        let reads_heap = self.reads_heap;
                        samples.extend(watched.take(*pid, reading, reads_heap, &mut self.counts));
                    }
                }
                Err(_) => ended.push(*pid),
            }
        }
        for pid in ended {
            self.watched.remove(&pid);
            self.counts.gone += 1;
        }
        samples
    }

    /// Finds new processes, and opens known processes again that may have changed.
    fn look_for_news(&mut self) {
        self.news_at = Some(Instant::now());
        let is_stale = |watched: &Watched| {
            watched.torn_in_a_row >= TORN_MAX
                || (watched.reader.has_threads() && watched.opened.elapsed() > NEWS_EVERY)
        };
        let stale: Vec<_> =
            self.watched.iter().filter(|(_, w)| is_stale(w)).map(|(p, _)| *p).collect();
        for pid in stale {
            let before = self.watched.remove(&pid);
            if self.open(pid).is_err() {
                self.counts.gone += 1;
            } else if let (Some(now), Some(before)) = (self.watched.get_mut(&pid), before) {
                (now.cpu_ns, now.heap) = (before.cpu_ns, before.heap);
            }
        }
        if self.wanted.is_some() {
            return;
        }
        let there = processes::that_may_be_php();
        self.refused.retain(|pid, _| there.contains(pid));
        for pid in there {
            let is_known = self.watched.contains_key(&pid) || self.refused.contains_key(&pid);
            if is_known || self.watched.len() >= WATCHED_MAX {
                continue;
            }
            if !self.pattern.is_empty() && !processes::command_line(pid).contains(&self.pattern) {
                continue;
            }
            match self.open(pid) {
                Ok(()) | Err(Error::Gone { .. } | Error::NotPhp { .. }) => {}
                Err(error) => {
                    self.refused.insert(pid, error.to_string());
                }
            }
        }
    }
}

impl Watched {
    /// Heap of a thread, and its growth since the last sample. The first sample has none.
    fn look_at_heap(&mut self, thread: u32) -> (Option<HeapUse>, u64) {
        let Some(heap) = self.reader.heap(thread) else { return (None, 0) };
        let before = self.heap.insert(thread, heap);
        (Some(heap), before.map_or(0, |before| heap.growth_since(before)))
    }

    fn take(
        &mut self,
        pid: u32,
        reading: Reading,
        reads_heap: bool,
        counts: &mut Counts,
    ) -> Option<Sample> {
        match reading {
            Reading::Stack(stack) => {
                counts.stacks += 1;
                self.torn_in_a_row = 0;
                let activity = activity(pid, stack.thread);
                let used = cpu_ns(pid, stack.thread).unwrap_or(0);
                let before = self.cpu_ns.insert(stack.thread, used).unwrap_or(used);
                let request = self.reader.request(stack.thread);
                let peeked = self.reader.peeked(stack.thread);
                let (heap, grown_bytes) =
                    if reads_heap { self.look_at_heap(stack.thread) } else { (None, 0) };
                counts.without_heap += u64::from(reads_heap && heap.is_none());
                let cpu_ns = used.saturating_sub(before);
                Some(Sample { pid, stack, activity, cpu_ns, request, peeked, heap, grown_bytes })
            }
            Reading::Idle { thread } => {
                counts.idle += 1;
                self.torn_in_a_row = 0;
                // CPU time used until it runs PHP code again does not belong to that code.
                self.cpu_ns.insert(thread, cpu_ns(pid, thread).unwrap_or(0));
                if reads_heap {
                    self.look_at_heap(thread);
                }
                None
            }
            Reading::Torn { .. } => {
                counts.torn += 1;
                self.torn_in_a_row += 1;
                None
            }
        }
    }
}
