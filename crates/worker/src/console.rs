//! A console worker's life after the fork: runs one PHP script as the PHP command line does.
//!
//! It shares only the template's opcache. It uses neither the ring nor requests.

use crate::{boundary, os};
use samovar_channel::ConsoleOrder;
use std::ffi::{CStr, CString, NulError};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;

/// Environment variables with the command's name, and with the number of this process among those
/// of the command, from 1.
const VARIABLES: [&CStr; 2] = [c"SAMOVAR_CONSOLE_NAME", c"SAMOVAR_CONSOLE_NUMBER"];

/// A console order with its strings as C strings.
pub(crate) struct Console {
    /// The command's name, and the number of this process among those of the command.
    identity: [CString; 2],
    folder: CString,
    /// The script, then its arguments.
    command: Vec<CString>,
    /// It runs once, for a schedule, and is signalled with the programs that it starts.
    is_run: bool,
}

impl TryFrom<ConsoleOrder> for Console {
    type Error = NulError;

    fn try_from(order: ConsoleOrder) -> Result<Console, NulError> {
        let words = std::iter::once(order.script.into()).chain(order.arguments);
        Ok(Console {
            is_run: order.number == 0,
            identity: [CString::new(order.name)?, CString::new(order.number.to_string())?],
            folder: CString::new(order.folder.into_os_string().into_vec())?,
            command: words.map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?,
        })
    }
}

impl Console {
    /// Runs the script in the child and ends the process with its exit status. `parent` is the
    /// template. `foreign` holds the template's descriptors, which are closed; those of opcache and
    /// extensions stay open.
    pub(crate) fn run(self, parent: i32, output: &OwnedFd, foreign: &[RawFd]) -> ! {
        os::terminate_with_parent(parent);
        if self.is_run {
            os::lead_group();
        }
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
    fn console_order_with_zero_byte_is_rejected() {
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
