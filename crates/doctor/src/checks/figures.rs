//! Shares and quantities, and their text.

use samovar_wire::RouteFacts;

/// Returns the share of a part; 0 if the whole is 0.
#[allow(clippy::cast_precision_loss)] // Shown with few digits.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Returns a text such as `12 %`; `0.4 %` below one percent.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 1.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Returns a text such as `1.5 ms` or `40 µs`.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{:.1} s", ns / 1e9),
        ns if ns >= 1e7 => format!("{:.0} ms", ns / 1e6),
        ns if ns >= 1e6 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.0} µs", ns / 1e3),
    }
}

/// Returns the mean time for each of a number of requests, as text.
pub(super) fn mean_time(ns: u64, requests: u64) -> String {
    time(share(ns, requests))
}

/// Returns a text such as `128 MiB`.
#[allow(clippy::cast_precision_loss)] // Shown with few digits.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        n if n >= 10 << 30 => format!("{} GiB", n >> 30),
        n if n >= 1 << 30 => format!("{:.1} GiB", n as f64 / f64::from(1 << 30)),
        n if n >= 10 << 20 => format!("{} MiB", n >> 20),
        n if n >= 1 << 20 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n => format!("{} KiB", n >> 10),
    }
}

/// Returns number and total ns of a route's waits of this kind.
pub(super) fn waited(route: &RouteFacts, kind: &str, peer: impl Fn(&str) -> bool) -> (u64, u64) {
    let own = route.waits.iter().filter(|wait| wait.kind == kind && peer(&wait.peer));
    own.fold((0, 0), |(times, ns), wait| {
        (u64::saturating_add(times, wait.times), u64::saturating_add(ns, wait.ns))
    })
}

#[cfg(test)]
mod tests {
    use super::{percent, share, size, time};

    #[test]
    fn figures_have_few_digits_and_units() {
        assert_eq!((&*percent(share(1, 300)), &*percent(share(1, 3))), ("0.3 %", "33 %"));
        assert_eq!(share(1, 0).to_bits(), 0);
        let times = [40_100.0, 1_540_000.0, 25_000_000.0, 2e9].map(time);
        assert_eq!(times, ["40 µs", "1.5 ms", "25 ms", "2.0 s"]);
        let sizes = [3 << 10, 3 << 19, 128 << 20, 3 << 29, 64 << 30].map(size);
        assert_eq!(sizes, ["3 KiB", "1.5 MiB", "128 MiB", "1.5 GiB", "64 GiB"]);
    }
}
