//! A folder whose files scripts can have the server send.

use std::path::PathBuf;

/// A folder with its typed and its canonical name, which differ if the path contains links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendFolder {
    /// The path as typed, made absolute. It may lead to another folder after a deploy.
    pub named: PathBuf,
    /// The canonical path at the time when the settings were read.
    pub found: PathBuf,
}
