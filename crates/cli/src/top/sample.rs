//! One look at the server: its status and its figures, as it says them.

use crate::control::client;
use anyhow::Result;
use samovar_wire::{Figures, Request, Status};
use std::path::Path;

/// What the server said at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) status: Status,
    pub(super) figures: Figures,
}

impl Sample {
    pub(super) fn take(path: &Path) -> Result<Sample> {
        let ask = |request| client::ask(path, &request, client::ANSWER_LIMIT);
        let status = client::understand(&ask(Request::Status)?)?;
        // A server that knows no figures says so in another way, which is none.
        let figures = client::understand(&ask(Request::Figures)?).unwrap_or_default();
        Ok(Sample { status, figures })
    }
}
