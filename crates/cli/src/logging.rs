//! What the server says about itself: structured lines on stderr, quiet by default.

use samovar_config::{LogFormat, Settings};
use tracing_subscriber::EnvFilter;

/// From now on events are written. Once per process.
pub(crate) fn start(settings: &Settings) {
    let filter = EnvFilter::new(settings.log_level.word());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => lines.json().init(),
        LogFormat::Text => lines.with_ansi(false).init(),
    }
}
