//! Pages and files to compress, within limits.

use anyhow::{Result, anyhow, bail};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of samples, of their bytes together, and of the bytes of one.
const SAMPLES_MAX: usize = 2_000;
const BYTES_MAX: usize = 4 << 20;
const SAMPLE_BYTES_MAX: u64 = 1 << 20;
/// Maximum depth of folders.
const DEPTH_MAX: usize = 16;
/// Maximum time of each step of a request.
const STEP: Duration = Duration::from_secs(30);

/// Kind of the samples: the advice depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Compressed for each request.
    Pages,
    /// Compressed once, read often.
    Files,
}

/// The samples.
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) kind: Kind,
    /// At least one, none of them empty.
    pub(super) all: Vec<Vec<u8>>,
    /// Number of pages or files that were left out.
    pub(super) left_out: usize,
}

impl Samples {
    fn new(kind: Kind) -> Samples {
        Samples { kind, all: Vec::new(), left_out: 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        self.all.iter().map(Vec::len).sum()
    }

    fn add(&mut self, sample: Vec<u8>) {
        let fits = self.all.len() < SAMPLES_MAX && self.bytes() + sample.len() <= BYTES_MAX;
        if fits && !sample.is_empty() {
            self.all.push(sample);
        } else {
            self.left_out += 1;
        }
    }
}

/// Requests the pages.
pub(super) fn of_urls(urls: &[String]) -> Result<Samples> {
    let mut samples = Samples::new(Kind::Pages);
    for url in urls {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("`{url}` is not an address\nhint: write http://127.0.0.1:8080/");
        }
        let (status, body) =
            samovar_outbound::get(url, STEP, SAMPLE_BYTES_MAX).map_err(|error| {
                anyhow!(
                    "cannot read `{url}`: {error}\nhint: name a page of text that is smaller than \
                     1 MiB, and check that its server runs"
                )
            })?;
        if status != 200 {
            bail!("`{url}` has the status {status}\nhint: name a page that visitors get");
        }
        samples.add(body.into_bytes());
    }
    if samples.all.is_empty() {
        bail!("all pages are empty\nhint: name a page with a body");
    }
    Ok(samples)
}

/// Reads files, and the files in folders.
pub(super) fn of_files(paths: &[PathBuf]) -> Result<Samples> {
    let mut samples = Samples::new(Kind::Files);
    for path in paths {
        let failed = |error: std::io::Error| {
            anyhow!(
                "cannot read `{}`: {error}\nhint: name files of at most 1 MiB, or folders, that \
                 this user can read",
                path.display()
            )
        };
        let about = fs::metadata(path).map_err(failed)?;
        if about.is_dir() {
            fs::read_dir(path).map_err(failed)?;
            walk(path, DEPTH_MAX, &mut samples);
        } else {
            samples.add(read(path).map_err(failed)?);
        }
    }
    if samples.all.is_empty() {
        bail!("no file has contents\nhint: name files, or folders with files, of up to 1 MiB");
    }
    Ok(samples)
}

/// Adds the files of a folder. Unreadable ones are left out.
fn walk(folder: &Path, depth: usize, samples: &mut Samples) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Links are not followed.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, samples),
            Ok(kind) if kind.is_file() => match read(&entry.path()) {
                Ok(sample) => samples.add(sample),
                Err(_) => samples.left_out += 1,
            },
            _ => samples.left_out += 1,
        }
    }
}

/// Reads a regular file.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut sample = Vec::new();
    File::open(path)?.take(SAMPLE_BYTES_MAX + 1).read_to_end(&mut sample)?;
    if sample.len() as u64 > SAMPLE_BYTES_MAX {
        return Err(std::io::Error::other("it is larger than 1 MiB"));
    }
    Ok(sample)
}
