//! Resolved settings: CPU scheduling by the kernel (sched(7)).

words! {
/// A kernel scheduling policy, with its name in systemd.exec(5).
pub enum Scheduling {
    /// `SCHED_OTHER`: the default policy, which shares the CPU by niceness.
    #[default]
    Other = "other",
    /// `SCHED_IDLE`: uses only otherwise idle CPU time; any other process that wakes up preempts it
    /// immediately.
    Idle = "idle",
}
}
