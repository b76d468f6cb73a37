//! settings → what the front is told.

use crate::descriptors;
use samovar_config::Settings;

/// The settings as the front can keep them: never more connections than there are descriptors for.
pub(crate) fn front_settings(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.limits.connections_max = descriptors::connections_max(&settings);
    if !settings.insight.enabled {
        // Nobody collects spans: headers that say so would tear traces apart.
        settings.insight.otlp.endpoint = None;
    }
    settings
}
