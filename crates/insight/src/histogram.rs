//! Histogram of times whose quantiles have an error of less than 1 %.
//!
//! Buckets are log-linear ([HdrHistogram](https://hdrhistogram.org)). The histograms of two
//! machines, or of two minutes, are added bucket by bucket; the sum equals a single histogram of
//! all values. Quantiles must never be merged.
//!
//! A histogram takes 0.5 KB, and 0.25 KB more for each doubling of the longest time above 25 µs: 4
//! KB up to a second. From 65,536 times on it takes twice as much. For a route with few requests a
//! list of the times is smaller: the first [`FEW_MAX`] times are stored as they are.

use hdrhistogram::{Counter, Histogram as Buckets};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Unit of times: the minimum width of a bucket.
const UNIT_NS: u64 = 100;
/// Longest time that is recorded exactly: an hour. A longer time counts as an hour.
const UNITS_MAX: u64 = 3_600_000_000_000 / UNIT_NS;
/// Two significant digits: 128 buckets for each doubling.
const DIGITS: u8 = 2;
/// Maximum number of times in a list; with more, they are counted in buckets.
const FEW_MAX: usize = 256;
/// Maximum number of times for which a bucket of 16 bits cannot overflow.
const SOME_MAX: u64 = u16::MAX as u64;

/// A histogram of times in ns.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    times: Times,
    sum_ns: u64,
}

/// Times in units of [`UNIT_NS`].
#[derive(Clone, Debug)]
enum Times {
    /// A list of all times, none above 32 bits.
    Few(Vec<u32>),
    /// Buckets for at most [`SOME_MAX`] times.
    Some(Box<Buckets<u16>>),
    Many(Box<Buckets<u32>>),
}

impl Default for Times {
    fn default() -> Times {
        Times::Few(Vec::new())
    }
}

/// Creates buckets for times up to this one and no longer: a vector that grows automatically would
/// double.
fn room<C: Counter>(units: u64) -> Buckets<C> {
    Buckets::new_with_max(units.max(2), DIGITS).expect("two digits, and a limit above 1")
}

fn record<C: Counter>(buckets: &mut Buckets<C>, units: u64, times: C) {
    if buckets.record_n(units, times).is_err() {
        let mut larger = room(units);
        larger.add(&*buckets).expect("room for shorter times");
        larger.record_n(units, times).expect("room for this time");
        *buckets = larger;
    }
}

/// Returns each bucket that is not empty as (units, times).
fn recorded<C: Counter>(buckets: &Buckets<C>) -> impl Iterator<Item = (u64, u64)> {
    buckets.iter_recorded().map(|b| (b.value_iterated_to(), b.count_since_last_iteration()))
}

fn short(times: u64) -> u32 {
    u32::try_from(times).unwrap_or(u32::MAX)
}

impl Times {
    fn add(&mut self, units: u64, times: u64) {
        loop {
            match self {
                Times::Few(few) => match u32::try_from(units) {
                    Ok(units) if few.len() as u64 + times <= FEW_MAX as u64 => {
                        return few.extend(std::iter::repeat_n(units, times as usize));
                    }
                    _ => *self = Times::Some(Box::new(self.counted())),
                },
                Times::Some(buckets) if times <= SOME_MAX && buckets.len() + times <= SOME_MAX => {
                    return record(buckets, units, times as u16);
                }
                Times::Some(_) => *self = Times::Many(Box::new(self.counted())),
                Times::Many(buckets) => return record(buckets, units, short(times)),
            }
        }
    }

    /// Passes all times to `take` as (units, times).
    fn each(&self, mut take: impl FnMut(u64, u64)) {
        match self {
            Times::Few(few) => few.iter().for_each(|units| take(u64::from(*units), 1)),
            Times::Some(buckets) => recorded(buckets).for_each(|(units, n)| take(units, n)),
            Times::Many(buckets) => recorded(buckets).for_each(|(units, n)| take(units, n)),
        }
    }

    /// Returns all times in buckets.
    fn counted<C: Counter>(&self) -> Buckets<C> {
        let longest = match self {
            Times::Few(few) => few.iter().max().map_or(0, |units| u64::from(*units)),
            Times::Some(buckets) => buckets.max(),
            Times::Many(buckets) => buckets.max(),
        };
        let mut counted = room(longest);
        self.each(|units, n| {
            let times = C::from_u64(n).expect("the kind is chosen by the number of values");
            record(&mut counted, units, times);
        });
        counted
    }
}

/// Number of times, in units, with a bucket of their own. Each doubling above has half as many
/// buckets. Follows from [`DIGITS`].
const SINGLES: usize = 256;
/// Number of doublings above them, up to 32 bits.
const DOUBLINGS: usize = (u32::BITS - SINGLES.ilog2()) as usize;

/// Counts times by bucket, so that many times can be added to several histograms at once, by bucket
/// instead of one by one.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    times: Box<[u16]>,
    /// Buckets that are not empty, as (bucket, one of its times in units).
    used: Vec<(u16, u32)>,
    sum_ns: u64,
}

impl Default for Counting {
    fn default() -> Counting {
        let buckets = SINGLES + DOUBLINGS * SINGLES / 2;
        Counting { times: vec![0; buckets].into(), used: Vec::new(), sum_ns: 0 }
    }
}

impl Counting {
    /// Returns the bucket of a time, as in the histograms: values that agree in their first eight
    /// bits share one.
    fn bucket(units: u32) -> usize {
        if (units as usize) < SINGLES {
            return units as usize;
        }
        let doublings = DOUBLINGS - units.leading_zeros() as usize;
        doublings * SINGLES / 2 + (units >> doublings) as usize
    }

    /// Adds a time; at most 65,535 times before [`Counting::end`].
    pub(crate) fn take(&mut self, ns: u32) {
        self.sum_ns += u64::from(ns);
        let units = ns / UNIT_NS as u32;
        let bucket = Counting::bucket(units);
        let times = &mut self.times[bucket];
        if *times == 0 {
            self.used.push((bucket as u16, units));
        }
        *times = times.saturating_add(1);
    }

    /// Moves the counts to `counted` and starts again from zero.
    pub(crate) fn end(&mut self, counted: &mut Counted) {
        counted.sum_ns = std::mem::take(&mut self.sum_ns);
        counted.count = 0;
        counted.buckets.clear();
        for (bucket, units) in self.used.drain(..) {
            let times = std::mem::take(&mut self.times[usize::from(bucket)]);
            counted.count += u64::from(times);
            counted.buckets.push((units, times));
        }
    }
}

/// Times by bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Exact sum.
    pub(crate) sum_ns: u64,
    count: u64,
    /// Buckets as (one of its times in units, number of times).
    buckets: Vec<(u32, u16)>,
}

impl Counted {
    /// Returns the number of times.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

impl Histogram {
    /// Adds counted times.
    pub(crate) fn add_counted(&mut self, counted: &Counted) {
        self.sum_ns = self.sum_ns.saturating_add(counted.sum_ns);
        for (units, times) in &counted.buckets {
            self.times.add(u64::from(*units), u64::from(*times));
        }
    }

    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.times.add((ns / UNIT_NS).min(UNITS_MAX), 1);
    }

    /// Adds this number of times of 0 ns.
    pub(crate) fn add_zeros(&mut self, times: u64) {
        if times > 0 {
            self.times.add(0, times);
        }
    }

    /// Adds all times of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        other.times.each(|units, n| self.times.add(units, n));
    }

    /// Returns the times in buckets, in any representation. So the results do not depend on the
    /// number of times.
    fn buckets(&self) -> Cow<'_, Buckets<u32>> {
        match &self.times {
            Times::Many(buckets) => Cow::Borrowed(&**buckets),
            few => Cow::Owned(few.counted()),
        }
    }

    /// Returns the number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.times {
            Times::Few(few) => few.len() as u64,
            Times::Some(buckets) => buckets.len(),
            Times::Many(buckets) => buckets.len(),
        }
    }

    /// Returns the exact sum.
    #[must_use]
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the longest time, in ns.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.buckets().max() * UNIT_NS
    }

    /// Returns the quantile `q` (0 to 1); 0 without any times.
    #[must_use]
    pub fn quantile_ns(&self, q: f64) -> u64 {
        self.buckets().value_at_quantile(q) * UNIT_NS
    }

    /// Returns the number of times up to each of `bounds_ns`, which must be ascending. Counts are
    /// cumulative, as in Prometheus.
    #[must_use]
    pub fn cumulative(&self, bounds_ns: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; bounds_ns.len()];
        for (ns, times) in self.filled() {
            let at = bounds_ns.partition_point(|bound| *bound < ns);
            if let Some(count) = counts.get_mut(at) {
                *count += times;
            }
        }
        let mut sum = 0;
        for count in &mut counts {
            sum += *count;
            *count = sum;
        }
        counts
    }

    /// Returns each bucket that is not empty as (longest time of the bucket in ns, times),
    /// ascending. For charts.
    #[must_use]
    pub fn filled(&self) -> Vec<(u64, u64)> {
        recorded(&*self.buckets()).map(|(units, times)| (units * UNIT_NS, times)).collect()
    }

    /// Returns whether there are no times.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let times = match &self.times {
            Times::Few(few) => few.capacity() * size_of::<u32>(),
            Times::Some(buckets) => {
                size_of::<Buckets<u16>>() + buckets.distinct_values() * size_of::<u16>()
            }
            Times::Many(buckets) => {
                size_of::<Buckets<u32>>() + buckets.distinct_values() * size_of::<u32>()
            }
        };
        size_of::<Self>() + times
    }
}

/// Stored form: the sum, then each bucket that is not empty as (units, times).
type Stored = (u64, Vec<(u64, u32)>);

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counted = self.buckets();
        let each = recorded(&*counted).map(|(units, times)| (units, short(times)));
        let buckets: Vec<_> = each.collect();
        let stored: Stored = (self.sum_ns, buckets);
        stored.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let (sum_ns, buckets) = Stored::deserialize(deserializer)?;
        let mut histogram = Histogram { sum_ns, ..Histogram::default() };
        for (units, times) in buckets {
            histogram.times.add(units.min(UNITS_MAX), times.into());
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Counting, FEW_MAX, Histogram, SOME_MAX, Times, UNIT_NS, room};

    const MS: u64 = 1_000_000;

    fn of(times: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        times.into_iter().for_each(|ns| histogram.add(ns));
        histogram
    }

    fn is_near(found: u64, expected: u64) -> bool {
        100 * found.abs_diff(expected) <= expected
    }

    #[test]
    fn quantile_error_is_at_most_one_per_cent() {
        let times = of((1..=100_000).map(|n| n * 1_000));
        for (q, expected) in [(0.5, 50 * MS), (0.95, 95 * MS), (0.99, 99 * MS), (1.0, 100 * MS)] {
            assert!(is_near(times.quantile_ns(q), expected), "{q}: {}", times.quantile_ns(q));
        }
        assert_eq!((times.count(), times.sum_ns()), (100_000, 5_000_050_000_000));
        assert!(is_near(times.max_ns(), 100 * MS));
    }

    #[test]
    fn merged_histogram_equals_single_histogram() {
        let (first, second) = ((0..5_000).map(|n| n * 700), (0..300).map(|n| n * n * n));
        let (mut a, b) = (of(first.clone()), of(second.clone()));
        a.merge(&b);
        let both = of(first.chain(second));
        for percent in 0..=100 {
            let q = f64::from(percent) / 100.0;
            assert_eq!(a.quantile_ns(q), both.quantile_ns(q), "{q}");
        }
        assert_eq!((a.count(), a.sum_ns()), (both.count(), both.sum_ns()));
    }

    #[test]
    fn cumulative_counts_values_up_to_bounds() {
        let times = of((1..=1_000).map(|n| n * MS));
        let counts = times.cumulative(&[MS / 2, 10 * MS, 500 * MS, 2_000 * MS]);
        for (found, expected) in counts.into_iter().zip([0, 10, 500, 1_000]) {
            assert!(found.abs_diff(expected) <= expected / 100 + 1, "{found} of {expected}");
        }
        assert_eq!(Histogram::default().cumulative(&[1, 2]), [0, 0]);
        assert_eq!(times.filled().iter().map(|(_, n)| n).sum::<u64>(), 1_000);
    }

    /// Counts exported to Prometheus must never decrease, and a quantile must not jump because of
    /// one more time.
    #[test]
    fn list_and_buckets_give_equal_results() {
        for n in [1, 3, FEW_MAX as u64, FEW_MAX as u64 + 1, SOME_MAX, SOME_MAX + 1] {
            let each = || (0..n).map(|n| 49_000 + n % 300 * n % 7_919 * 7_919);
            let (few, mut many) = (of(each()), Histogram::default());
            many.times = Times::Many(Box::new(room(2)));
            each().for_each(|ns| many.add(ns));
            assert_eq!(few.filled(), many.filled(), "{n}");
            assert_eq!((few.count(), few.max_ns()), (many.count(), many.max_ns()), "{n}");
            assert_eq!(few.cumulative(&[50_000, MS]), many.cumulative(&[50_000, MS]), "{n}");
            for both in [(&few, &many), (&many, &few), (&few, &few)] {
                let (mut a, b) = (both.0.clone(), both.1);
                a.merge(b);
                assert_eq!((a.count(), a.sum_ns()), (2 * n, 2 * few.sum_ns()), "{n}");
                assert_eq!(a.quantile_ns(0.5), many.quantile_ns(0.5), "{n}");
            }
        }
        assert!(of([MS; 3]).bytes() < 100 && Histogram::default().bytes() < 64);
    }

    #[test]
    fn counted_times_fall_into_same_buckets() {
        let mut counting = Counting::default();
        let mut counted = Counted::default();
        let mut next = 1_u64;
        for (batches, doublings) in [(1, 20), (3, 32), (300, 32)] {
            let (mut one, mut other) = (Histogram::default(), Histogram::default());
            for _ in 0..batches {
                for n in 0..250 {
                    next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
                    let ns = (next >> 32) as u32 >> (n % doublings);
                    one.add(u64::from(ns));
                    counting.take(ns);
                }
                counting.end(&mut counted);
                other.add_counted(&counted);
            }
            assert_eq!(one.filled(), other.filled());
            assert_eq!((one.count(), one.sum_ns()), (other.count(), other.sum_ns()));
            assert_eq!(one.bytes(), other.bytes());
        }
        for units in (0..26).map(|n| 1_u32 << n).chain([u32::MAX / UNIT_NS as u32]) {
            for units in units - 1..=units {
                let (mut one, mut other) = (Histogram::default(), Histogram::default());
                let ns = units * UNIT_NS as u32;
                one.add(u64::from(ns));
                counting.take(ns);
                counting.end(&mut counted);
                other.add_counted(&counted);
                assert_eq!(one.filled(), other.filled(), "{ns}");
            }
        }
    }

    #[test]
    fn stored_histogram_is_equal_after_reading() {
        let times = of((0..3_000).map(|n| n * n * n));
        let text = serde_json::to_string(&times).unwrap();
        let read: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!((read.count(), read.sum_ns()), (times.count(), times.sum_ns()));
        for percent in 0..=100 {
            let q = f64::from(percent) / 100.0;
            assert_eq!(read.quantile_ns(q), times.quantile_ns(q), "{q}");
        }
    }

    #[test]
    fn extreme_times_are_accepted_and_memory_is_bounded() {
        let times = of([0, 99, u64::MAX, u64::MAX]);
        assert_eq!((times.count(), times.sum_ns()), (4, u64::MAX));
        assert_eq!(times.quantile_ns(0.25), 0);
        assert!(times.bytes() < 20_000, "{}", times.bytes());
        assert!(of([MS; 3]).bytes() < 5_000);
        assert!(of([1_000 * MS]).bytes() < 10_000);
    }
}
