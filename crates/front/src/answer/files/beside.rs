//! Packed files beside files: `a.css.br` for `a.css`.

use super::send::{Opened, open};
use crate::answer::compress::negotiate::Accepted;
use http::HeaderMap;
use samovar_config::Coding;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The packed file that the client likes best; `preferred` is the server's order, if it has one. True: what is sent
/// depends on what the client accepts.
pub(super) fn find(
    path: &Path,
    metadata: &Metadata,
    headers: &HeaderMap,
    preferred: &[Coding],
) -> (bool, Option<Opened>) {
    let mut found: Vec<Opened> =
        Coding::ALL.into_iter().filter_map(|coding| look(path, metadata, coding)).collect();
    let there = || found.iter().filter_map(|opened| opened.coding);
    let order: Vec<Coding> = preferred
        .iter()
        .copied()
        .filter(|coding| there().any(|there| there == *coding))
        .chain(there().filter(|coding| !preferred.contains(coding)))
        .collect();
    let best = Accepted::of(headers).best(&order);
    let at = found.iter().position(|opened| best.is_some() && opened.coding == best);
    (!found.is_empty(), at.map(|at| found.swap_remove(at)))
}

/// One that is older than what it was made of is out of date. Whole seconds count: `brotli --keep`, archives and layers of
/// images keep no more of a time than these.
fn look(path: &Path, metadata: &Metadata, coding: Coding) -> Option<Opened> {
    let mut name = OsString::from(path);
    name.push(coding.extension());
    let file = open(Path::new(&name)).ok()?;
    let packed = file.metadata().ok().filter(Metadata::is_file)?;
    let is_fresh = packed.mtime() >= metadata.mtime();
    is_fresh.then_some(Opened { file, metadata: packed, coding: Some(coding) })
}
