//! What the server says about itself, and what its processes print: lines on stderr, quiet by default.
//!
//! All of it goes through one queue (crates/log): neither a reader that stops nor a full disk holds up or ends the
//! server.

mod event;

use anyhow::{Context, Result, anyhow};
use event::Lines;
use samovar_config::{LogFormat, LogTarget, Settings};
use samovar_front::{log_in_words, log_target_of};
use samovar_log::{Format, Intake, Line, Log, Notice, Target, Trouble};
use samovar_supervisor::OUTPUT_TARGET;
use std::time::{Duration, Instant, SystemTime};
use tracing_subscriber::EnvFilter;

/// How long the end of the server waits for the log's reader.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// The server's log.
#[derive(Clone, Debug)]
pub(crate) struct Logs {
    log: Log,
    format: Format,
    /// Where processes print.
    pub(crate) intake: Intake,
}

/// Begins to write what is said to `tracing`, and what processes print. Once per process.
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
    // What console workers print is not the server's own: it is wanted whatever the level is.
    let level = settings.log_level.word();
    let filter = EnvFilter::new(format!("{level},{OUTPUT_TARGET}=info"));
    let log = logs.log.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || log.clone())
        // It would print its own troubles with `eprintln!`.
        .log_internal_errors(false)
        .event_format(Lines(format))
        .init();
    Ok(logs)
}

impl Logs {
    /// Says a line that no level hides. Never waits.
    pub(crate) fn say(&self, text: &str) {
        self.log.put(match self.format {
            Format::Text => format!("samovar: {text}\n"),
            Format::Json => own_line(Format::Json, "info", "samovar", text),
        });
    }

    /// Goes to where the settings say from now on. To be called with the rights that it is opened anew with.
    pub(crate) fn settle(&self, settings: &Settings) -> Result<()> {
        let to = &settings.log;
        let target = match log_target_of(to, "samovar") {
            None | Some(Target::Stderr) => return Ok(()),
            Some(target) => target,
        };
        self.log.redirect(target).map_err(|error| {
            let hint = match to {
                LogTarget::Syslog { .. } => {
                    "rsyslog, syslog-ng or systemd-journald must run, and the server's user be allowed to write to its socket"
                }
                LogTarget::Journal { .. } => {
                    "systemd-journald must run; in a container, `log = \"-\"` is what its engine collects"
                }
                _ => "its folder must exist, and be one that the server's user may write into",
            };
            anyhow!("cannot write the {}: {error}\nhint: {hint}", log_in_words("log", to))
        })
    }

    /// A file that was moved away is opened again with the next line.
    pub(crate) fn reopen(&self) {
        self.log.reopen();
    }

    /// Lines that were lost because nobody read them, or could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.log.lost()
    }

    /// The end: the last words of processes, behind them `why`, and all is written now or never.
    pub(crate) fn finish(&self, why: Option<String>) {
        let begun = Instant::now();
        self.intake.drain(FLUSH_LIMIT / 2);
        if let Some(why) = why {
            self.say(&why);
        }
        self.log.flush(FLUSH_LIMIT.saturating_sub(begun.elapsed()));
    }
}

/// Held by the main thread: a panic that ends it is still written.
pub(crate) struct LastWords<'a>(pub(crate) &'a Logs);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.finish(None);
        }
    }
}

/// A line of the log about itself, in the form of its other lines; written where no level hides it.
fn of_itself(format: Format, trouble: &Trouble) -> String {
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
    fn a_loss_is_a_line_like_others() {
        let trouble = Trouble::Lost { lines: 1234, error: None };
        let text = of_itself(Format::Text, &trouble);
        assert!(
            text.ends_with("Z  WARN samovar::log: log: 1,234 lines were lost while nobody read\n"),
            "{text}"
        );
        let json = of_itself(Format::Json, &trouble);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["message"], "log: 1,234 lines were lost while nobody read");
    }
}
