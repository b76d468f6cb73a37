//! `samovar status`: php-fpm servers of `fastcgi_pass`, and the addresses of their host names.

use super::phrases::{age, whose};
use samovar_wire::{UpstreamError, UpstreamStatus, UpstreamTally};
use std::fmt::Write as _;
use std::time::Duration;

/// Maximum number of listed addresses of a host name; `--json` has all.
const ADDRESSES_LISTED_MAX: usize = 16;

/// Writes a line such as `php-fpm at php.internal:9000: 120 requests  response heads after 12.0 ms
/// 3 of 64 connections  waiting 0 (queue 2 of 1024)`, the last failure, and a line for each
/// address.
pub(super) fn render(of: &UpstreamStatus, now: u64, out: &mut String) {
    let UpstreamStatus { pool, address, connections, connections_max, waiting, .. } = of;
    let UpstreamStatus { queued, queue_max, tally, addresses, .. } = of;
    let _ = writeln!(
        out,
        "{}php-fpm at {address}: {}  {connections} of {connections_max} connections  \
         waiting {waiting} (queue {queued} of {queue_max}){}",
        whose(pool),
        requests(tally),
        troubles(tally, now)
    );
    for one in addresses.iter().take(ADDRESSES_LISTED_MAX) {
        let (responded, wrong) = (requests(&one.tally), troubles(&one.tally, now));
        let (address, connections) = (&one.address, one.connections);
        let _ = writeln!(out, "  {address}: {responded}  {connections} connections{wrong}");
    }
    if let Some(more) = addresses.len().checked_sub(ADDRESSES_LISTED_MAX).filter(|n| *n > 0) {
        let _ = writeln!(out, "  and {more} more addresses (--json lists them)");
    }
}

/// Returns a text such as `120 requests  response heads after 12.0 ms`.
fn requests(of: &UpstreamTally) -> String {
    let mean = of.mean_seconds();
    let mean = mean.map(|mean| format!("  response heads after {:.1} ms", mean * 1000.0));
    format!("{} requests{}", of.requests_total, mean.unwrap_or_default())
}

/// Returns a text such as `  failed 2 (closed 2), the last 5m00s ago: closed`.
fn troubles(of: &UpstreamTally, now: u64) -> String {
    let Some(UpstreamError { reason, words, at }) = &of.last_trouble else {
        return String::new();
    };
    let counted = of.troubles.iter().filter(|(_, number)| **number > 0);
    let each: Vec<_> = counted.map(|(reason, number)| format!("{reason} {number}")).collect();
    let since = age(Duration::from_secs(now.saturating_sub(*at)).as_secs_f64());
    let words = if words.is_empty() { reason } else { words };
    let (total, each) = (of.errors_total(), each.join(", "));
    format!("  failed {total} ({each}), the last {since} ago: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_wire::UpstreamAddress;

    #[test]
    fn failing_address_is_listed_with_its_failure() {
        let well = UpstreamTally {
            requests_total: 10,
            responses_total: 10,
            waited_seconds: 0.12,
            ..UpstreamTally::default()
        };
        let trouble = UpstreamError { reason: "quiet".to_owned(), at: 700, ..Default::default() };
        let sick = UpstreamTally {
            requests_total: 2,
            troubles: [("quiet".to_owned(), 2), ("full".to_owned(), 0)].into(),
            last_trouble: Some(trouble),
            ..UpstreamTally::default()
        };
        let address = |address: &str, connections, tally: &UpstreamTally| UpstreamAddress {
            address: address.to_owned(),
            connections,
            tally: tally.clone(),
        };
        let mut of = UpstreamStatus {
            pool: "old".to_owned(),
            address: "php.internal:9000".to_owned(),
            connections: 3,
            connections_max: 64,
            waiting: 1,
            queued: 2,
            queue_max: 1024,
            tally: UpstreamTally { requests_total: 12, ..sick.clone() },
            addresses: vec![address("10.0.0.1:9000", 1, &well), address("10.0.0.2:9000", 2, &sick)],
        };
        let mut out = String::new();
        render(&of, 1000, &mut out);
        assert_eq!(
            out,
            "pool old: php-fpm at php.internal:9000: 12 requests  3 of 64 connections  waiting 1 \
             (queue 2 of 1024)  failed 2 (quiet 2), the last 5m00s ago: quiet\n\x20 \
             10.0.0.1:9000: 10 requests  response heads after 12.0 ms  1 connections\n\x20 \
             10.0.0.2:9000: 2 requests  2 connections  failed 2 (quiet 2), the last 5m00s ago: \
             quiet\n"
        );
        of.addresses = vec![address("10.0.0.1:9000", 1, &well); ADDRESSES_LISTED_MAX + 3];
        out.clear();
        render(&of, 1000, &mut out);
        assert_eq!(out.lines().count(), 1 + ADDRESSES_LISTED_MAX + 1);
        assert!(out.ends_with("  and 3 more addresses (--json lists them)\n"), "{out}");
    }
}
