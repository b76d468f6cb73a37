//! The kernel's data that scaling reads, as an interface: tests have simulated machines.

/// The machine's CPU time so far, in kernel ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) idle: u64,
    pub(crate) all: u64,
}

/// Memory of the machine or of the control group, whichever has less free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) free: u64,
}

/// The kernel's data about processes.
pub(crate) trait Machine {
    /// Time for which a process ran or was runnable, in ns.
    fn times(&self, pid: i32) -> Option<u64>;
    /// The machine's CPU time.
    fn ticks(&self) -> Option<Ticks>;
    /// Whether a process is running or runnable now.
    fn is_runnable(&self, pid: i32) -> bool;
    /// Private memory of a process in bytes.
    fn own_bytes(&self, pid: i32) -> Option<u64>;
    /// Total and free memory.
    fn memory(&self) -> Option<Memory>;
}
