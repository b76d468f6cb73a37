//! The two paths that depend on the machine: the control socket and the worker binary.

mod control_socket;
mod worker_binary;

pub use control_socket::{
    control_path, discover_all_controls, discover_control, discover_control_of, make_control_dir,
};
pub use worker_binary::{locate_php, locate_worker, locate_workers};
