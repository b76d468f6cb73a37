//! Files whose values are published. They are read before the server starts or a reload takes over,
//! so an invalid file changes nothing.

use anyhow::{Context, Result, bail};
use samovar_config::Settings;
use samovar_published::{Limits, Publisher, from_json};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Maximum size of a JSON text, as a multiple of its value's size.
const TEXT_PER_VALUE_MAX: u64 = 4;

/// A value read from a file, with the name under which it is published.
pub(crate) struct FromFile {
    name: String,
    encoded: Vec<u8>,
}

/// Returns the limits of published values.
pub(crate) fn limits(settings: &Settings) -> Limits {
    Limits {
        bytes_max: settings.shared.published_bytes_max,
        value_bytes_max: settings.shared.published_value_bytes_max,
        names_max: settings.shared.published_names_max,
    }
}

/// Reads all files.
pub(crate) fn read(settings: &Settings) -> Result<Vec<FromFile>> {
    let bytes_max = settings.shared.published_value_bytes_max.saturating_mul(TEXT_PER_VALUE_MAX);
    let one = |(name, path): (&String, &std::path::PathBuf)| {
        let encoded = read_one(path, bytes_max)
            .with_context(|| format!("cannot publish `{name}` of `{}`", path.display()))?;
        Ok(FromFile { name: name.clone(), encoded })
    };
    settings.shared.publish.iter().map(one).collect()
}

fn read_one(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        bail!("it is not a regular file");
    }
    let mut text = Vec::new();
    // Reads one byte more than the limit, to detect a file that is too large.
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > bytes_max {
        bail!(
            "it is larger than {bytes_max} bytes\nhint: raise `shared.published_value_bytes_max`"
        );
    }
    from_json(&text).context("it is not valid JSON")
}

/// Publishes the values. An unchanged value is not published again.
pub(crate) fn publish(publisher: &Publisher, values: &[FromFile]) -> Result<()> {
    for value in values {
        publisher.publish(value.name.as_bytes(), &value.encoded)?;
    }
    Ok(())
}
