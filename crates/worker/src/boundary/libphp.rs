//! The engine's start and end, and what it is (csrc/startup.c).

use crate::php_options::PhpOptions;
use std::ffi::{CStr, c_char, c_int};

unsafe extern "C" {
    fn samovar_php_startup(options: *const PhpOptions) -> c_int;
    fn samovar_php_shutdown();
    fn samovar_has_directive(name: *const c_char) -> bool;
    fn samovar_jit() -> *const c_char;
    fn samovar_sessions() -> *const c_char;
    fn samovar_php_code() -> usize;
    fn samovar_php_version() -> *const c_char;
    fn samovar_php_built_for() -> *const c_char;
    fn samovar_php_api_built_for() -> *const c_char;
}

/// Starts the engine. The options are leaked: C points to them for ever.
pub(crate) fn php_startup(options: PhpOptions) -> Result<(), &'static str> {
    // SAFETY: lives for ever, as its strings do; called once, before any other PHP call, on the only thread.
    match unsafe { samovar_php_startup(Box::leak(Box::new(options))) } {
        0 => Ok(()),
        _ => Err("PHP did not start; its messages stand above"),
    }
}

/// Ends the engine.
pub(crate) fn php_shutdown() {
    // SAFETY: after `php_startup`, outside any request.
    unsafe { samovar_php_shutdown() };
}

/// Whether the engine or an extension has an ini directive of that name.
pub(crate) fn has_directive(name: &CStr) -> bool {
    // SAFETY: after `php_startup`; a string with an end.
    unsafe { samovar_has_directive(name.as_ptr()) }
}

/// How PHP's JIT compiles, if it does.
pub(crate) fn jit() -> Option<String> {
    // SAFETY: after `php_startup`.
    let mode = unsafe { samovar_jit() };
    directive(mode)
}

/// The folder of sessions, where they are files.
pub(crate) fn sessions() -> Option<String> {
    // SAFETY: after `php_startup`.
    let folder = unsafe { samovar_sessions() };
    directive(folder)
}

/// A directive's value, or null.
fn directive(value: *const c_char) -> Option<String> {
    if value.is_null() {
        return None;
    }
    // SAFETY: NUL-terminated, and there until another is set.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Version of the loaded libphp.
pub(crate) fn php_version() -> String {
    // SAFETY: after `php_startup`.
    let version = unsafe { samovar_php_version() };
    // SAFETY: a NUL-terminated string of the running engine, or a literal.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// A place in libphp's code.
pub(crate) fn php_code() -> usize {
    // SAFETY: only returns an address.
    unsafe { samovar_php_code() }
}

/// Version of the headers this binary was compiled with.
pub(crate) fn php_built_for() -> String {
    // SAFETY: only returns a literal.
    let version = unsafe { samovar_php_built_for() };
    // SAFETY: a literal of the C part.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// How modules for those headers are built.
pub(crate) fn php_api_built_for() -> String {
    // SAFETY: only returns a literal.
    let api = unsafe { samovar_php_api_built_for() };
    // SAFETY: a literal of the C part.
    unsafe { CStr::from_ptr(api) }.to_string_lossy().into_owned()
}
