//! Settings → options of the front.

use crate::descriptors;
use samovar_config::Settings;

/// Maximum number of notifiers for the rings of all pools. Templates inherit them, so their numbers
/// must be below 512, or an image cannot restore them (`FILLED_MAX` of the worker's
/// `csrc/outside/put_back.c`).
const BELLS_MAX: usize = 192;

/// Returns the number of the front's threads; each ring has the same number of fronts.
pub(crate) fn front_threads(settings: &Settings) -> usize {
    let most = (BELLS_MAX / (1 + settings.pools.len())).max(1);
    if settings.front_threads > most {
        tracing::warn!(
            front_threads = settings.front_threads,
            pools = settings.pools.len(),
            "the number of pools limits the front to {most} threads (hint: set `front_threads` to \
             that)"
        );
    }
    settings.front_threads.min(most)
}

/// Returns the settings for the front, with no more connections than there are descriptors for.
pub(crate) fn front_settings(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    settings.limits.connections_max = descriptors::connections_max(&settings);
    if !settings.insight.enabled {
        // No spans are collected. Headers that announce spans would break traces apart.
        settings.insight.otlp.endpoint = None;
    }
    settings
}
