//! `/proc/PID/maps`: the files that a process has mapped, and their addresses.

use crate::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;

/// Maximum number of mappings that are read; the kernel's own default limit is 65,530 per process.
const MAPPINGS_MAX: usize = 262_144;

/// Maximum bytes read of the file: a line may be as long as a path.
const BYTES_MAX: u64 = 64 << 20;

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) range: Range<u64>,
    /// As in the file: `r-xp`.
    pub(crate) rights: [u8; 4],
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) device: String,
    pub(crate) inode: u64,
    /// Empty for memory without a file.
    pub(crate) path: PathBuf,
}

impl Mapping {
    pub(crate) fn is_written(&self) -> bool {
        self.rights[1] == b'w'
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.rights[3] == b's'
    }

    /// Whether the file was deleted, as the kernel marks it.
    pub(crate) fn is_deleted(&self) -> bool {
        self.path.to_string_lossy().ends_with(" (deleted)")
    }

    /// Its name below `/proc/PID/map_files`.
    pub(crate) fn file_name(&self) -> String {
        format!("{:x}-{:x}", self.range.start, self.range.end)
    }
}

/// All mappings of a process, in the order of their addresses.
pub(crate) fn of(pid: u32) -> Result<Vec<Mapping>, Error> {
    let path = format!("/proc/{pid}/maps");
    let file = std::fs::File::open(&path).map_err(|e| Error::of_file(pid, &path, e))?;
    let mut found = Vec::new();
    for line in BufReader::new(file.take(BYTES_MAX)).split(b'\n').take(MAPPINGS_MAX) {
        let line = line.map_err(|e| Error::of_file(pid, &path, e))?;
        found.extend(parse(&String::from_utf8_lossy(&line)));
    }
    Ok(found)
}

/// `55d0-55d1 r-xp 00002000 fe:01 1234    /usr/bin/php8.2`
fn parse(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind.trim_start();
        word
    };
    let (start, end) = word().split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let range = hex(start)?..hex(end)?;
    let rights = word().as_bytes().try_into().ok()?;
    let offset = hex(word())?;
    let device = word().to_owned();
    let inode = word().parse().ok()?;
    Some(Mapping { range, rights, offset, device, inode, path: PathBuf::from(rest) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_lines_are_parsed_or_left_out() {
        let found = parse("55d0-65d1 r-xs 00002000 fe:01 1234      /usr/lib/a b.so (deleted)");
        let found = found.expect("a mapping");
        assert_eq!(found.range, 0x55d0..0x65d1);
        assert_eq!((found.offset, found.inode, found.device.as_str()), (0x2000, 1234, "fe:01"));
        assert_eq!(found.path.to_str(), Some("/usr/lib/a b.so (deleted)"));
        assert!(found.is_shared() && !found.is_written());
        assert_eq!(found.file_name(), "55d0-65d1");
        for wrong in ["", "55d0", "55d0-x r-xp 0 0 0", "1-2 r-xpp 0 0:0 0", "1-2 rwxp 0 0:0"] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn own_mappings_are_found() {
        let own = of(std::process::id()).expect("our own mappings");
        assert!(own.iter().any(|m| m.path.to_str() == Some("[stack]") && m.is_written()));
        assert!(matches!(of(0), Err(Error::Gone { .. })));
    }
}
