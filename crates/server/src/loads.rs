//! Loads of boots and requests: the sockets between each pool's processes and crates/profile, which
//! evaluates the reports.

use crate::descriptors;
use anyhow::{Context, Result};
use samovar_channel::LoadsEnd;
use samovar_profile::loads::Loads;
use std::sync::Arc;

/// Send buffer of the socket: enough for about twenty messages, each with a report attached.
/// Further reports are lost; the sender never blocks.
const WAITING_BYTES: usize = 16 * 1_024;

/// Returns the receiver, and the socket ends that the templates of each pool inherit. The socket
/// identifies the pool of a report.
pub(crate) fn open<'a>(
    pools: impl Iterator<Item = &'a str>,
) -> Result<(Loads, Vec<Arc<LoadsEnd>>)> {
    let (mut listened, mut telling) = (Vec::new(), Vec::new());
    for name in pools {
        let (theirs, ours): (LoadsEnd, LoadsEnd) =
            samovar_channel::pair().context("cannot create the socket for load reports")?;
        rustix::net::sockopt::set_socket_send_buffer_size(&theirs, WAITING_BYTES)
            .context("cannot limit the socket for load reports")?;
        listened.push((name.to_owned(), descriptors::put_high(ours)));
        telling.push(Arc::new(theirs));
    }
    let loads = Loads::start(listened).context("cannot start the thread for boot reports")?;
    Ok((loads, telling))
}
