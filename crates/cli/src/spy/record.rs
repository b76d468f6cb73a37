//! A recording: samples for a while, written as a file that others read.

use super::beat::Beat;
use super::options::{Format, SpyOptions, Whom};
use super::words::{EXIT_INCOMPLETE, counted, refusals, tell};
use crate::terminal;
use anyhow::{Context, Result};
use samovar_spy::profile::{Profile, Weight, collapsed, pprof, speedscope, svg};
use samovar_spy::{Watch, title};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

pub(super) fn run(watch: &mut Watch, asked: &SpyOptions, format: Format) -> Result<ExitCode> {
    // Opened before ten seconds of work: a name that cannot be written is told at once.
    let file = asked.output.as_ref().map(|path| {
        std::fs::File::create(path).with_context(|| {
            format!(
                "cannot write `{}`\nhint: name a file in a folder that is there and yours",
                path.display()
            )
        })
    });
    let file = file.transpose()?;
    let (began, since) = (SystemTime::now(), Instant::now());
    let profile = sample(watch, asked, since);
    let name = name(asked);
    let bytes = match format {
        Format::Svg => svg::render(&profile, &name, svg::Measure::Wall).into_bytes(),
        Format::Collapsed => collapsed::render(&profile).into_bytes(),
        Format::Speedscope => speedscope::render(&profile, &name).into_bytes(),
        Format::Pprof => pprof::render(&profile, began, since.elapsed(), asked.hertz)?,
    };
    write(file, asked, &bytes)?;
    terminal::complain(&format!("samovar: {}", counted(watch.counts())));
    let refused = refusals(watch);
    tell(&refused);
    if profile.total().samples == 0 {
        terminal::complain(
            "samovar: no stack was seen\nhint: the processes ran no PHP code meanwhile; a longer --duration helps if they do so rarely",
        );
    }
    let is_whole = refused.is_empty() && profile.total().samples > 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_INCOMPLETE) })
}

/// Samples until the time is over, or nobody is left.
fn sample(watch: &mut Watch, asked: &SpyOptions, since: Instant) -> Profile {
    let mut profile = Profile::new();
    let mut beat = Beat::new(asked.hertz);
    let duration = asked.duration_or_default();
    while since.elapsed() < duration && !watch.is_over() {
        let beats = beat.wait();
        add(watch, &mut profile, beat.every.saturating_mul(beats));
    }
    profile
}

/// One look at all; each stack stands for the time since the last.
pub(super) fn add(watch: &mut Watch, profile: &mut Profile, time: std::time::Duration) -> usize {
    let samples = watch.look();
    let wall_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let is_at_work = |sample: &&samovar_spy::Sample| {
        // While they wait there: what the server does for a request in these functions counts.
        !sample.stack.is_between_requests() || sample.activity == samovar_spy::Activity::Running
    };
    for sample in samples.iter().filter(is_at_work) {
        let weight = Weight { samples: 1, wall_ns, cpu_ns: sample.cpu_ns };
        profile.add(&sample.stack.frames, &sample.activity, weight);
    }
    samples.len()
}

fn name(asked: &SpyOptions) -> String {
    match &asked.whom {
        Whom::All => "all PHP processes".to_owned(),
        Whom::These(pids) if pids.len() == 1 => format!("{}: {}", pids[0], title(pids[0])),
        Whom::These(pids) => format!("{} processes", pids.len()),
    }
}

fn write(file: Option<std::fs::File>, asked: &SpyOptions, bytes: &[u8]) -> Result<()> {
    let Some(mut file) = file else {
        let mut out = std::io::stdout().lock();
        return match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        };
    };
    let path = asked.output.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    file.write_all(bytes).with_context(|| format!("cannot write `{path}`\nhint: is the disk full?"))
}
