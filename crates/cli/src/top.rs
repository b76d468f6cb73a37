//! `samovar top`: what a running server does now, by route, worker and wait: on a terminal again and again, elsewhere once.
//!
//! It asks the control socket twice, and shows what was between: `sample.rs` asks, `rows.rs` subtracts and sorts, `table.rs`
//! says what a table has, `screen.rs` draws it for a terminal, `keys.rs` is what keys do, `plain.rs` prints it for a pipe.

mod keys;
mod plain;
mod rows;
mod sample;
mod screen;
mod table;

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

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct TopOptions {
    /// The server's socket; `None`: discover it.
    pub(crate) control: Option<PathBuf>,
    /// Answer in JSON, once.
    pub(crate) json: bool,
    /// From one look to the next.
    pub(crate) every: Duration,
    /// The table that is shown first, by its name.
    pub(crate) first: Kind,
}

/// The shortest and the longest time between two looks.
pub(crate) const EVERY: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_mins(10));

/// clap's name of the flag, and what is said when its value is wrong.
pub(crate) const EVERY_ARGUMENT: &str = "--every <TIME>";
pub(crate) const EVERY_HINT: &str =
    "it takes a time from `100ms` to `10m`, such as `500ms` or `2s`";
/// The same of the other one.
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

/// Draws until somebody has seen enough. The terminal is as before in the end, after a panic too.
fn watch(path: &Path, every: Duration, first: Kind) -> Result<()> {
    // The first answer says whether there is a server; then one that ends is waited for.
    let mut last = Sample::take(path)?;
    let mut terminal = ratatui::try_init().context("cannot draw on this terminal")?;
    let mut view = View::new(first);
    let mut rows = Rows::between(None, &last);
    let mut trouble = None;
    let mut due = Instant::now() + every.min(FIRST_LOOK);
    let result = loop {
        if let Err(error) =
            terminal.draw(|frame| screen::draw(frame, &rows, &mut view, trouble.as_deref()))
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

/// The first rates are there that soon.
const FIRST_LOOK: Duration = Duration::from_millis(500);

/// The next key, if one is pressed in time.
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
