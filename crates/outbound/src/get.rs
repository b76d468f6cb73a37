//! Reads one document.

use crate::agent;
use std::time::Duration;

/// Returns status and body of a document at an `http://` or `https://` address. A longer body than
/// `bytes_max` is an error.
pub fn get(url: &str, step: Duration, bytes_max: u64) -> Result<(u16, String), String> {
    let agent = if url.starts_with("https:") {
        agent::secure(step, None).map_err(|error| error.to_string())?
    } else {
        agent::plain(step)
    };
    let mut response = agent.get(url).call().map_err(|error| error.to_string())?;
    let body = response.body_mut().with_config().limit(bytes_max).read_to_string();
    Ok((response.status().as_u16(), body.map_err(|error| error.to_string())?))
}
