//! deliver: every outgoing response, in the form that hyper accepts.
//!
//! - `body` is the body of any response.
//! - `worker_response` converts a worker's response, `files` a file (`file_body`).
//! - `compress` compresses any response (`compressed_body`).
//! - `error_page` is the response to a failure, `front_response` are responses of the front itself.
//! - `refresh_script` is a part of pages in development mode.
//!
//! Imports the folders below it: `client`, `shared`, `log`, `exchange`, `setup`, `runtime`.

pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod compressed_body;
pub(crate) mod error_page;
mod file_body;
pub(crate) mod files;
pub(crate) mod front_response;
pub(crate) mod refresh_script;
pub(crate) mod worker_response;
