//! The server under test.

use crate::workspace;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// Maximum number of files that are checked: more than the workspace has.
const FILES_MAX: usize = 20_000;

static NEWER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The binary under test: `SAMOVAR_BIN`, or the workspace's release build.
///
/// # Panics
/// If that build is older than its sources: the test would run against an outdated server.
pub fn binary() -> PathBuf {
    if let Some(told) = std::env::var_os("SAMOVAR_BIN") {
        return told.into();
    }
    let built = workspace().join("target/release/samovar");
    if let Some(newer) = NEWER.get_or_init(|| newer_source(&built)) {
        panic!(
            "{} is not built, or older than {}\nhint: `make whole` tests what it has built; \
             SAMOVAR_BIN names another server",
            built.display(),
            newer.display()
        );
    }
    built
}

/// A source of the server's crates that has changed since the file `built` was built. If there is
/// no such file, the first source.
fn newer_source(built: &Path) -> Option<PathBuf> {
    let when = |path: &Path| path.metadata().and_then(|of| of.modified()).ok();
    let built = when(built).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut left = vec![workspace().join("Cargo.lock"), workspace().join("crates")];
    for _ in 0..FILES_MAX {
        let path = left.pop()?;
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() {
            // Sources of tests are not part of the server, nor are the build products of fuzzing.
            if name != "tests" && name != "testkit" && name != "fuzz" && name != "target" {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path()));
            }
        } else if when(&path).is_some_and(|changed| changed > built) && name != "README.md" {
            return Some(path);
        }
    }
    None
}
