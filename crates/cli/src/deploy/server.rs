//! The running server, as a deploy sees it.

use super::report::say;
use crate::commands::{canary, reload};
use crate::control_client::{self, printable};
use anyhow::Result;
use samovar_deploy::{Error, Name, Server};
use samovar_wire::{CanaryAction, CanaryQuestion, CanaryState, ReloadOptions, Request};
use std::path::PathBuf;
use std::time::Duration;

/// Pause between two looks at a canary.
const LOOK: Duration = Duration::from_millis(500);

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

    /// Waits until the canary has taken over.
    fn await_canary(&self) -> Result<String> {
        let mut share = 0;
        loop {
            let (_, response) = canary::ask(&self.path, &CanaryQuestion::default())?;
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

impl Server for Running {
    fn check(&self) -> Result<(), Error> {
        let question = CanaryQuestion { action: CanaryAction::Status, ..CanaryQuestion::default() };
        let request = Request::Canary(Box::new(question));
        control_client::ask(&self.path, &request, control_client::RESPONSE_LIMIT)
            .map(drop)
            .map_err(|error| Error::new(format!("{error:#}")))
    }

    fn reload(&self, release: Option<&Name>) -> Result<String, Error> {
        let release = release.map(|name| name.as_str().to_owned());
        if let Some(question) = &self.canary {
            let question = CanaryQuestion { release, ..question.clone() };
            let begun = reload::begin_canary(&self.path, &question);
            return begun
                .and_then(|_| self.await_canary())
                .map_err(|error| Error::new(format!("{error:#}")));
        }
        let options = ReloadOptions { release, ..self.options.clone() };
        match reload::reload(&self.path, &options) {
            Ok(text) => Ok(text.trim_end().to_owned()),
            Err(refused) => {
                Err(Error::new(format!("{:#}", refused.error)).partial(refused.is_partial))
            }
        }
    }
}
