//! `samovar stop`: makes the running server finish its requests and end.

use crate::control::client;
use anyhow::{Result, bail};
use samovar_wire::{Refused, Request};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Timeout of the command: the server's drain timeout plus the time for its workers; neither is
/// known here.
const LEAVE_LIMIT: Duration = Duration::from_mins(15);
const LOOK: Duration = Duration::from_millis(50);

/// Stops the server; returns when it has ended.
pub(crate) fn run(control: Option<PathBuf>) -> Result<()> {
    let path = control.map_or_else(samovar_config::discover_control, Ok)?;
    let response = client::ask(&path, &Request::Stop, client::RESPONSE_LIMIT)?;
    if let Ok(refused) = client::understand::<Refused>(&response) {
        bail!(client::printable(&refused.error));
    }
    let asked = Instant::now();
    while UnixStream::connect(&path).is_ok() {
        if asked.elapsed() > LEAVE_LIMIT {
            bail!("the server still runs after {} minutes", LEAVE_LIMIT.as_secs() / 60);
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
