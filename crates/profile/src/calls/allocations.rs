//! Allocated memory as a profile of crates/spy, for flame graphs, tables and other tools.

use super::graph::{Function, Graph};
use samovar_spy::profile::{Profile, Weight};
use samovar_spy::{Activity, Frame};
use std::sync::Arc;

impl Graph {
    /// Returns the memory allocated in each stack. The bytes are in the place of the wall time, as
    /// for the measure `Bytes`; the samples are estimated numbers of allocations.
    #[must_use]
    pub fn allocation_profile(&self) -> Profile {
        let frame = |of: &Function| Frame {
            function: Arc::new(samovar_spy::Function {
                class: String::new(),
                name: of.name.clone(),
                // The name of a file's own code contains the file.
                file: if of.name.ends_with(&of.file) { String::new() } else { of.file.clone() },
                line: of.line,
            }),
            line: 0,
        };
        let frames: Vec<Frame> = self.functions.iter().map(frame).collect();
        let stacks = &self.allocations;
        let mut profile = Profile::new();
        for (at, stack) in stacks.stacks.iter().enumerate().filter(|(_, stack)| stack.bytes > 0) {
            let calls = stacks.calls(at);
            let calls: Vec<_> =
                calls.iter().rev().map(|call| frames[*call as usize].clone()).collect();
            let weight = Weight { samples: stack.count.max(1), wall_ns: stack.bytes, cpu_ns: 0 };
            profile.add(&calls, &Activity::Running, weight);
        }
        profile
    }
}
