//! route: decides how a path is served.
//!
//! | module | role |
//! |---|---|
//! | `target` | the target as received |
//! | `path` | decodes and normalizes a path |
//! | `site` | decides by the rules |
//! | `files` | view of the file system |
//! | `private` | files that are never served |
//! | `refusal` | refusals of the file or script that a path resolves to |
//! | `path_settings`, `locations` | settings that apply to some paths only |
//! | `pools` | the pool of a request |
//! | `intakes` | requests that are stored as jobs |
//! | `explain` | describes a decision for `samovar routes` |
//! | `cache` | recent decisions |
//! | `file_cache` | files that were found recently |
//!
//! All but `files`, `cache` and `file_cache` are pure functions. Imports `runtime`.

pub(crate) mod cache;
pub(crate) mod explain;
pub(crate) mod file_cache;
pub(crate) mod files;
pub(crate) mod intakes;
pub(crate) mod locations;
mod path;
pub(crate) mod path_settings;
pub(crate) mod pools;
pub mod private;
mod refusal;
pub(crate) mod site;
pub(crate) mod target;

/// Decodes and normalizes a percent-encoded path; `None` if it is invalid.
pub(crate) fn normal(path: &[u8]) -> Option<Vec<u8>> {
    path::normalise(path).ok()
}
