//! A folder that scripts may have files sent from.

use std::path::PathBuf;

/// A folder by both of its names; links may lie on the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendFolder {
    /// As somebody has written it, absolute. It may lead elsewhere after a deploy.
    pub named: PathBuf,
    /// Where that led when the settings were read: canonical.
    pub found: PathBuf,
}
