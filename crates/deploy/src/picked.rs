//! Selection of the files of a source.

use std::path::PathBuf;

/// The parts of a source that become the release.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picked {
    /// Paths within the release that are left out.
    pub(crate) exclude: Vec<PathBuf>,
    /// Number of leading folders that are removed from the names in an archive.
    pub(crate) strip: usize,
}
