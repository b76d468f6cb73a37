//! Buckets whose bounds are powers of 2^(1/8): those of Prometheus' native histograms and of
//! OpenTelemetry's exponential ones.

use crate::histogram::Histogram;

/// Resolution: 2³ buckets for each doubling, so 9 % apart.
pub(super) const SCALE: i32 = 3;
const PER_DOUBLING: f64 = 8.0;
const NS_PER_S: f64 = 1e9;

/// Times by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogBuckets {
    /// Number of times that are zero.
    pub(super) zeros: u64,
    /// Buckets that are not empty as (bucket, number of times), ascending. Bucket `i` ends at
    /// 2^(i/8) s.
    pub(super) counts: Vec<(i32, u64)>,
}

impl LogBuckets {
    pub(super) fn of(times: &Histogram) -> LogBuckets {
        let mut all = LogBuckets::default();
        for (ns, n) in times.filled() {
            if ns == 0 {
                all.zeros += n;
                continue;
            }
            let bucket = ((ns as f64 / NS_PER_S).log2() * PER_DOUBLING).ceil() as i32;
            match all.counts.last_mut() {
                Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(n),
                _ => all.counts.push((bucket, n)),
            }
        }
        all
    }
}
