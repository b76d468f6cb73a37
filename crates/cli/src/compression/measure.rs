//! Size and CPU time of each level.

use super::coding::{Level, levels, with_dictionary};
use super::samples::{Kind, Samples};
use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use std::io::IsTerminal;
use std::time::Duration;

/// Passes over the samples end after this CPU time, or this number; the shortest counts.
const PASSES_TIME: Duration = Duration::from_millis(150);
const PASSES_MAX: usize = 20;

/// Result of a level. Times are CPU time.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) level: Level,
    /// Compressed size of all samples, in bytes.
    pub(super) bytes: usize,
    /// Uncompressed size of the same samples.
    pub(super) of: usize,
    /// Number of these samples.
    pub(super) samples: usize,
    pub(super) compress: Duration,
    pub(super) decompress: Duration,
}

/// Measures all levels. Shows the current one on a terminal.
pub(super) fn all(samples: &Samples) -> Result<Vec<Measured>> {
    let shows = std::io::stderr().is_terminal();
    let mut results = Vec::new();
    // A dictionary is for many small values with the same structure, not for responses.
    let trained =
        if samples.kind == Kind::Files { with_dictionary(&samples.all) } else { Vec::new() };
    for level in levels().chain(trained) {
        if shows {
            eprint!("\rmeasuring {} {}   ", level.coding, level.number);
        }
        // The samples that trained a dictionary would make it look better.
        let (first, step) = if level.dictionary.is_some() { (1, 2) } else { (0, 1) };
        let used: Vec<&[u8]> =
            samples.all.iter().skip(first).step_by(step).map(Vec::as_slice).collect();
        results.push(one(level, &used)?);
    }
    if shows {
        eprint!("\r                        \r");
    }
    Ok(results)
}

fn one(level: Level, samples: &[&[u8]]) -> Result<Measured> {
    let compress = || samples.iter().map(|sample| level.compress(sample)).collect();
    let (compressed, compressing): (std::io::Result<Vec<Vec<u8>>>, _) = shortest(compress);
    let compressed = compressed.context("cannot compress the samples")?;
    let decompress = || {
        let each = compressed.iter().zip(samples);
        each.map(|(bytes, sample)| level.decompress(bytes, sample.len())).collect()
    };
    let (restored, decompressing): (std::io::Result<Vec<Vec<u8>>>, _) = shortest(decompress);
    if restored.context("cannot decompress the samples")?.iter().ne(samples) {
        bail!("{} {} does not restore its input", level.coding, level.number);
    }
    Ok(Measured {
        bytes: compressed.iter().map(Vec::len).sum(),
        of: samples.iter().map(|sample| sample.len()).sum(),
        samples: samples.len(),
        compress: compressing,
        decompress: decompressing,
        level,
    })
}

/// Runs a pass several times. Returns its last result, and the shortest CPU time.
fn shortest<T>(pass: impl Fn() -> T) -> (T, Duration) {
    let begin = thread_time();
    let mut best = Duration::MAX;
    let mut passes = 0;
    loop {
        let before = thread_time();
        let result = pass();
        let now = thread_time();
        best = best.min(now.saturating_sub(before));
        passes += 1;
        if now.saturating_sub(begin) >= PASSES_TIME || passes == PASSES_MAX {
            return (result, best);
        }
    }
}

/// CPU time of this thread: other processes do not change it.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
