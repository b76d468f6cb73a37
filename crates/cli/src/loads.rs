//! What boots and requests load: the socket between the processes of each pool that tell it and crates/profile, which explains it.

use crate::descriptors;
use anyhow::{Context, Result};
use samovar_channel::LoadsEnd;
use samovar_profile::loads::Loads;
use std::sync::Arc;

/// Of notes on their way, each with a report behind it: some twenty. More is lost, and nobody waits.
const WAITING_BYTES: usize = 16 * 1_024;

/// Who explains it, and the ends that the templates of each of these pools inherit: by the socket it is known whose word it is.
pub(crate) fn open<'a>(
    pools: impl Iterator<Item = &'a str>,
) -> Result<(Loads, Vec<Arc<LoadsEnd>>)> {
    let (mut listened, mut telling) = (Vec::new(), Vec::new());
    for name in pools {
        let (theirs, ours): (LoadsEnd, LoadsEnd) =
            samovar_channel::pair().context("cannot make the socket of what is loaded")?;
        rustix::net::sockopt::set_socket_send_buffer_size(&theirs, WAITING_BYTES)
            .context("cannot limit the socket of what is loaded")?;
        listened.push((name.to_owned(), descriptors::put_high(ours)));
        telling.push(Arc::new(theirs));
    }
    let loads = Loads::start(listened).context("cannot start the thread that explains boots")?;
    Ok((loads, telling))
}
