//! `samovar stop`: makes the running server finish its requests and end.

use crate::arguments::{control, control_arguments};
use crate::control_client;
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::Predecessor;
use samovar_wire::{Refused, Request};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Timeout of the command: the server's drain timeout plus the time for its workers; neither is
/// known here.
const LEAVE_LIMIT: Duration = Duration::from_mins(15);
const LOOK: Duration = Duration::from_millis(50);

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

#[derive(Debug)]
struct Stop {
    control: Option<PathBuf>,
}

fn define() -> Command {
    Command::new("stop")
        .about("Stops the running server after its pending requests have finished")
        .args(control_arguments())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(Stop { control: control(matches, sources)? }))
}

impl Run for Stop {
    /// Stops the server; returns when it has ended.
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let path = control_client::path(self.control.as_ref())?;
        let response = control_client::ask(&path, &Request::Stop, control_client::RESPONSE_LIMIT)?;
        if let Ok(refused) = control_client::understand::<Refused>(&response) {
            bail!(control_client::printable(&refused.error));
        }
        let asked = Instant::now();
        while UnixStream::connect(&path).is_ok() {
            if asked.elapsed() > LEAVE_LIMIT {
                bail!("the server still runs after {} minutes", LEAVE_LIMIT.as_secs() / 60);
            }
            std::thread::sleep(LOOK);
        }
        Ok(ExitCode::SUCCESS)
    }
}
