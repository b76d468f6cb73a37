//! Writes the profile as a file for other programs.

use super::options::ProfileOptions;
use super::shown::{Shown, against_words};
use crate::spy::options::Format;
use anyhow::{Context, Result};
use samovar_server::terminal;
use samovar_spy::profile::difference::{Side, factor};
use samovar_spy::profile::{Profile, callgrind, collapsed, pprof, speedscope, svg};
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

pub(super) fn write(shown: &Shown, asked: &ProfileOptions, format: Format) -> Result<()> {
    let profile = &shown.now.profile;
    let bytes = match format {
        Format::Svg => flames(shown, asked).into_bytes(),
        Format::Collapsed => collapsed::render(profile).into_bytes(),
        Format::Callgrind => callgrind::render(profile).into_bytes(),
        Format::Speedscope => speedscope::render(profile, &shown.what).into_bytes(),
        Format::Pprof => {
            let began = UNIX_EPOCH + Duration::from_secs(shown.now.from);
            let span = Duration::from_secs(shown.now.to.saturating_sub(shown.now.from));
            pprof::render(profile, began, span, shown.hertz)?
        }
    };
    save(&bytes, asked, profile)
}

/// Writes the bytes to the wanted file, or to standard output.
pub(super) fn save(bytes: &[u8], asked: &ProfileOptions, profile: &Profile) -> Result<()> {
    let Some(path) = &asked.output else {
        let mut out = std::io::stdout().lock();
        return match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        };
    };
    std::fs::write(path, bytes).with_context(|| {
        format!(
            "cannot write `{}`\nhint: use an existing folder that this user can write to, on a \
             disk with free space",
            path.display()
        )
    })?;
    terminal::complain(&format!(
        "samovar: {} samples, {} stacks",
        profile.total().samples,
        profile.len()
    ));
    Ok(())
}

fn flames(shown: &Shown, asked: &ProfileOptions) -> String {
    let profile = &shown.now.profile;
    let Some(before) = &shown.before else {
        return svg::render(profile, &shown.what, shown.measure);
    };
    let sides =
        [before, &shown.now].map(|side| Side { profile: &side.profile, requests: side.requests });
    let factor = factor(sides[0], sides[1], shown.measure);
    let against = asked.against.map(against_words).unwrap_or_default();
    let title = format!("{}, against {against}: red is more expensive", shown.what);
    svg::render_against(profile, Some((&before.profile, factor)), &title, shown.measure)
}
