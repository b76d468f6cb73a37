//! Identity of the server in everything that it sends to a collector.

use super::attributes::text;
use super::message::{InstrumentationScope, Resource};

/// Identity of the server: its resource, in OpenTelemetry's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the site: `service.name`.
    pub service: String,
    /// Version of the server.
    pub version: String,
    /// Name of the machine: `host.name`.
    pub host: String,
}

impl Identity {
    pub(super) fn resource(&self) -> Resource {
        Resource {
            attributes: vec![
                text("service.name", &self.service),
                text("host.name", &self.host),
                text("telemetry.sdk.name", "samovar"),
                text("telemetry.sdk.language", "rust"),
                text("telemetry.sdk.version", &self.version),
            ],
        }
    }

    pub(super) fn scope(&self) -> InstrumentationScope {
        InstrumentationScope { name: "samovar".to_owned(), version: self.version.clone() }
    }
}
