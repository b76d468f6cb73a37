//! The folder of the sources that are tested.

use std::path::PathBuf;

/// The workspace's folder.
pub fn workspace() -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).expect("crates/testkit lies two folders deep").to_owned()
}
