//! State of the php-fpm servers of `fastcgi_pass`, for `status`.

use samovar_front::{AddressFigures, PassFigures, TallyFigures, UpstreamFailure};
use samovar_wire::{UpstreamAddress, UpstreamError, UpstreamStatus, UpstreamTally};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the upstreams of a pool; its name is empty if the server has one pool.
pub(super) fn of_pool(pool: &str, of: PassFigures) -> Vec<UpstreamStatus> {
    let PassFigures { queued, queue_max, all } = of;
    let each = all.into_iter().map(|of| UpstreamStatus {
        pool: pool.to_owned(),
        address: of.address,
        connections: of.connections,
        connections_max: of.connections_max,
        waiting: of.waiting,
        queued,
        queue_max,
        tally: tally(of.tally),
        addresses: of.addresses.into_iter().map(address).collect(),
    });
    each.collect()
}

fn address(of: AddressFigures) -> UpstreamAddress {
    let AddressFigures { address, connections, tally: of } = of;
    UpstreamAddress { address: address.to_string(), connections, tally: tally(of) }
}

fn tally(of: TallyFigures) -> UpstreamTally {
    let unix = |at: SystemTime| at.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_secs());
    UpstreamTally {
        requests_total: of.requests,
        responses_total: of.responses,
        waited_seconds: of.waited.as_secs_f64(),
        troubles: by_failure(&of.troubles),
        last_trouble: of.last.map(|last| UpstreamError {
            reason: last.trouble.name().to_owned(),
            words: last.words,
            at: unix(last.at),
        }),
    }
}

pub(super) fn by_failure(totals: &[u64; UpstreamFailure::ALL.len()]) -> BTreeMap<String, u64> {
    UpstreamFailure::ALL.iter().map(|why| (why.name().to_owned(), totals[*why as usize])).collect()
}
