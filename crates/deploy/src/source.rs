//! Where a release comes from: a folder, an archive, or standard input.

use crate::error::Error;
use crate::picked::Picked;
use crate::{tree, unpack};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Size of the buffers, bytes.
const BUFFER: usize = 128 << 10;

/// Source of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder, which is copied. `.git`, `.hg` and `.svn` are left out.
    Folder(PathBuf),
    /// A file in the tar format: plain, gzip or zstd.
    Archive(PathBuf),
    /// The same from standard input.
    Stdin,
}

impl Source {
    /// Returns the source of an argument: `-` is standard input.
    pub fn new(argument: &Path) -> Result<Source, Error> {
        if argument == Path::new("-") {
            return Ok(Source::Stdin);
        }
        let found = argument.metadata().map_err(|e| Error::file("read", argument, &e))?;
        let path = argument.canonicalize().map_err(|e| Error::file("read", argument, &e))?;
        Ok(if found.is_dir() { Source::Folder(path) } else { Source::Archive(path) })
    }

    /// Writes all files into the empty folder `to`. Returns the number of files.
    pub(crate) fn unpack(&self, to: &Path, picked: &Picked) -> Result<u64, Error> {
        match self {
            Source::Folder(from) => tree::copy(from, to, &picked.exclude),
            Source::Archive(path) => {
                let file = File::open(path).map_err(|error| Error::file("open", path, &error))?;
                unpack::unpack(tar_of(file)?, to, picked)
            }
            Source::Stdin => unpack::unpack(tar_of(io::stdin())?, to, picked),
        }
    }
}

/// Returns the tar file within `input`, by the first bytes of its format.
fn tar_of(input: impl Read + 'static) -> Result<Box<dyn Read>, Error> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let wrong = |error: io::Error| Error::new(format!("cannot read the archive: {error}"));
    let begin = input.fill_buf().map_err(wrong)?;
    Ok(match begin {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(zstd::Decoder::with_buffer(input).map_err(wrong)?),
        [b'P', b'K', ..] | [b'B', b'Z', b'h', ..] | [0xfd, b'7', b'z', ..] => {
            return Err(Error::new(
                "the archive is not a tar file\nhint: use .tar, .tar.gz or .tar.zst",
            ));
        }
        _ => Box::new(input),
    })
}
