//! Small files, whole.

use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a fleet file, and of a file of holidays.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Returns the content of a small file.
pub(super) fn text_of(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| unreadable(path))?;
    let read = file.take(TEXT_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.with_context(|| unreadable(path))? as u64 > TEXT_BYTES_MAX {
        bail!(
            "`{}` is larger than {TEXT_BYTES_MAX} bytes\nhint: check that it is the right file",
            path.display()
        );
    }
    String::from_utf8(bytes).map_err(|_| {
        let path = path.display();
        anyhow!("`{path}` is not a text in UTF-8\nhint: check that it is the right file")
    })
}

/// Returns the first part of an error.
pub(super) fn unreadable(path: &Path) -> String {
    format!("cannot read `{}`\nhint: check path and permissions", path.display())
}
