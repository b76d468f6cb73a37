//! Precompressed files next to files: `a.css.br` for `a.css`.

use super::send::open;
use crate::response::compress::negotiate::Accepted;
use http::HeaderMap;
use samovar_config::Coding;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A precompressed file and its coding.
pub(super) type Packed = (File, Metadata, Coding);

/// Finds the precompressed files next to the file at `path`.
pub(super) fn find(path: &Path, metadata: &Metadata) -> Vec<Packed> {
    Coding::ALL.into_iter().filter_map(|coding| look(path, metadata, coding)).collect()
}

/// Returns the index of the file that the client prefers. `preferred` is the server's order, if it
/// has one.
pub(super) fn choose(found: &[Packed], headers: &HeaderMap, preferred: &[Coding]) -> Option<usize> {
    let there = || found.iter().map(|(.., coding)| *coding);
    let order: Vec<Coding> = preferred
        .iter()
        .copied()
        .filter(|coding| there().any(|there| there == *coding))
        .chain(there().filter(|coding| !preferred.contains(coding)))
        .collect();
    let best = Accepted::of(headers).best(&order);
    there().position(|coding| best == Some(coding))
}

/// Opens one precompressed file. It is ignored if it is older than its original. Only whole seconds
/// are compared, because `brotli --keep`, archives and image layers do not store fractions.
fn look(path: &Path, metadata: &Metadata, coding: Coding) -> Option<Packed> {
    let mut name = OsString::from(path);
    name.push(coding.extension());
    let file = open(Path::new(&name)).ok()?;
    let packed = file.metadata().ok().filter(Metadata::is_file)?;
    let is_fresh = packed.mtime() >= metadata.mtime();
    is_fresh.then_some((file, packed, coding))
}
