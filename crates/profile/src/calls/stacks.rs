//! Memory allocated by stack of calls, added up over many requests: a tree of stacks.

use super::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Maximum number of stacks of one graph. Memory of further ones counts for the calls that are
/// known.
const STACKS_MAX: usize = 16_000;

/// A stack of calls, and the memory allocated in it without callees. Estimated from samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Index of the stack that made the call: a smaller one. The first stack is the request.
    pub caller: u32,
    /// Index of the function in the graph.
    pub function: u32,
    /// Bytes allocated, freed or not.
    pub bytes: u64,
    /// Number of allocations.
    pub count: u64,
}

/// All stacks of a graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stacks {
    /// Number of requests whose allocations were sampled.
    pub requests: u64,
    /// Mean number of allocated bytes between two samples.
    pub sample_bytes: u64,
    /// The stacks; each one is after its caller.
    pub stacks: Vec<Stack>,
    #[serde(skip)]
    known: HashMap<(u32, u32), u32>,
}

/// Memory allocated by a function in all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Index of the function in the graph.
    pub function: u32,
    /// Bytes allocated without callees.
    pub own: u64,
    /// Bytes allocated, callees included. Recursive calls are counted once.
    pub total: u64,
    /// Number of allocations without callees.
    pub count: u64,
}

impl Stacks {
    /// Returns whether all stacks refer to earlier ones and to existing functions.
    pub(super) fn is_sound(&self, functions: usize) -> bool {
        self.stacks.len() <= STACKS_MAX
            && self.stacks.iter().enumerate().all(|(at, stack)| {
                (stack.caller as usize) < at.max(1) && (stack.function as usize) < functions
            })
    }

    fn index(&mut self) {
        // The first stack has no caller.
        if self.known.len() + 1 != self.stacks.len() {
            let all = self.stacks.iter().zip(0..).skip(1);
            self.known = all.map(|(stack, at)| ((stack.caller, stack.function), at)).collect();
        }
    }

    fn place(&mut self, caller: u32, function: u32) -> u32 {
        if let Some(at) = self.known.get(&(caller, function)) {
            return *at;
        }
        if self.stacks.len() >= STACKS_MAX {
            return caller;
        }
        let at = self.stacks.len() as u32;
        self.known.insert((caller, function), at);
        self.stacks.push(Stack { caller, function, ..Stack::default() });
        at
    }

    /// `of` has the stacks of one request or of many; `functions` are the indexes of its functions
    /// in our graph.
    fn put(&mut self, of: impl Iterator<Item = Stack>, functions: &[u32]) {
        self.index();
        let mut places: Vec<u32> = Vec::new();
        for stack in of {
            let function = functions[stack.function as usize];
            let at = if let Some(caller) = places.get(stack.caller as usize) {
                self.place(*caller, function)
            } else {
                if self.stacks.is_empty() {
                    self.stacks.push(Stack { function, ..Stack::default() });
                }
                0
            };
            places.push(at);
            let to = &mut self.stacks[at as usize];
            to.bytes = to.bytes.saturating_add(stack.bytes);
            to.count = to.count.saturating_add(stack.count);
        }
    }

    pub(super) fn add(&mut self, trace: &Trace, functions: &[u32]) {
        if trace.sample_bytes == 0 {
            return;
        }
        self.requests += 1;
        self.sample_bytes = trace.sample_bytes;
        let all = trace.stacks.iter().map(|stack| Stack {
            caller: stack.caller as u32,
            function: stack.function as u32,
            bytes: stack.bytes,
            count: stack.count,
        });
        self.put(all, functions);
    }

    pub(super) fn merge(&mut self, other: &Stacks, functions: &[u32]) {
        self.requests = self.requests.saturating_add(other.requests);
        self.sample_bytes = self.sample_bytes.max(other.sample_bytes);
        self.put(other.stacks.iter().copied(), functions);
    }

    /// Returns the functions of a stack, outermost first.
    #[must_use]
    pub fn calls(&self, mut at: usize) -> Vec<u32> {
        let mut calls = vec![self.stacks[at].function];
        while at > 0 {
            at = self.stacks[at].caller as usize;
            calls.push(self.stacks[at].function);
        }
        calls.reverse();
        calls
    }

    /// Returns the memory of each function, the largest own memory first.
    #[must_use]
    pub fn by_function(&self) -> Vec<Allocated> {
        let mut below: Vec<u64> = self.stacks.iter().map(|stack| stack.bytes).collect();
        for at in (1..below.len()).rev() {
            let caller = self.stacks[at].caller as usize;
            below[caller] = below[caller].saturating_add(below[at]);
        }
        let mut sums: HashMap<u32, Allocated> = HashMap::new();
        for (at, stack) in self.stacks.iter().enumerate() {
            let calls = self.calls(at);
            let is_outermost = !calls[..calls.len() - 1].contains(&stack.function);
            let sum = sums.entry(stack.function).or_default();
            sum.function = stack.function;
            sum.own = sum.own.saturating_add(stack.bytes);
            sum.count = sum.count.saturating_add(stack.count);
            sum.total = sum.total.saturating_add(if is_outermost { below[at] } else { 0 });
        }
        let mut all: Vec<_> = sums.into_values().collect();
        all.sort_by_key(|one| (std::cmp::Reverse((one.own, one.total)), one.function));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(caller: u32, function: u32, bytes: u64) -> Stack {
        Stack { caller, function, bytes, count: 1 }
    }

    fn stacks(all: &[Stack]) -> Stacks {
        Stacks { requests: 1, sample_bytes: 8, stacks: all.to_vec(), ..Stacks::default() }
    }

    #[test]
    fn merge_adds_equal_stacks() {
        let mut sum = Stacks::default();
        let one = stacks(&[stack(0, 0, 1), stack(0, 1, 10), stack(1, 2, 100)]);
        let other = stacks(&[stack(0, 0, 2), stack(0, 2, 20), stack(0, 1, 30), stack(2, 2, 300)]);
        sum.merge(&one, &[0, 1, 2]);
        sum.merge(&other, &[0, 1, 2]);
        let expected = [
            Stack { count: 2, ..stack(0, 0, 3) },
            Stack { count: 2, ..stack(0, 1, 40) },
            Stack { count: 2, ..stack(1, 2, 400) },
            stack(0, 2, 20),
        ];
        assert_eq!((sum.requests, &sum.stacks[..]), (2, &expected[..]));
        assert!(sum.is_sound(3) && !sum.is_sound(2));
    }

    #[test]
    fn recursion_counts_memory_once() {
        let all = stacks(&[stack(0, 0, 1), stack(0, 1, 10), stack(1, 1, 100), stack(2, 2, 1_000)]);
        let found = all.by_function().into_iter().map(|one| (one.function, one.own, one.total));
        assert_eq!(found.collect::<Vec<_>>(), [(2, 1_000, 1_000), (1, 110, 1_110), (0, 1, 1_111)]);
        assert_eq!(all.calls(3), [0, 1, 1, 2]);
    }

    #[test]
    fn memory_beyond_stack_limit_counts_for_caller() {
        let mut all = vec![stack(0, 0, 0)];
        all.extend((1..STACKS_MAX as u32).map(|function| stack(0, function, 1)));
        let functions: Vec<u32> = (0..=STACKS_MAX as u32).collect();
        let mut sum = Stacks::default();
        sum.merge(&stacks(&all), &functions);
        sum.merge(&stacks(&[stack(0, 0, 0), stack(0, STACKS_MAX as u32, 7)]), &functions);
        assert_eq!((sum.stacks.len(), sum.stacks[0].bytes), (STACKS_MAX, 7));
    }

    #[test]
    fn stack_that_is_its_own_caller_is_rejected() {
        assert!(!stacks(&[stack(0, 0, 1), stack(1, 0, 1)]).is_sound(1));
        assert!(!stacks(&[stack(1, 0, 1), stack(0, 0, 1)]).is_sound(1));
    }
}
