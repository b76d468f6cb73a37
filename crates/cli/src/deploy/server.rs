//! The running server, as a deploy sees it.

use super::report::say;
use crate::commands::{canary, reload};
use crate::control_client::{self, Unanswered, printable};
use anyhow::Result;
use samovar_deploy::{Error, Name, Server};
use samovar_wire::{CanaryQuestion, CanaryState, ReloadOptions, Request, Status};
use std::path::PathBuf;
use std::time::Duration;

/// Pause between two looks at a canary.
const LOOK: Duration = Duration::from_millis(500);

/// Maximum number of looks in a row without an answer.
const MISSED_MAX: u32 = 24;

/// A server that runs.
pub(crate) struct Running {
    path: PathBuf,
    options: ReloadOptions,
    canary: Option<CanaryQuestion>,
}

impl Running {
    pub(crate) fn new(
        control: Option<&PathBuf>,
        options: ReloadOptions,
        canary: Option<CanaryQuestion>,
    ) -> Result<Running> {
        let path = control_client::path(control).map_err(|error| {
            anyhow::anyhow!("{error}\nhint: --no-reload only switches the link, without a server")
        })?;
        Ok(Running { path, options, canary })
    }

    /// Waits until the canary has taken over. A server that pauses is asked again.
    fn await_canary(&self) -> Result<String> {
        let (mut share, mut missed) = (0, 0);
        loop {
            let response = match canary::ask(&self.path, &CanaryQuestion::default()) {
                Ok((_, response)) => response,
                Err(error) if missed >= MISSED_MAX => return Err(error),
                Err(_) => {
                    missed += 1;
                    std::thread::sleep(LOOK);
                    continue;
                }
            };
            missed = 0;
            let Some(status) = response.canary else { anyhow::bail!("the canary is gone") };
            match status.state {
                CanaryState::Promoted => {
                    return Ok(format!("generation {} serves", status.generation));
                }
                CanaryState::Aborted => {
                    anyhow::bail!("the canary was aborted: {}", printable(&status.reason))
                }
                _ => {}
            }
            if status.share_ppm != share {
                share = status.share_ppm;
                say(canary::headline(&status.brief()).trim_end());
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Returns the error for a deploy.
fn failed(error: &anyhow::Error) -> Error {
    Error::new(format!("{error:#}")).unknown(error.is::<Unanswered>())
}

impl Server for Running {
    fn check(&self) -> Result<String, Error> {
        let line =
            control_client::ask(&self.path, &Request::Status, control_client::RESPONSE_LIMIT);
        let status: Result<Status> = line.and_then(|line| control_client::understand(&line));
        let status = status.map_err(|error| Error::new(format!("{error:#}")))?;
        let Some(wanted) = &self.options.pool else { return Ok(status.release) };
        let pool = status.pools.into_iter().find(|pool| pool.name == *wanted);
        pool.map(|pool| pool.release).ok_or_else(|| {
            Error::new(format!(
                "the server has no pool `{wanted}`\nhint: `samovar status` lists the pools"
            ))
        })
    }

    fn reload(&self, release: Option<&Name>) -> Result<String, Error> {
        let release = release.map(|name| name.as_str().to_owned());
        if let Some(question) = &self.canary {
            let question = CanaryQuestion { release, ..question.clone() };
            let begun = reload::begin_canary(&self.path, &question);
            return begun.and_then(|_| self.await_canary()).map_err(|error| failed(&error));
        }
        let options = ReloadOptions { release, ..self.options.clone() };
        match reload::reload(&self.path, &options) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(refused) => Err(failed(&refused.error).partial(refused.is_partial)),
        }
    }
}
