//! A file system that hangs: a FUSE mount whose process never responds.
#![allow(unsafe_code)]

use crate::confine::may_mount;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A mounted file system on which every access waits until this is dropped.
#[derive(Debug)]
pub struct MuteMount {
    at: CString,
    /// Closing it ends all waits.
    device: Option<File>,
}

impl MuteMount {
    /// Mounts it over the folder `at`. The error is the reason why this is impossible here.
    pub fn over(at: &Path) -> Result<MuteMount, String> {
        may_mount()?;
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("no FUSE here: {error}"))?;
        let options =
            format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let options = CString::new(options).expect("no NUL");
        let at = CString::new(at.as_os_str().as_bytes()).expect("no NUL in our own path");
        // SAFETY: all are strings with a NUL at their end, which live until it returns.
        let result = unsafe {
            libc::mount(c"mute".as_ptr(), at.as_ptr(), c"fuse".as_ptr(), 0, options.as_ptr().cast())
        };
        if result != 0 {
            return Err(format!("no FUSE here: {}", io::Error::last_os_error()));
        }
        Ok(MuteMount { at, device: Some(device) })
    }
}

impl Drop for MuteMount {
    fn drop(&mut self) {
        self.device.take();
        // SAFETY: a string with a NUL at its end.
        unsafe { libc::umount2(self.at.as_ptr(), libc::MNT_DETACH) };
    }
}
