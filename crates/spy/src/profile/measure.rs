//! Measure of a stack in a flame graph: wall or CPU time of its weight.

use super::stacks::Weight;

/// Measure of the width of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
    /// Bytes, in a profile of allocations: they are in the place of the wall time.
    Bytes,
}

/// Value of a weight in a measure.
pub fn of(weight: Weight, measure: Measure) -> u64 {
    match measure {
        Measure::Wall | Measure::Bytes => weight.wall_ns,
        Measure::Cpu => weight.cpu_ns,
    }
}
