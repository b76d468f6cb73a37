//! `samovar top`: current activity of a running server by route, worker and wait; repeatedly in a
//! terminal, once elsewhere.
//!
//! Queries the control socket twice, and shows the differences. `sample.rs` queries, `rows.rs`
//! subtracts and sorts, `table.rs` defines the tables, `terminal_screen.rs` draws for a terminal,
//! `keys.rs` handles keys, `plain.rs` prints for a pipe.

mod keys;
mod plain;
mod rows;
mod sample;
mod table;
mod terminal_screen;

use crate::arguments::{control, control_arguments, json_argument};
use crate::control_client;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use keys::{Step, View};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rows::Rows;
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use sample::Sample;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use table::Kind;

/// Options of the command.
#[derive(Debug)]
struct TopOptions {
    /// Socket of the server; `None`: discover it.
    control: Option<PathBuf>,
    /// Whether the output is JSON, printed once.
    json: bool,
    /// Interval between two samples.
    every: Duration,
    /// The table that is shown first.
    first: Kind,
}

/// Minimum and maximum interval between two samples.
const EVERY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_mins(10));

/// Default interval between two samples.
const EVERY_DEFAULT: Duration = Duration::from_secs(2);

const HELP: &str = "\
Keys: q quits, Tab or 1 to 4 select the table, left and right select the sort column, r reverses
the order, up and down scroll, p pauses. Rates cover the time between two samples, percentiles the
time since the start. If the output is not a terminal, the table is printed once; --json prints one
line. See docs/guide/observability.md.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

fn define() -> Command {
    Command::new("top")
        .about("Shows live tables of the running server: routes, workers, waits, queues")
        .after_help(HELP)
        .args(control_arguments())
        .arg(json_argument())
        .arg(
            Arg::new("every")
                .long("every")
                .value_name("TIME")
                .overrides_with("every")
                .value_parser(every)
                .help("Interval between two samples [default: 2s]"),
        )
        .arg(
            Arg::new("table")
                .long("table")
                .value_name("TABLE")
                .overrides_with("table")
                .value_parser(table)
                .help("First table: routes, workers, waits or queues [default: routes]"),
        )
}

fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--every <TIME>" => Some("it takes a time from `100ms` to `10m`, such as `500ms` or `2s`"),
        "--table <TABLE>" => Some("it takes `routes`, `workers`, `waits` or `queues`"),
        _ => None,
    }
}

fn every(text: &str) -> Result<Duration, String> {
    let (min, max) = EVERY;
    let span = samovar_config::duration(text).filter(|span| (min..=max).contains(span));
    span.ok_or_else(String::new)
}

fn table(text: &str) -> Result<Kind, String> {
    Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(String::new)
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(TopOptions {
        json: matches.get_flag("json"),
        every: matches.get_one("every").copied().unwrap_or(EVERY_DEFAULT),
        first: matches.get_one("table").copied().unwrap_or_default(),
        control: control(matches, sources)?,
    }))
}

impl Run for TopOptions {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        show(self).map(|()| ExitCode::SUCCESS)
    }
}

fn show(options: &TopOptions) -> Result<()> {
    let path = control_client::path(options.control.as_ref())?;
    let is_watched = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !options.json && is_watched {
        return watch(&path, options.every, options.first);
    }
    let before = Sample::take(&path)?;
    std::thread::sleep(options.every);
    let rows = Rows::between(Some(&before), &Sample::take(&path)?);
    terminal::print(&if options.json { plain::json(&rows) } else { plain::text(&rows) })
}

/// Draws until the user ends the command. The terminal is restored at the end, also after a panic.
fn watch(path: &Path, every: Duration, first: Kind) -> Result<()> {
    // The first sample must succeed: it shows that there is a server. Later failures are displayed,
    // and sampling continues.
    let mut last = Sample::take(path)?;
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal")?;
    let mut view = View::new(first);
    let mut rows = Rows::between(None, &last);
    let mut trouble = None;
    let mut due = Instant::now() + every.min(FIRST_LOOK);
    let result = loop {
        if let Err(error) = terminal
            .draw(|frame| terminal_screen::draw(frame, &rows, &mut view, trouble.as_deref()))
        {
            break Err(error).context("cannot draw on this terminal");
        }
        match wait_for_key(due) {
            Ok(Some(event)) => match view.press(&event) {
                Step::End => break Ok(()),
                Step::Stay => continue,
            },
            Ok(None) => {}
            Err(error) => break Err(error).context("cannot read this terminal's keys"),
        }
        due = Instant::now() + every;
        if view.is_paused {
            continue;
        }
        match Sample::take(path) {
            Ok(sample) => {
                rows = Rows::between(Some(&last), &sample);
                (last, trouble) = (sample, None);
            }
            Err(error) => {
                trouble = Some(format!("{error:#}").lines().next().unwrap_or("").to_owned());
            }
        }
    };
    ratatui::restore();
    result
}

/// Delay of the second sample, so that the first rates appear soon.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// Returns the next key, if one is pressed in time.
fn wait_for_key(due: Instant) -> std::io::Result<Option<Event>> {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(None);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Release => {}
            event => return Ok(Some(event)),
        }
    }
}
