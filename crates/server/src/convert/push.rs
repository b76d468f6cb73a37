//! Settings → target of profiles, and the labels of this server.

use samovar_config::Settings;
use samovar_profile::PushOptions;
use std::time::Duration;

/// Pause after the first rejected or failed push to Pyroscope.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Maximum delay before servers send their minutes.
const SPREAD: Duration = Duration::from_secs(5);

/// Returns Pyroscope's URL and the push options; `None` if no push is configured.
pub(crate) fn push_options(settings: &Settings) -> Option<(&str, PushOptions)> {
    let of = &settings.profile.push;
    let endpoint = of.endpoint.as_deref()?;
    let options = PushOptions {
        endpoint: endpoint.to_owned(),
        headers: of
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
        labels: of.labels.clone().into_iter().collect(),
        service: settings.insight.service.clone(),
        host: host_name(),
        timeout: of.timeout,
        bytes_max: usize::try_from(of.bytes_max).unwrap_or(usize::MAX),
        back_off: BACK_OFF,
        spread: SPREAD,
        roots: of.ca_file.clone(),
        trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
    };
    Some((endpoint, options))
}

/// Returns the machine's host name; empty if the kernel does not report one.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
