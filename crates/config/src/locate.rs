//! The two paths that depend on the machine: the control socket and the worker binary.

mod control_socket;
mod worker_binary;

pub use control_socket::{default_control_path, discover_control, make_control_dir};
pub use worker_binary::locate_php;
