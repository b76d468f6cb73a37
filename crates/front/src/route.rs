//! route: what answers a path.
//!
//! `target` is the path as it came, `path` what it means, `site` decides by the rules, `files` is the file system that
//! it looks at, `private` the files that are nobody's business, `refused` what a path does not lead to, `terms` and
//! `locations` what holds for some paths besides, `pools` whose request it is, `explain` says for people what was decided; `cache` knows what was decided a moment ago, `known` which
//! files were there. All but `files` and these two are pure functions. Imports `runtime`.

pub(crate) mod cache;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod known;
pub(crate) mod locations;
mod path;
pub(crate) mod pools;
pub mod private;
mod refused;
pub(crate) mod site;
pub(crate) mod target;
pub(crate) mod terms;

/// What a percent-encoded path means, if it is one.
pub(crate) fn normal(path: &[u8]) -> Option<Vec<u8>> {
    path::normalise(path).ok()
}
