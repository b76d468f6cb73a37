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

/// An error with its causes, for a person: hints come last, whichever of them has one.
pub(crate) fn words(error: &anyhow::Error) -> String {
    let (mut what, mut hints) = (Vec::new(), String::new());
    for cause in error.chain() {
        let text = cause.to_string();
        let (said, hint) = text.split_at(text.find(HINT).unwrap_or(text.len()));
        what.push(said.to_owned());
        hints.push_str(hint);
    }
    what.join(": ") + &hints
}

const HINT: &str = "\nhint: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_stand_behind_what_went_wrong() {
        let full = io::Error::from(ErrorKind::StorageFull);
        let cause = full.to_string();
        let error = anyhow::Error::from(full).context("cannot write `a`\nhint: is the disk full?");
        assert_eq!(words(&error), format!("cannot write `a`: {cause}\nhint: is the disk full?"));
        let both = error.context("no picture\nhint: try again");
        let hints = "\nhint: try again\nhint: is the disk full?";
        assert_eq!(words(&both), format!("no picture: cannot write `a`: {cause}{hints}"));
        assert_eq!(words(&anyhow::anyhow!("plain")), "plain");
    }
}
