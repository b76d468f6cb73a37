//! `samovar test`: the process that boots PHP's command line and a test framework once, and is
//! forked for each unit of tests.
//!
//! The driver, a PHP script, asks for orders with a function of `csrc/model/test_image.c`. The
//! call waits here. It returns in the process itself to load classes, and in each child to run
//! tests.
//! Units are killed by process group, so that programs which they have started end with them.
//! `orphans.rs` ends those that have left the group.

mod orphans;

use crate::options::open;
use crate::php_options::PhpOptions;
use crate::{boundary, cli_settings, os, relinking, shared};
use orphans::Orphans;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process_group, pidfd_open, setpgid, waitpid,
};
use samovar_channel::{Heard, TEST_FILES_PREFIX, TestEvent, TestImageEnd, TestOrder, TestStart};
use samovar_published::Region;
use samovar_shared::Shared;
use std::cell::UnsafeCell;
use std::error::Error;
use std::ffi::{CString, OsString, c_char};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of units that run at the same time; `samovar test` allows fewer.
const UNITS_MAX: usize = 1024;
/// Memory for Samovar's shared objects in one unit, bytes. Its pages are used on demand.
const SHARED_BYTES: u64 = 16 << 20;
/// Maximum time for the end of a unit that was killed.
const END_LIMIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A running unit.
struct Unit {
    number: u32,
    pid: Pid,
    /// Becomes readable when the process ends.
    end: OwnedFd,
}

struct Image {
    channel: TestImageEnd,
    units: Vec<Unit>,
    is_ready: bool,
    /// The file of the latest order.
    order: Vec<u8>,
    /// Folder of the files of the run.
    files: Option<PathBuf>,
    orphans: Orphans,
}

struct Global(UnsafeCell<Option<Image>>);
// SAFETY: the process has one thread. Only `samovar_next_test_order` uses it, which calls no PHP.
unsafe impl Sync for Global {}
static IMAGE: Global = Global(UnsafeCell::new(None));

/// Boots PHP and runs the driver. Returns in each child as well.
pub(crate) fn run(start: TestStart) -> Result<ExitCode, Box<dyn Error>> {
    let channel = TestImageEnd::from(open(start.channel, "the channel")?);
    os::close_on_exec(&channel);
    os::close_others(&[channel.as_raw_fd()]);
    // The boot may take any time and does not look at the channel.
    os::terminate_with_parent(start.parent);
    let variables = cli_settings::use_files_of_cli(start.options.php_ini.as_deref());
    boundary::php_startup(PhpOptions::new(&start.options, false)?)?;
    cli_settings::remove(&variables);
    cli_settings::check_version()?;
    os::reset_rust_signal_handlers();
    relinking::relink(start.options.relink);
    let files = start.driver.parent().map(Path::to_owned);
    let word = |path: PathBuf| CString::new(path.into_os_string().into_vec());
    let binary = php_binary(&boundary::php_built_for()).map(word).transpose()?.unwrap_or_default();
    let (driver, script) = (word(start.driver)?, word(start.script)?);
    let image = Image {
        channel,
        units: Vec::new(),
        is_ready: false,
        order: Vec::new(),
        files,
        orphans: Orphans::default(),
    };
    // SAFETY: see `Global`; PHP does not run yet.
    unsafe { *IMAGE.0.get() = Some(image) };
    let status = boundary::php_tests(&driver, &script, &binary);
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Finds PHP's command line of this version on `PATH`.
fn php_binary(version: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let names =
        [format!("php{}", cli_settings::minor(version)), "php".to_owned()].map(OsString::from);
    names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

/// The next step of PHP.
enum Next {
    /// It loads classes in this process.
    Load,
    /// It runs tests in this process, a child.
    Run,
    /// It ends.
    End,
}

/// Called by the driver: waits for an order, reports and forks units meanwhile.
#[unsafe(no_mangle)]
extern "C" fn samovar_next_test_order(len: *mut usize, is_child: *mut bool) -> *const c_char {
    // SAFETY: see `Global`.
    let Some(image) = (unsafe { &mut *IMAGE.0.get() }) else { return std::ptr::null() };
    let next = image.next().unwrap_or(Next::End);
    // SAFETY: boundary.h: a pointer to a local of the caller.
    unsafe { *len = image.order.len() };
    // SAFETY: as above.
    unsafe { *is_child = matches!(next, Next::Run) };
    if let Next::End = next {
        image.end_units();
        return std::ptr::null();
    }
    image.order.as_ptr().cast()
}

impl Image {
    fn next(&mut self) -> io::Result<Next> {
        if !self.is_ready {
            self.is_ready = true;
            self.orphans = Orphans::adopt();
            // From here on the end of the channel ends this process, and with it all units.
            let _ = rustix::process::set_parent_process_death_signal(None);
            self.channel.send(&TestEvent::Ready { php: boundary::php_version() })?;
        }
        loop {
            self.wait()?;
            self.report_ends()?;
            match self.channel.hear_now()? {
                None => {}
                Some(Heard::Message(TestOrder::End, _)) => return Ok(Next::End),
                Some(Heard::End | Heard::Garbled(_)) => {
                    self.end_units();
                    self.remove_files();
                    return Ok(Next::End);
                }
                Some(Heard::Message(TestOrder::Load { order }, _)) => {
                    self.order = order.into_os_string().into_vec();
                    return Ok(Next::Load);
                }
                Some(Heard::Message(TestOrder::Kill { unit }, _)) => {
                    self.units.iter().filter(|running| running.number == unit).for_each(Unit::kill);
                }
                Some(Heard::Message(TestOrder::Fork { unit, order, output }, _)) => {
                    let is_child = self.fork(unit, order, &output)?;
                    if is_child {
                        return Ok(Next::Run);
                    }
                }
            }
        }
    }

    /// Waits for an order or for the end of a unit.
    fn wait(&self) -> io::Result<()> {
        let ends = self.units.iter().map(|unit| unit.end.as_fd());
        let fds = std::iter::once(self.channel.as_fd()).chain(ends);
        let mut polled: Vec<_> =
            fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        retry_on_intr(|| poll(&mut polled, None))?;
        Ok(())
    }

    fn report_ends(&mut self) -> io::Result<()> {
        let mut n = 0;
        while n < self.units.len() {
            let unit = &self.units[n];
            let status = match waitpid(Some(unit.pid), WaitOptions::NOHANG) {
                Ok(None) => {
                    n += 1;
                    continue;
                }
                Ok(Some((_, status))) => status.as_raw(),
                // A signal handler of the application's boot has waited for it.
                Err(_) => 0,
            };
            // Programs that the unit has started do not outlive it.
            unit.kill();
            let unit = self.units.swap_remove(n).number;
            let running: Vec<_> = self.units.iter().map(|unit| unit.pid).collect();
            self.orphans.end(Some(unit), &running);
            self.channel.send(&TestEvent::Died { unit, status })?;
        }
        Ok(())
    }

    /// Forks a unit. Returns true in the child.
    fn fork(&mut self, unit: u32, order: PathBuf, output: &Path) -> io::Result<bool> {
        let failed = |why: String| TestEvent::Failed { unit, why };
        if self.units.len() >= UNITS_MAX {
            let why = format!("{UNITS_MAX} units run already");
            self.channel.send(&failed(why))?;
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
        let output = match rustix::fs::open(output, flags, Mode::RUSR | Mode::WUSR) {
            Ok(output) => output,
            Err(error) => {
                self.channel
                    .send(&failed(format!("cannot open `{}`: {error}", output.display())))?;
                return Ok(false);
            }
        };
        let parent = os::own_pid();
        // SAFETY: the process has one thread, so the child may continue as an ordinary process.
        match unsafe { libc::fork() } {
            -1 => {
                let why = io::Error::last_os_error().to_string();
                self.channel.send(&failed(why))?;
                Ok(false)
            }
            0 => {
                os::die_with_parent(parent);
                os::lead_group();
                os::print_to(&output);
                self.order = order.into_os_string().into_vec();
                self.units.clear();
                os::close(self.channel.as_raw_fd());
                share_memory();
                Ok(true)
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
                // The child does the same: a kill that follows must reach the group in any case.
                let _ = setpgid(Some(pid), Some(pid));
                let end = pidfd_open(pid, PidfdFlags::empty())?;
                self.units.push(Unit { number: unit, pid, end });
                self.channel.send(&TestEvent::Forked { unit, pid: pid.as_raw_pid() })?;
                Ok(false)
            }
        }
    }

    /// Removes the files of a command that was killed.
    fn remove_files(&self) {
        let is_ours = |folder: &&PathBuf| {
            let name = folder.file_name().map(std::ffi::OsStr::as_encoded_bytes);
            name.is_some_and(|name| name.starts_with(TEST_FILES_PREFIX.as_bytes()))
        };
        if let Some(folder) = self.files.as_ref().filter(is_ours) {
            // The next run removes them otherwise.
            let _ = std::fs::remove_dir_all(folder);
        }
    }

    fn end_units(&mut self) {
        self.units.iter().for_each(Unit::kill);
        for unit in self.units.drain(..) {
            let mut end = [PollFd::from_borrowed_fd(unit.end.as_fd(), PollFlags::IN)];
            let _ = retry_on_intr(|| poll(&mut end, Some(&END_LIMIT)));
        }
        self.orphans.end(None, &[]);
    }
}

impl Unit {
    fn kill(&self) {
        // Fails if the group has no process any more.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

/// Gives this process its own memory for Samovar's shared objects, so that units do not see each
/// other's. Without memory, these objects are not available.
fn share_memory() {
    // Nothing serves the other end: a publication fails.
    let Ok((publishing, _)) = UnixDatagram::pair() else { return };
    if let (Ok(shared), Ok(region)) = (Shared::create(SHARED_BYTES), Region::create(SHARED_BYTES)) {
        shared::attach(shared, region, publishing.into());
        shared::begin();
    }
}
