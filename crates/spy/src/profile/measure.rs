//! Measure of a stack: wall time or CPU time of its weight, or bytes.

use super::stacks::Weight;

/// Measure of a stack's weight, such as the width of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
    /// Bytes, in a profile of allocations: they are in the place of the wall time.
    Bytes,
    /// Bytes by which the heap has grown, in a profile of growth: they are in the place of the wall
    /// time.
    Growth,
}

impl Measure {
    /// Whether the unit is a byte.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        matches!(self, Measure::Bytes | Measure::Growth)
    }

    /// Short name and description of a weight in bytes, for other tools.
    pub(super) fn name_of_bytes(self) -> (&'static str, &'static str) {
        match self {
            Measure::Growth => ("heap_growth", "Growth of the heap (bytes)"),
            _ => ("alloc_space", "Allocated memory (bytes)"),
        }
    }
}

/// Value of a weight in a measure.
pub fn of(weight: Weight, measure: Measure) -> u64 {
    match measure {
        Measure::Wall | Measure::Bytes | Measure::Growth => weight.wall_ns,
        Measure::Cpu => weight.cpu_ns,
    }
}
