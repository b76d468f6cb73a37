//! The number of workers follows the load: workers are added while requests wait for blocked
//! workers, and removed when idle. At any time only as many workers run as there are cores.

mod growth;
mod limits;
mod run_permits;
mod stage;
mod storms;
