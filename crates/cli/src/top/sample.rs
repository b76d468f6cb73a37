//! One sample of the server: its status and its figures.

use crate::control_client;
use anyhow::Result;
use samovar_wire::{Figures, Request, Status};
use std::path::Path;

/// State of the server at one point in time.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) status: Status,
    pub(super) figures: Figures,
}

impl Sample {
    pub(super) fn take(path: &Path) -> Result<Sample> {
        let ask = |request| control_client::ask(path, &request, control_client::RESPONSE_LIMIT);
        let status = control_client::understand(&ask(Request::Status)?)?;
        // A server that does not know `figures` sends an error instead, which gives empty figures.
        let figures = control_client::understand(&ask(Request::Figures)?).unwrap_or_default();
        Ok(Sample { status, figures })
    }
}
