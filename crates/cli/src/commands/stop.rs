//! `samovar stop`: asks the running server to finish its requests and leave.

use crate::control::client;
use anyhow::{Result, bail};
use samovar_wire::{Refused, Request};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long the server may take: its drain time-out plus what the workers need; it is not known here.
const LEAVE_LIMIT: Duration = Duration::from_mins(15);
const LOOK: Duration = Duration::from_millis(50);

/// Returns when the server has gone.
pub(crate) fn run(control: Option<PathBuf>) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    let answer = client::ask(&path, &Request::Stop, client::ANSWER_LIMIT)?;
    if let Ok(refused) = client::understand::<Refused>(&answer) {
        bail!(client::printable(&refused.error));
    }
    let asked = Instant::now();
    while UnixStream::connect(&path).is_ok() {
        if asked.elapsed() > LEAVE_LIMIT {
            bail!("the server is still there after {} minutes", LEAVE_LIMIT.as_secs() / 60);
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
