//! What the commands print for the person, or program, that called them. The server itself logs (`logging.rs`).

use anyhow::{Context, Result};
use std::io::{self, ErrorKind, Write};

/// Prints on standard output. Who has stopped reading has read enough.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// A line on standard error. One that fails has nobody to be told.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
