//! `samovar lint`: the process that compiles the files of orders and runs none.
//!
//! The loop is in `csrc/model/compile_only.c`. It asks here for the next file and reports here.

use crate::options::open;
use crate::php_options::PhpOptions;
use crate::{boundary, cli_settings, os};
use samovar_channel::{
    Heard, LINT_FILE_BYTES_MAX, LINT_FINDINGS_MAX, LintCompilerEnd, LintEvent, LintFinding,
    LintStart,
};
use std::cell::UnsafeCell;
use std::error::Error;
use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;

/// A file as C gets it: `samovar_source` in `boundary.h`.
#[repr(C)]
struct Source {
    name: *const c_char,
    name_len: usize,
    text: *const c_char,
    len: usize,
}

struct Compiler {
    channel: LintCompilerEnd,
    /// The file that is being compiled.
    name: Vec<u8>,
    text: Vec<u8>,
    is_busy: bool,
    findings: usize,
}

struct Global(UnsafeCell<Option<Compiler>>);
// SAFETY: the process has one thread. Only the functions below use it, which call no PHP.
unsafe impl Sync for Global {}
static COMPILER: Global = Global(UnsafeCell::new(None));

/// Starts PHP and compiles until the channel ends.
pub(crate) fn run(start: &LintStart) -> Result<ExitCode, Box<dyn Error>> {
    let channel = LintCompilerEnd::from(open(start.channel, "the channel")?);
    os::close_on_exec(&channel);
    os::close_others(&[channel.as_raw_fd()]);
    os::terminate_with_parent(start.parent);
    let variables = cli_settings::use_files_of_cli(start.options.php_ini.as_deref());
    boundary::php_startup(PhpOptions::new(&start.options, false)?)?;
    cli_settings::remove(&variables);
    cli_settings::check_version()?;
    os::reset_rust_signal_handlers();
    // The parent's thread may end now. From here on the end of the channel ends this process.
    let _ = rustix::process::set_parent_process_death_signal(None);
    channel.send(&LintEvent::Ready { php: boundary::php_version() })?;
    let compiler =
        Compiler { channel, name: Vec::new(), text: Vec::new(), is_busy: false, findings: 0 };
    // SAFETY: see `Global`; PHP does not run yet.
    unsafe { *COMPILER.0.get() = Some(compiler) };
    boundary::php_compile();
    Ok(ExitCode::SUCCESS)
}

impl Compiler {
    /// Ends the current file and waits for the next. Returns whether there is one.
    fn next(&mut self) -> bool {
        if self.is_busy && !self.done("") {
            return false;
        }
        loop {
            let (order, passed) = match self.channel.hear() {
                Ok(Heard::Message(order, passed)) => (order, passed),
                Ok(Heard::End | Heard::Garbled(_)) | Err(_) => return false,
            };
            self.name = order.name;
            self.findings = 0;
            match read(passed, &mut self.text) {
                Ok(()) => {
                    self.is_busy = true;
                    return true;
                }
                Err(error) if self.done(&error) => {}
                Err(_) => return false,
            }
        }
    }

    fn done(&mut self, error: &str) -> bool {
        self.is_busy = false;
        self.channel.send(&LintEvent::Done { error: error.to_owned() }).is_ok()
    }
}

fn read(passed: Option<OwnedFd>, text: &mut Vec<u8>) -> Result<(), String> {
    text.clear();
    let file = File::from(passed.ok_or("its descriptor was not passed")?);
    let mut limited = file.take(LINT_FILE_BYTES_MAX + 1);
    limited.read_to_end(text).map_err(|error| error.to_string())?;
    if u64::try_from(text.len()).is_ok_and(|len| len > LINT_FILE_BYTES_MAX) {
        return Err(format!("it is larger than {} MiB", LINT_FILE_BYTES_MAX >> 20));
    }
    Ok(())
}

/// Called by PHP's loop.
#[unsafe(no_mangle)]
extern "C" fn samovar_next_source(source: *mut Source) -> bool {
    // SAFETY: see `Global`.
    let Some(compiler) = (unsafe { &mut *COMPILER.0.get() }) else { return false };
    let is_more = compiler.next();
    let (name, text) = (&compiler.name, &compiler.text);
    let next = Source {
        name: name.as_ptr().cast(),
        name_len: name.len(),
        text: text.as_ptr().cast(),
        len: text.len(),
    };
    // SAFETY: boundary.h: a pointer to a local of the caller.
    unsafe { *source = next };
    is_more
}

/// Called for each message of PHP.
#[unsafe(no_mangle)]
extern "C" fn samovar_source_message(
    kind: *const c_char,
    is_error: bool,
    line: u32,
    message: *const c_char,
    len: usize,
) {
    // SAFETY: see `Global`.
    let Some(compiler) = (unsafe { &mut *COMPILER.0.get() }) else { return };
    compiler.findings += 1;
    // The error that ends a file comes last, and is never left out.
    if compiler.findings > LINT_FINDINGS_MAX && !is_error {
        return;
    }
    // SAFETY: boundary.h: NUL-terminated.
    let kind = unsafe { CStr::from_ptr(kind) }.to_string_lossy().into_owned();
    // SAFETY: boundary.h: `len` bytes.
    let message = unsafe { std::slice::from_raw_parts(message.cast::<u8>(), len) };
    let message = String::from_utf8_lossy(message).into_owned();
    let finding = LintFinding { line, is_error, kind, message };
    // A closed channel ends the loop at the end of this file.
    let _ = compiler.channel.send(&LintEvent::Found(finding));
}
