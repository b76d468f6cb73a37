//! The server's log: its own messages, and the output of its processes. Lines on stderr, few by
//! default.
//!
//! All lines go through one queue (crates/log): neither a reader that stops nor a full disk blocks
//! or ends the server.

mod event;

use anyhow::{Context, Result, anyhow};
use event::Lines;
use samovar_config::{LogFormat, LogTarget, Settings};
use samovar_front::{log_in_words, log_target_of};
use samovar_log::{Format, Intake, Line, Log, LogProblem, Notice, Target};
use samovar_supervisor::OUTPUT_TARGET;
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::EnvFilter;

/// Maximum time that the server's stop waits for the log's reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The server's log.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    log: Log,
    format: Format,
    /// Collector of the processes' output.
    pub(crate) intake: Intake,
}

/// Starts the log for `tracing` events and the processes' output. Must be called once per process.
pub(crate) fn start(settings: &Settings) -> Result<Logs> {
    samovar_log::survive_file_limits();
    let format = match settings.log_format {
        LogFormat::Text => Format::Text,
        LogFormat::Json => Format::Json,
    };
    let notice = Notice::Line(Box::new(move |trouble| of_itself(format, trouble)));
    let logs = Log::start("log", Target::Stderr, notice)
        .and_then(|log| Intake::start(log.clone()).map(|intake| Logs { log, format, intake }))
        .context("cannot start the log")?;
    // The output of console workers is not the server's own, so no log level hides it.
    let level = settings.log_level.word();
    let filter = EnvFilter::new(format!("{level},{OUTPUT_TARGET}=info"));
    let log = logs.log.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || log.clone())
        // The subscriber would print its own errors with `eprintln!`.
        .log_internal_errors(false)
        .event_format(Lines(format))
        .init();
    Ok(logs)
}

impl Logs {
    /// Logs a line regardless of the log level. Never blocks.
    pub(crate) fn say(&self, text: &str) {
        self.log.put(match self.format {
            Format::Text => format!("samovar: {text}\n"),
            Format::Json => own_line(Format::Json, "info", "samovar", text),
        });
    }

    /// Switches to the target in the settings. Must be called with the rights with which the target
    /// will be opened again later.
    pub(crate) fn settle(&self, settings: &Settings) -> Result<()> {
        let to = &settings.log;
        let target = match log_target_of(to, "samovar") {
            None | Some(Target::Stderr) => return Ok(()),
            Some(target) => target,
        };
        self.log.redirect(target).map_err(|error| {
            let hint = match to {
                LogTarget::Syslog { .. } => {
                    "start rsyslog, syslog-ng or systemd-journald, and let the server's user \
                     write to its socket"
                }
                LogTarget::Journal { .. } => {
                    "start systemd-journald; in a container, use `log = \"-\"`, which the \
                     container engine collects"
                }
                _ => "create its folder, and make it writable for the server's user",
            };
            anyhow!("cannot write the {}: {error}\nhint: {hint}", log_in_words("log", to))
        })
    }

    /// Makes the next line open the file again, for a file that was moved away.
    pub(crate) fn reopen(&self) {
        self.log.reopen();
    }

    /// Returns the number of lines that were not read in time or could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// Writes the last output of processes, then `why`, then all queued lines, within a limit. For
    /// the server's stop.
    pub(crate) fn finish(&self, why: Option<String>) {
        let begun = Instant::now();
        self.intake.drain(FLUSH_LIMIT / 2);
        if let Some(why) = why {
            self.say(&why);
        }
        self.log.flush(FLUSH_LIMIT.saturating_sub(begun.elapsed()));
    }
}

/// Held by the main thread, so that a panic that ends it is still written.
pub(crate) struct LastWords<'a>(pub(crate) &'a Logs);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.finish(None);
        }
    }
}

/// Returns a line about the log itself, in the form of its other lines; no log level hides it.
fn of_itself(format: Format, trouble: &LogProblem) -> String {
    own_line(format, "warn", "samovar::log", &format!("log: {trouble}"))
}

fn own_line(format: Format, level: &str, target: &str, message: &str) -> String {
    let (at, level) = (SystemTime::now(), Some(level));
    let line = Line { at, level, target, process: None, message, details: &[], context: "" };
    line.render(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_lines_are_reported_as_log_line() {
        let trouble = LogProblem::Lost { lines: 1234, error: None };
        let text = of_itself(Format::Text, &trouble);
        assert!(
            text.ends_with(
                "Z  WARN samovar::log: log: 1,234 lines were lost: the log queue was full\n"
            ),
            "{text}"
        );
        let json = of_itself(Format::Json, &trouble);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["message"], "log: 1,234 lines were lost: the log queue was full");
    }
}
