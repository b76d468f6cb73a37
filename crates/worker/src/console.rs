//! A console worker's life after the fork: one PHP script, run as the command line runs it.
//!
//! It shares the template's opcache, and nothing else: no ring, no requests.

use crate::{boundary, os};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// What a console worker finds its name in, and which of its command's processes it is, from 1.
const VARIABLES: [&CStr; 2] = [c"SAMOVAR_CONSOLE_NAME", c"SAMOVAR_CONSOLE_NUMBER"];

/// The order `console`, LIFE, NAME, NUMBER, FOLDER, SCRIPT, ARGUMENT … , each ended by a zero byte but the last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The supervisor's number for it.
    pub(crate) life: u32,
    /// Name and number.
    identity: [CString; 2],
    folder: CString,
    /// The script, then its arguments: at least one.
    command: Vec<CString>,
}

impl Order {
    pub(crate) fn parse(text: &str) -> Option<Order> {
        let mut words = text.split('\0');
        if words.next()? != "console" {
            return None;
        }
        let life = words.next()?.parse().ok()?;
        let mut word = || CString::new(words.next()?).ok();
        let identity = [word()?, word()?];
        let folder = word()?;
        let command: Vec<CString> = words.map(CString::new).collect::<Result<_, _>>().ok()?;
        let named = command.first().is_some_and(|script| !script.is_empty());
        named.then_some(Order { life, identity, folder, command })
    }

    /// In the child: runs the script and ends the process with its exit status. `foreign`: the template's descriptors;
    /// opcache and extensions have theirs, which stay.
    pub(crate) fn run(self, output: &OwnedFd, foreign: &[RawFd]) -> ! {
        os::terminate_with_parent();
        os::print_to(output.as_raw_fd());
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
    fn orders_are_understood_or_refused() {
        let order = Order::parse("console\x007\0mail\x002\0/app\0/app/bin/console\0a b\0");
        let order = order.expect("a good order");
        let texts: Vec<_> = order.command.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!((order.life, order.folder.to_str()), (7, Ok("/app")));
        assert_eq!(order.identity, [c"mail".to_owned(), c"2".to_owned()]);
        assert_eq!(texts, ["/app/bin/console", "a b", ""]);
        for text in [
            "",
            "console",
            "console\x007",
            "console\x007\0a\x001\0/",
            "console\x007\0a\x001\0/\0",
            "console\0x\0a\x001\0/\0/a",
        ] {
            assert_eq!(Order::parse(text), None, "{text:?}");
        }
    }
}
