//! Settings → options of the components, at the start and at each reload.

mod front;
mod push;
mod redis;
mod supervisor;

pub(crate) use front::{front_settings, front_threads};
pub(crate) use push::{host_name, push_options};
pub(crate) use redis::redis;
pub(crate) use supervisor::{
    Ears, check_limits, console_command, environment, sandbox, supervisor_settings,
};
