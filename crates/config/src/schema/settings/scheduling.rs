//! What comes out: how the kernel shares out the processors (sched(7)).

words! {
/// A policy of the kernel's, by the name that systemd.exec(5) has for it.
pub enum Scheduling {
    /// `SCHED_OTHER`: a share of the processor like everybody's, by niceness.
    #[default]
    Other = "other",
    /// `SCHED_IDLE`: what nobody else wants; whoever else wakes has the processor at once.
    Idle = "idle",
}
}
