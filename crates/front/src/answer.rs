//! deliver: every answer that goes out, as hyper takes it.
//!
//! `body` is any answer's body, `worker` makes a response of a worker's answer, `files` of a file (`file_body`),
//! `compress` packs any of them (`packed`); `error_page` of what went wrong, `own` of what the front knows by itself. Imports all that stands below:
//! `client`, `shared`, `log`, `exchange`, `setup`, `runtime`.

pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod error_page;
mod file_body;
pub(crate) mod files;
pub(crate) mod own;
mod packed;
pub(crate) mod worker;
