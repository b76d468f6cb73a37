//! What boots and requests load: the socket between the processes that tell it and crates/profile, which explains it.

use anyhow::{Context, Result};
use samovar_channel::LoadsEnd;
use samovar_profile::loads::Loads;
use std::sync::Arc;

/// Of notes on their way, each with a report behind it: some twenty. More is lost, and nobody waits.
const WAITING_BYTES: usize = 16 * 1_024;

/// Who explains it, and the end that templates inherit.
pub(crate) fn open() -> Result<(Loads, Arc<LoadsEnd>)> {
    let (theirs, ours): (LoadsEnd, LoadsEnd) =
        samovar_channel::pair().context("cannot make the socket of what is loaded")?;
    rustix::net::sockopt::set_socket_send_buffer_size(&theirs, WAITING_BYTES)
        .context("cannot limit the socket of what is loaded")?;
    let loads = Loads::start(ours).context("cannot start the thread that explains boots")?;
    Ok((loads, Arc::new(theirs)))
}
