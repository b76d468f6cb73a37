//! Identity of the server in everything that it sends to a collector.

use super::attributes::text;
use super::message::{InstrumentationScope, Resource};
use crate::releases::Releases;

/// Identity of the server: its resource, in OpenTelemetry's terms.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Name of the site: `service.name`.
    pub service: String,
    /// Version of the server.
    pub version: String,
    /// Name of the machine: `host.name`.
    pub host: String,
    /// Releases of the applications: `service.version`.
    pub releases: Releases,
}

impl Identity {
    /// Returns the resource of records of this release; empty: it has no label.
    pub(super) fn resource(&self, release: &str) -> Resource {
        let label = (!release.is_empty()).then(|| text("service.version", release));
        Resource {
            attributes: label
                .into_iter()
                .chain([
                    text("service.name", &self.service),
                    text("host.name", &self.host),
                    text("telemetry.sdk.name", "samovar"),
                    text("telemetry.sdk.language", "rust"),
                    text("telemetry.sdk.version", &self.version),
                ])
                .collect(),
        }
    }

    pub(super) fn scope(&self) -> InstrumentationScope {
        InstrumentationScope { name: "samovar".to_owned(), version: self.version.clone() }
    }
}
