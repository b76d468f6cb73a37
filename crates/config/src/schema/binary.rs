//! Which worker binary is meant, as it is typed.

use std::path::PathBuf;

/// Which worker binary to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PhpBinary {
    /// The file that was named; absolute.
    Path(PathBuf),
    /// `samovar-php` with this suffix, such as `8.2`.
    Version(String),
}
