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

use crate::terminal;
use anyhow::{Context, Result};
use keys::{Step, View};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rows::Rows;
use sample::Sample;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
pub(crate) use table::Kind;

/// Options of the command.
#[derive(Debug)]
pub(crate) struct TopOptions {
    /// Socket of the server; `None`: discover it.
    pub(crate) control: Option<PathBuf>,
    /// Whether the output is JSON, printed once.
    pub(crate) json: bool,
    /// Interval between two samples.
    pub(crate) every: Duration,
    /// The table that is shown first.
    pub(crate) first: Kind,
}

/// Minimum and maximum interval between two samples.
pub(crate) const EVERY: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_mins(10));

/// Flag as clap names it, and the hint for a wrong value.
pub(crate) const EVERY_ARGUMENT: &str = "--every <TIME>";
pub(crate) const EVERY_HINT: &str =
    "it takes a time from `100ms` to `10m`, such as `500ms` or `2s`";
/// Same for the other flag.
pub(crate) const TABLE_ARGUMENT: &str = "--table <TABLE>";
pub(crate) const TABLE_HINT: &str = "it takes `routes`, `workers` or `waits`";

pub(crate) fn run(options: TopOptions) -> Result<()> {
    let path = options.control.map_or_else(samovar_config::discover_control, Ok)?;
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
