//! Start, end and properties of the PHP engine (csrc/startup.c).

use crate::php_options::PhpOptions;
use samovar_channel::{DIRECTIVES, Opcache, PhpSetup, VARIABLES};
use std::ffi::{CStr, CString, c_char, c_int};

unsafe extern "C" {
    fn samovar_php_startup(options: *const PhpOptions) -> c_int;
    fn samovar_php_shutdown();
    fn samovar_has_directive(name: *const c_char) -> bool;
    fn samovar_directive(name: *const c_char) -> *const c_char;
    fn samovar_extension(number: usize) -> *const c_char;
    fn samovar_jit() -> *const c_char;
    fn samovar_opcache_look(to: *mut OpcacheFigures) -> bool;
    fn samovar_sessions() -> *const c_char;
    fn samovar_php_code() -> usize;
    fn samovar_php_version() -> *const c_char;
    fn samovar_php_built_for() -> *const c_char;
    fn samovar_php_api_built_for() -> *const c_char;
}

/// Maximum number of extensions that are reported.
const EXTENSIONS_MAX: usize = 500;

/// Figures of opcache: `samovar_opcache_figures` of csrc/boundary.h.
#[repr(C)]
#[derive(Default)]
struct OpcacheFigures {
    used_bytes: u64,
    free_bytes: u64,
    wasted_bytes: u64,
    strings: u64,
    strings_used_bytes: u64,
    strings_free_bytes: u64,
    scripts: u64,
    keys: u64,
    keys_max: u64,
    hits: u64,
    misses: u64,
    restarts_memory: u64,
    restarts_keys: u64,
    restarts_manual: u64,
    is_full: u64,
}

/// Starts the engine. The options are leaked, because C keeps pointers to them for the life of the
/// process.
pub(crate) fn php_startup(options: PhpOptions) -> Result<(), &'static str> {
    // SAFETY: the options and their strings are never freed; called once, before any other PHP
    // call, on the only thread.
    match unsafe { samovar_php_startup(Box::leak(Box::new(options))) } {
        0 => Ok(()),
        _ => Err("PHP did not start; see its messages above"),
    }
}

/// Shuts the engine down.
pub(crate) fn php_shutdown() {
    // SAFETY: after `php_startup`, outside any request.
    unsafe { samovar_php_shutdown() };
}

/// Returns true if the engine or an extension has an ini directive of that name.
pub(crate) fn has_directive(name: &CStr) -> bool {
    // SAFETY: after `php_startup`; a NUL-terminated string.
    unsafe { samovar_has_directive(name.as_ptr()) }
}

/// Returns the mode of PHP's JIT, if it is on.
pub(crate) fn jit() -> Option<String> {
    // SAFETY: after `php_startup`.
    let mode = unsafe { samovar_jit() };
    directive(mode)
}

/// Returns the figures of opcache's shared memory; `None` if opcache is off. Only for the template.
pub(crate) fn opcache() -> Option<Opcache> {
    let mut of = OpcacheFigures::default();
    // SAFETY: after `php_startup`, outside any request; writes only to the struct, which has the
    // layout of C's.
    let is_on = unsafe { samovar_opcache_look(&raw mut of) };
    is_on.then_some(Opcache {
        used_bytes: of.used_bytes,
        free_bytes: of.free_bytes,
        wasted_bytes: of.wasted_bytes,
        strings: of.strings,
        strings_used_bytes: of.strings_used_bytes,
        strings_free_bytes: of.strings_free_bytes,
        scripts: of.scripts,
        keys: of.keys,
        keys_max: of.keys_max,
        hits: of.hits,
        misses: of.misses,
        restarts_memory: of.restarts_memory,
        restarts_keys: of.restarts_keys,
        restarts_manual: of.restarts_manual,
        is_full: of.is_full != 0,
    })
}

/// Returns the folder of the session files, if sessions are files.
pub(crate) fn sessions() -> Option<String> {
    // SAFETY: after `php_startup`.
    let folder = unsafe { samovar_sessions() };
    directive(folder)
}

/// Returns the directives and extensions of the started PHP, and the environment.
pub(crate) fn setup() -> PhpSetup {
    let value = |name: &str| {
        let name = CString::new(name).ok()?;
        // SAFETY: after `php_startup`; a NUL-terminated string.
        directive(unsafe { samovar_directive(name.as_ptr()) })
    };
    // SAFETY: after `php_startup`; any number is allowed.
    let extension = |number| directive(unsafe { samovar_extension(number) });
    let pair = |name: &&str, value: Option<String>| Some(((*name).to_owned(), value?));
    PhpSetup {
        directives: DIRECTIVES.iter().filter_map(|name| pair(name, value(name))).collect(),
        extensions: (0..EXTENSIONS_MAX).map_while(extension).collect(),
        environment: VARIABLES
            .iter()
            .filter_map(|name| pair(name, std::env::var(name).ok()))
            .collect(),
        ..PhpSetup::default()
    }
}

/// Converts a directive's value, which may be null.
fn directive(value: *const c_char) -> Option<String> {
    if value.is_null() {
        return None;
    }
    // SAFETY: NUL-terminated, and valid until the directive is set again.
    Some(unsafe { CStr::from_ptr(value) }.to_string_lossy().into_owned())
}

/// Returns the version of the loaded libphp.
pub(crate) fn php_version() -> String {
    // SAFETY: after `php_startup`.
    let version = unsafe { samovar_php_version() };
    // SAFETY: a NUL-terminated string of the running engine, or a literal.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// Returns an address in libphp's code.
pub(crate) fn php_code() -> usize {
    // SAFETY: only returns an address.
    unsafe { samovar_php_code() }
}

/// Returns the version of the headers that this binary was compiled with.
pub(crate) fn php_built_for() -> String {
    // SAFETY: only returns a literal.
    let version = unsafe { samovar_php_built_for() };
    // SAFETY: a literal of the C part.
    unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned()
}

/// Returns the build ID of modules for those headers.
pub(crate) fn php_api_built_for() -> String {
    // SAFETY: only returns a literal.
    let api = unsafe { samovar_php_api_built_for() };
    // SAFETY: a literal of the C part.
    unsafe { CStr::from_ptr(api) }.to_string_lossy().into_owned()
}
