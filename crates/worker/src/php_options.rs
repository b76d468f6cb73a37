//! The settings as C has them: one struct for the life of the process, declared for both languages
//! in `php_options.in.rs`.

use crate::ini;
use samovar_channel::WorkerOptions;
use std::ffi::{CString, NulError, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A NUL-terminated string, or null. It is never freed, because PHP keeps pointers to it.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    fn of(text: impl Into<Vec<u8>>) -> Result<Text, NulError> {
        Ok(Text(CString::new(text)?.into_raw()))
    }

    fn of_path(path: Option<&Path>) -> Result<Text, NulError> {
        path.map_or(Ok(Text(std::ptr::null())), |path| Text::of(path.as_os_str().as_bytes()))
    }

    fn or_empty(self) -> Text {
        if self.0.is_null() { Text(c"".as_ptr()) } else { self }
    }
}

macro_rules! php_options {
    (|$options:ident, $frankenphp_worker:ident| $(
        $(#[$doc:meta])* $name:ident: $kind:ty = $from:expr;
    )*) => {
        /// `samovar_options` of `from_rust.h`.
        #[repr(C)]
        pub(crate) struct PhpOptions {
            $($name: $kind,)*
        }

        impl PhpOptions {
            /// `frankenphp_worker` also depends on the text of the front controller, so it is a
            /// separate argument.
            pub(crate) fn new(
                $options: &WorkerOptions,
                $frankenphp_worker: bool,
            ) -> Result<PhpOptions, NulError> {
                Ok(PhpOptions { $($name: $from,)* })
            }
        }
    };
}

include!("php_options.in.rs");
