//! Output of commands for their caller. The server itself logs (`logging.rs`).

use anyhow::{Context, Result};
use std::io::{self, ErrorKind, Write};

/// Prints to standard output. A closed pipe is not an error.
pub fn print(text: &str) -> Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints bytes that need not be text. A closed pipe is not an error.
pub fn print_bytes(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error. An error is ignored, because it cannot be reported.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Formats an error with its causes for people; all hints come last.
pub fn words(error: &anyhow::Error) -> String {
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
    fn error_text_has_hints_at_the_end() {
        let full = io::Error::from(ErrorKind::StorageFull);
        let cause = full.to_string();
        let error = anyhow::Error::from(full)
            .context("cannot write `a`\nhint: check the free space of the disk");
        assert_eq!(
            words(&error),
            format!("cannot write `a`: {cause}\nhint: check the free space of the disk")
        );
        let both = error.context("no picture\nhint: try again");
        let hints = "\nhint: try again\nhint: check the free space of the disk";
        assert_eq!(words(&both), format!("no picture: cannot write `a`: {cause}{hints}"));
        assert_eq!(words(&anyhow::anyhow!("plain")), "plain");
    }
}
