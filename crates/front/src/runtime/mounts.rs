//! Detects whether a file system is mounted that may hang: a network file system, or one served by
//! a process.
//!
//! If there is none, files may be looked up on any thread.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Read, Seek};

/// The kernel's list of mounts. A poll on it reports changes (proc(5), `/proc/PID/mounts`).
const MOUNTS: &str = "/proc/self/mountinfo";
/// Names of local file systems, and of those that the kernel itself provides. All others may hang.
const NEAR: [&str; 40] = [
    "bcachefs",
    "binfmt_misc",
    "bpf",
    "btrfs",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "erofs",
    "ext2",
    "ext3",
    "ext4",
    "exfat",
    "f2fs",
    "fusectl",
    "hugetlbfs",
    "iso9660",
    "jfs",
    "mqueue",
    "nsfs",
    "ntfs3",
    "overlay",
    "proc",
    "pstore",
    "ramfs",
    "reiserfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "squashfs",
    "sysfs",
    "tmpfs",
    "tracefs",
    "udf",
    "vfat",
    "xfs",
    "zfs",
];
/// Folders that contain no files of a site. Mounts below them are ignored.
const ELSEWHERE: [&str; 2] = ["/proc", "/sys"];

/// The current mounts, as reported by the kernel.
#[derive(Debug)]
pub(crate) struct Mounts {
    list: RefCell<Option<File>>,
    may_hang: Cell<bool>,
}

impl Mounts {
    /// Reads the list for the first time.
    pub(crate) fn new() -> Mounts {
        let mounts = Mounts { list: RefCell::new(File::open(MOUNTS).ok()), ..Mounts::unknown() };
        mounts.look();
        mounts
    }

    /// Mounts of a system whose list cannot be read.
    pub(crate) fn unknown() -> Mounts {
        Mounts { list: RefCell::new(None), may_hang: Cell::new(true) }
    }

    /// Whether one of the mounts may hang. True if the list cannot be read.
    pub(crate) fn may_hang(&self) -> bool {
        if self.have_changed() {
            self.look();
        }
        self.may_hang.get()
    }

    fn have_changed(&self) -> bool {
        let list = self.list.borrow();
        let Some(list) = &*list else { return false };
        let mut asked = [PollFd::new(list, PollFlags::PRI)];
        let at_once = Timespec::default();
        // If the poll fails, the list is read again.
        poll(&mut asked, Some(&at_once)) != Ok(0)
    }

    fn look(&self) {
        let mut list = self.list.borrow_mut();
        let read = |list: &mut File| -> io::Result<String> {
            list.rewind()?;
            let mut text = String::new();
            list.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = list.as_mut().and_then(|list| read(list).ok());
        self.may_hang.set(text.is_none_or(|text| text.lines().any(is_far)));
    }
}

/// Whether a line of the list describes a file system that may hang.
fn is_far(line: &str) -> bool {
    let Some((place, kind)) = line.split_once(" - ") else { return true };
    let at = place.split(' ').nth(4).unwrap_or_default();
    let is_elsewhere = ELSEWHERE.iter().any(|folder| {
        at.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    let kind = kind.split(' ').next().unwrap_or_default();
    !is_elsewhere && !NEAR.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_and_fuse_mounts_may_hang() {
        for (line, expected) in [
            ("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard", false),
            ("27 1 0:50 / /srv/a\\040b rw - overlay overlay rw,lowerdir=/a", false),
            ("22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw", false),
            ("40 22 0:35 / /proc/sys/fs/binfmt_misc rw shared:2 - autofs systemd-1 rw", false),
            ("41 22 0:36 / /proc/cpuinfo rw - fuse.lxcfs lxcfs rw", false),
            ("42 27 0:37 / /process rw - fuse.sshfs a@b:/c rw", true),
            ("43 27 0:38 / /srv rw master:1 - nfs4 10.0.0.1:/srv rw,vers=4.2", true),
            ("44 27 0:39 / /home rw - autofs /etc/auto.home rw", true),
            ("45 27 0:40 / /mnt rw - 9p share rw", true),
            ("nothing that is known", true),
        ] {
            assert_eq!(is_far(line), expected, "{line}");
        }
    }

    #[test]
    fn mounts_of_this_machine_are_parsed() {
        let text = std::fs::read_to_string("/proc/self/mountinfo").expect("the kernel's list");
        assert_eq!(Mounts::new().may_hang(), text.lines().any(is_far));
        let unknown = Mounts::unknown();
        unknown.look();
        assert!(unknown.may_hang());
    }
}
