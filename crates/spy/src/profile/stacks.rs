//! Stacks and their weights, added up. The other files of this folder write them in several
//! formats.

use crate::activity::Activity;
use crate::stack::{Frame, Function};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of different stacks; further ones are added to one stack that is marked as such.
pub const STACKS_MAX: usize = 100_000;

/// Maximum number of different functions.
pub const FUNCTIONS_MAX: usize = 100_000;

/// Maximum number of calls kept of one stack: the outermost and the innermost ones.
pub const DEPTH_MAX: usize = 512;

/// Weight of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of samples.
    pub samples: u64,
    /// Wall time that the samples represent.
    pub wall_ns: u64,
    /// CPU time used in that time.
    pub cpu_ns: u64,
}

/// A call in a profile: the number of a function, and a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// Index in `Profile::functions`.
    pub function: u32,
    /// The line that was executed; 0 if there is none.
    pub line: u32,
}

/// Selection of a profile's stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// All of them.
    #[default]
    All,
    /// Stacks that ran, or were ready to run and waited for a processor.
    OnCpu,
    /// Stacks that waited in the kernel.
    Waiting,
}

/// Marks on top of a stack that do not mean a wait.
const WORK_MARKS: [&str; 4] = [ROLLBACK, RESET, NO_CODE, LEFT_OUT];

/// Mark of a worker that returns to its image.
pub const ROLLBACK: &str = "[rollback]";
/// Mark of a worker of another model between two requests.
pub const RESET: &str = "[reset]";
/// Mark of a worker that has a request but runs no PHP code.
pub const NO_CODE: &str = "[no PHP code]";
pub(super) const LEFT_OUT: &str = "[stacks left out]";

/// Stacks and their weights.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    functions: Vec<Arc<Function>>,
    numbers: HashMap<Arc<Function>, u32>,
    /// By the calls, the outermost first.
    stacks: HashMap<Vec<Call>, Weight>,
    pub(super) total: Weight,
    key: Vec<Call>,
}

/// A function's share of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The function.
    pub function: Arc<Function>,
    /// Weight as the innermost call.
    pub own: Weight,
    /// Weight anywhere among the calls.
    pub total: Weight,
}

impl Weight {
    pub(crate) fn add(&mut self, other: Self) {
        // Another process's memory may claim any growth.
        self.samples = self.samples.saturating_add(other.samples);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }
}

impl Profile {
    /// Creates an empty profile.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stack, with the innermost call first. A waiting thread gets its wait on top of the
    /// stack.
    pub fn add(&mut self, frames: &[Frame], activity: &Activity, weight: Weight) {
        self.total.add(weight);
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let skipped = frames.len().saturating_sub(DEPTH_MAX);
        for (depth, frame) in frames.iter().rev().enumerate() {
            if skipped > 0 && depth == DEPTH_MAX / 2 {
                key.push(self.call(&mark("[calls left out]"), 0));
            }
            if depth < DEPTH_MAX / 2 || depth >= DEPTH_MAX / 2 + skipped {
                key.push(self.call(&frame.function, frame.line));
            }
        }
        if let Activity::Waiting { .. } = activity {
            key.push(self.call(&mark(&format!("[{activity}]")), 0));
        }
        self.put(&mut key, weight, STACKS_MAX);
        self.key = key;
    }

    /// Adds a sample without a stack: one of the marks above.
    pub fn add_mark(&mut self, word: &str, weight: Weight) {
        self.total.add(weight);
        let mut key = vec![self.call(&mark(word), 0)];
        self.put(&mut key, weight, STACKS_MAX);
    }

    /// Adds another profile. Beyond `stacks_max` different stacks, further ones are added to one
    /// stack that is marked as such.
    pub fn merge(&mut self, other: &Profile, stacks_max: usize) {
        let mut numbers = vec![None; other.functions.len()];
        for (calls, weight) in &other.stacks {
            let mut key = Vec::with_capacity(calls.len());
            for call in calls {
                let at = call.function as usize;
                let function =
                    *numbers[at].get_or_insert_with(|| self.call(&other.functions[at], 0).function);
                key.push(Call { function, line: call.line });
            }
            self.total.add(*weight);
            self.put(&mut key, *weight, stacks_max);
        }
    }

    pub(super) fn put(&mut self, key: &mut Vec<Call>, weight: Weight, stacks_max: usize) {
        if self.stacks.len() >= stacks_max && !self.stacks.contains_key(key) {
            key.clear();
            key.push(self.call(&mark(LEFT_OUT), 0));
        }
        if let Some(known) = self.stacks.get_mut(key) {
            known.add(weight);
        } else {
            self.stacks.insert(key.clone(), weight);
        }
    }

    /// The selected stacks. The mark of a wait stays on top.
    #[must_use]
    pub fn part(&self, part: Part) -> Profile {
        let waits = |calls: &[Call]| calls.last().is_some_and(|call| is_wait(self.function(*call)));
        let mut kept = Profile {
            functions: self.functions.clone(),
            numbers: self.numbers.clone(),
            ..Profile::default()
        };
        for (calls, weight) in &self.stacks {
            let is_wanted = match part {
                Part::All => true,
                Part::OnCpu => !waits(calls),
                Part::Waiting => waits(calls),
            };
            if is_wanted {
                kept.total.add(*weight);
                kept.stacks.insert(calls.clone(), *weight);
            }
        }
        kept
    }

    /// The same stacks with a function for each executed line: `App\Shop::total:42`.
    #[must_use]
    pub fn by_line(&self) -> Profile {
        let mut lines = Profile::new();
        for (calls, weight) in self.stacks() {
            let mut key = Vec::with_capacity(calls.len());
            for call in calls {
                let function = &self.functions[call.function as usize];
                let name = format!("{}:{}", function.name, call.line);
                let of_line = Function { name, line: call.line, ..Function::clone(function) };
                let function =
                    if call.line == 0 { Arc::clone(function) } else { Arc::new(of_line) };
                key.push(lines.call(&function, call.line));
            }
            lines.total.add(weight);
            lines.put(&mut key, weight, STACKS_MAX);
        }
        lines
    }

    /// Number of different stacks.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    pub(super) fn call(&mut self, function: &Arc<Function>, line: u32) -> Call {
        if let Some(function) = self.numbers.get(function) {
            return Call { function: *function, line };
        }
        if self.functions.len() >= FUNCTIONS_MAX {
            let other = mark("[functions left out]");
            let number = self.numbers.get(&other).copied();
            return Call { function: number.unwrap_or_else(|| self.number(&other)), line: 0 };
        }
        Call { function: self.number(function), line }
    }

    fn number(&mut self, function: &Arc<Function>) -> u32 {
        let number = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
        self.functions.push(Arc::clone(function));
        self.numbers.insert(Arc::clone(function), number);
        number
    }

    /// Functions, indexed by the numbers in calls.
    pub fn functions(&self) -> &[Arc<Function>] {
        &self.functions
    }

    /// A call's function.
    pub fn function(&self, call: Call) -> &Function {
        &self.functions[call.function as usize]
    }

    /// All stacks, the outermost call first, in a deterministic order.
    pub fn stacks(&self) -> Vec<(&[Call], Weight)> {
        let mut all: Vec<_> = self.stacks.iter().map(|(key, weight)| (&key[..], *weight)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }

    /// Weight of all stacks.
    pub fn total(&self) -> Weight {
        self.total
    }

    /// Functions of a profile of memory by their own bytes, which are in the place of the wall
    /// time.
    pub fn shares_by_bytes(&self) -> Vec<Share> {
        let mut shares = self.shares();
        shares.sort_by_key(|share| std::cmp::Reverse((share.own.wall_ns, share.total.wall_ns)));
        shares
    }

    /// Functions by their own weight, the heaviest first. A wait counts for the function that
    /// waits.
    pub fn shares(&self) -> Vec<Share> {
        let none = |function: &Arc<Function>| Share {
            function: Arc::clone(function),
            own: Weight::default(),
            total: Weight::default(),
        };
        let mut shares: Vec<_> = self.functions.iter().map(none).collect();
        let mut seen = HashSet::new();
        for (calls, weight) in &self.stacks {
            seen.clear();
            let is_php = |call: &&Call| !is_mark(self.function(**call));
            for call in calls.iter().filter(is_php) {
                if seen.insert(call.function) {
                    shares[call.function as usize].total.add(*weight);
                }
            }
            if let Some(call) = calls.iter().rev().find(is_php) {
                shares[call.function as usize].own.add(*weight);
            }
        }
        shares.retain(|share| share.total.samples > 0);
        shares.sort_by(|a, b| {
            let key = |s: &Share| (s.own.samples, s.total.samples);
            key(b).cmp(&key(a)).then_with(|| a.function.cmp(&b.function))
        });
        shares
    }
}

fn mark(text: &str) -> Arc<Function> {
    Arc::new(Function { name: text.to_owned(), ..Function::default() })
}

/// Whether it is the mark of a wait.
fn is_wait(function: &Function) -> bool {
    is_mark(function) && !WORK_MARKS.contains(&function.name.as_str())
}

/// Whether it is a mark and not a function: a wait, or a note that something was left out.
fn is_mark(function: &Function) -> bool {
    function.name.starts_with('[')
}
