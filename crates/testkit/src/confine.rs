//! The environment that a server is started in: small disks, a control group.
//!
//! All of it belongs to the server alone and ends with it. Disks are mounted in a mount namespace
//! of the server, and are accessed from outside through a descriptor of their root.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder in which control groups of version 1 and 2 are searched.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Actions between fork and exec.
#[derive(Debug, Default)]
pub(crate) struct Confinement {
    /// Mount points and the options of their tmpfs.
    disks: Vec<(CString, CString)>,
    stderr: Option<CString>,
    groups: Vec<File>,
}

impl Confinement {
    pub(crate) fn disk(&mut self, at: &Path, bytes: u64) {
        std::fs::create_dir_all(at).expect("our own folder");
        let options = CString::new(format!("size={bytes},mode=0777")).expect("no NUL");
        self.disks.push((c_path(at), options));
    }

    pub(crate) fn stderr(&mut self, path: &Path) {
        self.stderr = Some(c_path(path));
    }

    pub(crate) fn group(&mut self, group: &Cgroup) {
        let procs = group.path.join("cgroup.procs");
        self.groups.push(File::options().write(true).open(procs).expect("our own group"));
    }

    /// Makes `command` start in this environment.
    pub(crate) fn apply(self, command: &mut Command) {
        if self.disks.is_empty() && self.stderr.is_none() && self.groups.is_empty() {
            return;
        }
        // SAFETY: `enter` makes only system calls with prepared data, and allocates nothing.
        unsafe { command.pre_exec(move || self.enter()) };
    }

    fn enter(&self) -> io::Result<()> {
        for mut group in &self.groups {
            group.write_all(b"0")?;
        }
        if !self.disks.is_empty() {
            own_mounts()?;
        }
        for (at, options) in &self.disks {
            // SAFETY: all are NUL-terminated strings that live until the call returns.
            check(unsafe {
                libc::mount(
                    c"tmpfs".as_ptr(),
                    at.as_ptr(),
                    c"tmpfs".as_ptr(),
                    0,
                    options.as_ptr().cast(),
                )
            })?;
        }
        if let Some(path) = &self.stderr {
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
            // SAFETY: a NUL-terminated string that lives until the call returns.
            let file = unsafe { libc::open(path.as_ptr(), flags, 0o666) };
            check(file)?;
            // SAFETY: no pointers.
            check(unsafe { libc::dup2(file, 2) })?;
        }
        Ok(())
    }
}

/// Creates a mount namespace for this process; its mounts do not propagate out of it.
fn own_mounts() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: NUL-terminated strings; the others may be null for this kind of call (man 2 mount).
    check(unsafe {
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null())
    })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("a path has no NUL")
}

/// Whether this user may mount disks; the error is the reason why not.
pub fn may_mount() -> Result<(), String> {
    // SAFETY: no pointers. If root may not mount, it lacks CAP_SYS_ADMIN (bit 21).
    let is_root = unsafe { libc::geteuid() } == 0;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    if is_root && set >> 21 & 1 == 1 {
        return Ok(());
    }
    Err("small disks need root with CAP_SYS_ADMIN: they are mounted".to_owned())
}

/// A small file system of a server. It exists until both the server and this value have ended.
#[derive(Debug)]
pub struct Disk {
    root: File,
}

impl Disk {
    /// The disk mounted at `at` in the mount namespace of process `pid`.
    pub(crate) fn of(pid: i32, at: &Path) -> Disk {
        let inside = format!("/proc/{pid}/root{}", at.display());
        let root = File::open(&inside).unwrap_or_else(|e| panic!("cannot open `{inside}`: {e}"));
        Disk { root }
    }

    /// A path to a file on it, for this process.
    pub fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.root.as_raw_fd()))
    }

    /// Fills it to the last byte.
    pub fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.path("filler"));
        for bytes in [vec![0; 64 * 1024], vec![0; 64]] {
            // Ends with "no space left" when the disk is full at the latest.
            while file.as_mut().is_ok_and(|file| file.write_all(&bytes).is_ok()) {}
        }
    }

    /// Frees `bytes` of it.
    pub fn give_back(&self, bytes: u64) {
        let file = File::options().write(true).open(self.path("filler")).expect("it was filled");
        let len = file.metadata().expect("our own file").len();
        file.set_len(len.saturating_sub(bytes)).expect("our own file");
    }

    /// Frees all of its space.
    pub fn empty(&self) {
        // It may never have been filled.
        let _ = std::fs::remove_file(self.path("filler"));
    }
}

/// A control group of one test; removed when dropped.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a control group of that controller (`pids`, `memory`); the error is the reason why
    /// it cannot.
    pub fn create(controller: &str) -> Result<Cgroup, String> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("samovar-test-{}-{count}", std::process::id());
        let first = Path::new(CGROUPS).join(controller);
        let (parent, probe) =
            if first.is_dir() { (first, None) } else { (PathBuf::from(CGROUPS), Some(controller)) };
        if let Some(controller) = probe {
            let file = parent.join("cgroup.subtree_control");
            let enabled = std::fs::read_to_string(&file)
                .map_err(|e| format!("no controller `{controller}`: `{}`: {e}", file.display()))?;
            if !enabled.split_whitespace().any(|word| word == controller) {
                return Err(format!("`{}` does not enable `{controller}`", file.display()));
            }
        }
        let path = parent.join(name);
        std::fs::create_dir(&path)
            .map_err(|e| format!("cannot make the control group `{}`: {e}", path.display()))?;
        Ok(Cgroup { path })
    }

    /// Sets a limit, by its name in version 1 or in version 2.
    pub fn limit(&self, names: [&str; 2], value: &str) {
        let file = names.map(|name| self.path.join(name)).into_iter().find(|path| path.exists());
        let file = file.unwrap_or_else(|| panic!("no {names:?} in `{}`", self.path.display()));
        std::fs::write(&file, value)
            .unwrap_or_else(|e| panic!("cannot write {value} to `{}`: {e}", file.display()));
    }

    /// Reads a number, by its name in version 1 or in version 2.
    pub fn number(&self, names: [&str; 2]) -> Option<u64> {
        let texts = names.map(|name| std::fs::read_to_string(self.path.join(name)).ok());
        texts.into_iter().flatten().find_map(|text| text.trim().parse().ok())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It is busy as long as one of its processes lives. Leftover processes are reported
        // elsewhere.
        let _ = std::fs::remove_dir(&self.path);
    }
}
