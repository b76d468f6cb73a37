//! What the server says about itself: structured lines on stderr, quiet by default.

use samovar_config::{LogFormat, Settings};
use samovar_supervisor::OUTPUT_TARGET;
use tracing_subscriber::EnvFilter;

/// From now on events are written. Once per process.
pub(crate) fn start(settings: &Settings) {
    // What console workers print is not the server's own: it is wanted whatever the level is.
    let level = settings.log_level.word();
    let filter = EnvFilter::new(format!("{level},{OUTPUT_TARGET}=info"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.log_format {
        LogFormat::Json => lines.json().init(),
        LogFormat::Text => lines.with_ansi(false).init(),
    }
}
