//! Removes secrets from this process's environment and command line, before other processes exist.
//!
//! The kernel shows both in `/proc/PID`, from the memory that the process was started with. So the
//! original texts are overwritten. Children inherit the other variables. A successor, and a server
//! that another command starts, get the secrets back through [`variables`] and [`arguments`].

use std::ffi::{CStr, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

unsafe extern "C" {
    /// The process's variables, as `NAME=value`; ends with a null pointer.
    static environ: *const *mut c_char;
}

/// Position of the start and the end of the arguments in `/proc/self/stat`, counted after the
/// program's name (proc(5): fields 48 and 49).
const ARGUMENTS_IN_STAT: [usize; 2] = [45, 46];

static ORIGINAL: OnceLock<Original> = OnceLock::new();

#[derive(Default)]
struct Original {
    variables: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
}

/// Names of secrets.
#[derive(Debug)]
pub struct SecretNames {
    /// Variables, such as `SAMOVAR_ADMIN_TOKEN`.
    pub variables: Vec<String>,
    /// Flags with their dashes, such as `--admin-token`.
    pub flags: Vec<String>,
}

/// Removes the secrets of these names. Must be called on the main thread, before any other thread
/// exists; a second call does nothing.
///
/// # Errors
/// There are other threads, or the kernel does not show where the arguments are.
pub fn conceal(names: &SecretNames) -> io::Result<()> {
    let is_set = |name: &String| std::env::var_os(name).is_some();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let has_any =
        names.variables.iter().any(is_set) || !secret_parts(&arguments, &names.flags).is_empty();
    if !has_any || ORIGINAL.get().is_some() {
        return Ok(());
    }
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("other threads are running"));
    }
    // Another call cannot have been first: there is one thread.
    let _ = ORIGINAL.set(Original { variables: conceal_variables(&names.variables), arguments });
    conceal_arguments(&names.flags)
}

/// Returns the secret variables that this process was started with.
pub fn variables() -> &'static [(OsString, OsString)] {
    ORIGINAL.get().map_or(&[], |original| &original.variables)
}

/// Returns the arguments that this process was started with, including its name.
pub fn arguments() -> Vec<OsString> {
    ORIGINAL.get().map_or_else(|| std::env::args_os().collect(), |found| found.arguments.clone())
}

fn conceal_variables(names: &[String]) -> Vec<(OsString, OsString)> {
    let mut found = Vec::new();
    // SAFETY: this is the only thread, so the table of variables does not change meanwhile.
    let mut next = unsafe { environ };
    while !next.is_null() {
        // SAFETY: within the table, which ends with a null pointer.
        let entry = unsafe { *next };
        if entry.is_null() {
            break;
        }
        // SAFETY: the end is not reached.
        next = unsafe { next.add(1) };
        // SAFETY: each entry is a C string.
        let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
        let Some(end) = text.iter().position(|byte| *byte == b'=') else { continue };
        if names.iter().any(|name| name.as_bytes() == &text[..end]) {
            let [name, value] =
                [&text[..end], &text[end + 1..]].map(|part| OsString::from_vec(part.to_vec()));
            found.push((name, value, entry, text.len()));
        }
    }
    for (name, ..) in &found {
        // SAFETY: this is the only thread.
        unsafe { std::env::remove_var(name) };
    }
    for (_, _, entry, length) in &found {
        // SAFETY: the string has this length and is writable: it belongs to the process's initial
        // stack. No variable points to it any more.
        unsafe { entry.write_bytes(0, *length) };
    }
    found.into_iter().map(|(name, value, ..)| (name, value)).collect()
}

fn conceal_arguments(flags: &[String]) -> io::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let secrets = secret_parts(&arguments, flags);
    if secrets.is_empty() {
        return Ok(());
    }
    let (start, end) = arguments_in_memory(&std::fs::read_to_string("/proc/self/stat")?)
        .ok_or_else(|| io::Error::other("cannot find the arguments in /proc/self/stat"))?;
    let whole: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
    if end.checked_sub(start) != Some(whole) {
        return Err(io::Error::other("the arguments in memory differ from those of the start"));
    }
    for (offset, length) in secrets {
        // SAFETY: the kernel reports this range as the arguments; it is as long as all of them, so
        // the part is within it. It is writable stack memory. The standard library reads it only
        // in `args_os`, and this is the only thread.
        unsafe { ((start + offset) as *mut u8).write_bytes(b'*', length) };
    }
    Ok(())
}

/// Returns offset and length of each secret in the arguments, which are separated by one byte.
fn secret_parts(arguments: &[OsString], flags: &[String]) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let (mut offset, mut is_value) = (0, false);
    for argument in arguments.iter().map(|argument| OsStr::as_bytes(argument)) {
        if is_value {
            parts.push((offset, argument.len()));
        }
        is_value = !is_value && flags.iter().any(|flag| flag.as_bytes() == argument);
        let value = flags
            .iter()
            .find_map(|flag| argument.strip_prefix(flag.as_bytes())?.strip_prefix(b"="));
        parts.extend(value.map(|value| (offset + argument.len() - value.len(), value.len())));
        offset += argument.len() + 1;
    }
    parts
}

fn arguments_in_memory(stat: &str) -> Option<(usize, usize)> {
    // The name of the program is in parentheses and may contain blanks and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let [first, end] = ARGUMENTS_IN_STAT.map(|at| fields.get(at)?.parse().ok());
    Some((first?, end?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_parts_covers_both_notations_of_a_flag() {
        let flags = ["--token".to_owned()];
        for (arguments, expected) in [
            (&["serve", "--token", "abc", "x"][..], &[(14, 3)][..]),
            (&["serve", "--token=abc", "x"], &[(14, 3)]),
            (&["serve", "--token", "--token", "abc"], &[(14, 7)]),
            (&["serve", "--tokens=abc", "--token"], &[]),
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(secret_parts(&arguments, &flags), expected, "{arguments:?}");
        }
    }

    #[test]
    fn arguments_in_memory_are_those_of_this_process() {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
        let (first, end) = arguments_in_memory(&stat).expect("a range");
        let whole: usize = std::env::args_os().map(|argument| argument.len() + 1).sum();
        assert_eq!(end - first, whole);
        assert_eq!(arguments_in_memory("1 (a b) c) R 1"), None);
    }
}
