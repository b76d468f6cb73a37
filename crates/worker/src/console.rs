//! A console worker's life after the fork: one PHP script, run as the command line runs it.
//!
//! It shares the template's opcache, and nothing else: no ring, no requests.

use crate::{boundary, os};
use samovar_channel::ConsoleOrder;
use std::ffi::{CStr, CString, NulError};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;

/// What a console worker finds its name in, and which of its command's processes it is, from 1.
const VARIABLES: [&CStr; 2] = [c"SAMOVAR_CONSOLE_NAME", c"SAMOVAR_CONSOLE_NUMBER"];

/// An order as C has its strings.
pub(crate) struct Console {
    /// The command's name, and the process's number among its own.
    identity: [CString; 2],
    folder: CString,
    /// The script, then its arguments.
    command: Vec<CString>,
}

impl TryFrom<ConsoleOrder> for Console {
    type Error = NulError;

    fn try_from(order: ConsoleOrder) -> Result<Console, NulError> {
        let words = std::iter::once(order.script.into()).chain(order.arguments);
        Ok(Console {
            identity: [CString::new(order.name)?, CString::new(order.number.to_string())?],
            folder: CString::new(order.folder.into_os_string().into_vec())?,
            command: words.map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?,
        })
    }
}

impl Console {
    /// In the child: runs the script and ends the process with its exit status. `parent`: the template. `foreign`: its
    /// descriptors; opcache and extensions have theirs, which stay.
    pub(crate) fn run(self, parent: i32, output: &OwnedFd, foreign: &[RawFd]) -> ! {
        os::terminate_with_parent(parent);
        os::print_to(output);
        for fd in foreign.iter().chain(&[output.as_raw_fd()]) {
            os::close(*fd);
        }
        os::unblock_signals();
        for (name, value) in VARIABLES.into_iter().zip(&self.identity) {
            // SAFETY: NUL-terminated; the process has one thread.
            unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
        }
        os::enter(&self.folder);
        let command: Vec<&CStr> = self.command.iter().map(CString::as_c_str).collect();
        let status = boundary::php_console(&command);
        // SAFETY: ends the process; destructors of the template's copies must not run here.
        unsafe { libc::_exit(status) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_with_a_zero_byte_cannot_be_passed_on() {
        let order = |argument: &str| ConsoleOrder {
            life: 7,
            name: "mail".into(),
            number: 2,
            folder: "/app".into(),
            script: "/app/bin/console".into(),
            arguments: vec![argument.into(), "".into()],
        };
        let console = Console::try_from(order("a b")).expect("a good order");
        assert_eq!(console.command, [c"/app/bin/console".to_owned(), c"a b".into(), c"".into()]);
        assert_eq!(console.identity, [c"mail".to_owned(), c"2".into()]);
        assert!(Console::try_from(order("a\0b")).is_err());
    }
}
