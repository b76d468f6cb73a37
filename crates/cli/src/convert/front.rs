//! settings → what the front is told.

use crate::descriptors;
use samovar_config::Settings;

/// Descriptors that templates inherit have numbers below 512, or an image cannot put them back (`FILLED_MAX` of the worker's
/// `csrc/outside/put_back.c`). Left for the rings of all pools are so many of them.
const BELLS_MAX: usize = 192;

/// How many threads the front has, and each ring fronts.
pub(crate) fn front_threads(settings: &Settings) -> usize {
    let most = (BELLS_MAX / (1 + settings.pools.len())).max(1);
    if settings.front_threads > most {
        tracing::warn!(
            front_threads = settings.front_threads,
            pools = settings.pools.len(),
            "with so many pools the front has {most} threads (hint: set `front_threads` to that)"
        );
    }
    settings.front_threads.min(most)
}

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
