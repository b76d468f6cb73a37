//! Selection of the worker binary, as typed.

use std::path::PathBuf;

/// The worker binary to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhpBinary {
    /// A file, named by its absolute path.
    Path(PathBuf),
    /// `samovar-php` with this suffix, such as `8.2`.
    Version(String),
}
