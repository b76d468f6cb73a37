//! Recording: takes samples for a while, and writes them as a file for other programs.

use super::messages::{EXIT_INCOMPLETE, counted, refusals, tell, without_heap};
use super::options::{Format, SpyOptions, SpyTarget};
use super::ticker::Beat;
use super::variables;
use anyhow::{Context, Result};
use samovar_server::terminal;
use samovar_spy::profile::{Profile, Weight, callgrind, collapsed, pprof, speedscope, svg};
use samovar_spy::{Watch, title};
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

pub(super) fn run(watch: &mut Watch, asked: &SpyOptions, format: Format) -> Result<ExitCode> {
    // Opened before the samples are taken, so that an unwritable path fails at once and not after
    // ten seconds.
    let file = asked.output.as_ref().map(|path| {
        // Values of variables may be confidential.
        let mode = if asked.peeks.is_empty() { 0o666 } else { 0o600 };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        options.open(path).with_context(|| {
            format!(
                "cannot write `{}`\nhint: use an existing folder that this user can write to",
                path.display()
            )
        })
    });
    let file = file.transpose()?;
    let (began, since) = (SystemTime::now(), Instant::now());
    let profile = sample(watch, asked, since);
    let profile = split(asked, &profile);
    let name = name(asked);
    let growth = svg::Measure::Growth;
    let bytes = match format {
        Format::Svg if asked.memory => svg::render(&profile, &name, growth).into_bytes(),
        Format::Collapsed if asked.memory => collapsed::render_bytes(&profile).into_bytes(),
        Format::Callgrind if asked.memory => callgrind::render_bytes(&profile, growth).into_bytes(),
        Format::Speedscope if asked.memory => {
            speedscope::render_bytes(&profile, &name).into_bytes()
        }
        Format::Pprof if asked.memory => {
            pprof::render_bytes(&profile, growth, (began, since.elapsed()))?
        }
        Format::Svg => svg::render(&profile, &name, svg::Measure::Wall).into_bytes(),
        Format::Collapsed => collapsed::render(&profile).into_bytes(),
        Format::Callgrind => callgrind::render(&profile).into_bytes(),
        Format::Speedscope => speedscope::render(&profile, &name).into_bytes(),
        Format::Pprof => pprof::render(&profile, began, since.elapsed(), asked.hertz)?,
    };
    write(file, asked, &bytes)?;
    terminal::complain(&format!("samovar: {}", counted(watch.counts())));
    let refused = refusals(watch);
    tell(&refused);
    let heapless = without_heap(watch);
    if profile.total().samples == 0 && !heapless.is_empty() {
        terminal::complain(&format!("samovar: {heapless}"));
    } else if profile.total().samples == 0 && asked.memory && watch.counts().stacks > 0 {
        terminal::complain(
            "samovar: the heap did not grow while a request was watched\nhint: use a longer \
             --duration, or a higher --hertz if requests are short",
        );
    } else if profile.total().samples == 0 {
        terminal::complain(
            "samovar: no stacks recorded\nhint: the processes ran no PHP code; use a longer \
             --duration if they rarely do",
        );
    }
    let is_whole = refused.is_empty() && profile.total().samples > 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::from(EXIT_INCOMPLETE) })
}

/// Takes samples until the time is over, or no process is left.
fn sample(watch: &mut Watch, asked: &SpyOptions, since: Instant) -> Profile {
    let mut profile = Profile::new();
    let mut beat = Beat::new(asked.hertz);
    let duration = asked.duration_or_default();
    while since.elapsed() < duration && !watch.is_over() {
        let beats = beat.wait();
        add(watch, asked, &mut profile, beat.every.saturating_mul(beats));
    }
    profile
}

/// Splits functions into lines, if that is wanted.
pub(super) fn split<'a>(asked: &SpyOptions, profile: &'a Profile) -> Cow<'a, Profile> {
    if asked.lines { Cow::Owned(profile.by_line()) } else { Cow::Borrowed(profile) }
}

/// Takes one sample of all processes; each stack represents the time since the previous sample.
pub(super) fn add(
    watch: &mut Watch,
    asked: &SpyOptions,
    profile: &mut Profile,
    time: std::time::Duration,
) -> usize {
    let samples = watch.look();
    let wall_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let is_at_work = |sample: &&samovar_spy::Sample| {
        // Idle workers wait in these functions, but a server may also handle a request in them;
        // that time counts.
        !sample.stack.is_between_requests() || sample.activity == samovar_spy::Activity::Running
    };
    for sample in samples.iter().filter(is_at_work).filter(|sample| asked.wants(sample)) {
        let weight = match sample.grown_bytes {
            0 if asked.memory => continue,
            grown if asked.memory => Weight { samples: 1, wall_ns: grown, cpu_ns: 0 },
            _ => Weight { samples: 1, wall_ns, cpu_ns: sample.cpu_ns },
        };
        // A wait does not allocate.
        let activity =
            if asked.memory { &samovar_spy::Activity::Running } else { &sample.activity };
        if asked.peeks.is_empty() {
            profile.add(&sample.stack.frames, activity, weight);
        } else {
            profile.add(&variables::framed(asked, sample), activity, weight);
        }
    }
    samples.len()
}

fn name(asked: &SpyOptions) -> String {
    match &asked.whom {
        SpyTarget::All => "all PHP processes".to_owned(),
        SpyTarget::Matching(text) => format!("PHP processes with `{text}`"),
        SpyTarget::Child(words) => {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        }
        SpyTarget::These(pids) if pids.len() == 1 => format!("{}: {}", pids[0], title(pids[0])),
        SpyTarget::These(pids) => format!("{} processes", pids.len()),
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
    file.write_all(bytes)
        .with_context(|| format!("cannot write `{path}`\nhint: check the free space of the disk"))
}
