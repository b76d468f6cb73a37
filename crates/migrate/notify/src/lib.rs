//! The types of the crate notify that mago-database names. The server starts no watcher of
//! mago-database, and notify has a licence that deny.toml does not allow.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// There is no watcher.
#[derive(Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this program watches no files")
    }
}

impl std::error::Error for Error {}

/// Options of a watcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config;

impl Config {
    /// Has no effect.
    pub fn with_poll_interval(self, _: Duration) -> Self {
        self
    }
}

/// Whether to watch the folders below.
#[derive(Clone, Copy, Debug)]
pub enum RecursiveMode {
    /// With the folders below.
    Recursive,
    /// Without them.
    NonRecursive,
}

/// Kinds of changes.
pub mod event {
    /// Kind of a change of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ModifyKind {
        /// Of its data.
        Data(()),
        /// Of its metadata.
        Metadata(()),
    }
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Unknown.
    Any,
    /// A read.
    Access(()),
    /// A new file.
    Create(()),
    /// A changed file.
    Modify(event::ModifyKind),
    /// A removed file.
    Remove(()),
    /// Another one.
    Other,
}

/// A change.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its kind.
    pub kind: EventKind,
    /// The changed files.
    pub paths: Vec<PathBuf>,
}

/// A watcher.
pub trait Watcher {
    /// Fails.
    fn new<F: Fn(Result<Event>) + Send + 'static>(handler: F, config: Config) -> Result<Self>
    where
        Self: Sized;

    /// Fails.
    fn watch(&mut self, path: &Path, mode: RecursiveMode) -> Result<()>;

    /// Fails.
    fn unwatch(&mut self, path: &Path) -> Result<()>;
}

/// The watcher of this platform; no value of it exists.
#[derive(Debug)]
pub struct RecommendedWatcher(std::convert::Infallible);

impl Watcher for RecommendedWatcher {
    fn new<F: Fn(Result<Event>) + Send + 'static>(_: F, _: Config) -> Result<Self> {
        Err(Error)
    }

    fn watch(&mut self, _: &Path, _: RecursiveMode) -> Result<()> {
        Err(Error)
    }

    fn unwatch(&mut self, _: &Path) -> Result<()> {
        Err(Error)
    }
}
