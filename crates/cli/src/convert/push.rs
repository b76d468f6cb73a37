//! settings → where profiles are sent, and as whose.

use samovar_config::Settings;
use samovar_profile::PushOptions;
use std::time::Duration;

/// The first pause after Pyroscope has taken nothing.
const BACK_OFF: Duration = Duration::from_secs(1);
/// Within it servers send their minutes.
const SPREAD: Duration = Duration::from_secs(5);

/// Pyroscope, and how it is told; while there is one.
pub(crate) fn push_options(settings: &Settings) -> Option<(&str, PushOptions)> {
    let of = &settings.profile.push;
    let endpoint = of.endpoint.as_deref()?;
    let options = PushOptions {
        endpoint: endpoint.to_owned(),
        headers: of.headers.clone().into_iter().collect(),
        labels: of.labels.clone().into_iter().collect(),
        service: settings.insight.service.clone(),
        host: host_name(),
        timeout: of.timeout,
        bytes_max: usize::try_from(of.bytes_max).unwrap_or(usize::MAX),
        back_off: BACK_OFF,
        spread: SPREAD,
        roots: of.roots.clone(),
        trouble: Box::new(|trouble| tracing::warn!("{trouble}")),
    };
    Some((endpoint, options))
}

/// As the machine calls itself; empty where the kernel does not say.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
