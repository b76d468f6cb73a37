//! Forecast of daily peaks: trend, steps and weekly season, with a band.
//!
//! The peak of a day is its busiest five minutes. Weekday factors are medians of the ratio to the
//! trend. Peaks without them follow a line; its slope is the median of
//! the slopes of all pairs of days (Theil–Sen), within the parts between steps. The band is a
//! bootstrap of the residuals in blocks of a week, with a fixed seed.

use crate::calendar::weekday;
use crate::numbers::{MAD, Random, deviation, median, quantile};
use serde::Serialize;
use std::collections::BTreeSet;

/// Minimum number of days for a trend.
pub(crate) const DAYS_MIN: usize = 14;
/// Number of repetitions of the bootstrap.
const REPEATS: usize = 300;
/// Length of a block of residuals.
const BLOCK: usize = 7;
/// Maximum number of pairs for one slope.
const PAIRS_MAX: usize = 12_000;
/// Maximum number of steps.
const STEPS_MAX: usize = 2;
/// Minimum number of days between steps.
const STEP_DAYS: usize = 10;
/// Steps must be larger than this number of deviations.
const STEP_DEVIATIONS: f64 = 4.0;
/// Days by which the day of a step varies in the bootstrap.
const JITTER: usize = 4;
/// Seed of the bootstrap.
const SEED: u64 = 42;
/// Width of the band.
pub const BAND: f64 = 0.8;

/// Peak of a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Days since 1970.
    pub day: i64,
    /// Requests per second.
    pub rate: f64,
}

/// A line with the weekday factors.
#[derive(Clone, Debug, PartialEq)]
struct Course {
    /// Level at the last day of the data.
    level: f64,
    slope: f64,
    factors: [f64; 7],
}

impl Course {
    fn at(&self, day: i64, origin: i64) -> f64 {
        ((self.level + self.slope * (day - origin) as f64) * self.factors[weekday(day)]).max(0.0)
    }
}

/// Forecast of daily peaks.
#[derive(Clone, Debug)]
pub struct Forecast {
    /// Days of the data.
    pub days: usize,
    /// Last day of the data.
    pub last: i64,
    /// Requests per second that are added each day, at a weekday with factor 1.
    pub slope: f64,
    /// Level at the last day, at a weekday with factor 1.
    pub level: f64,
    /// Factors of the weekdays; place 0 is a Thursday.
    pub factors: [f64; 7],
    /// Steps: the day, and the change in requests per second.
    pub steps: Vec<(i64, f64)>,
    course: Course,
    repeats: Vec<Course>,
    /// Relative residuals.
    residuals: Vec<f64>,
}

/// A date with its band. `None`: not within the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Crossing {
    /// Expected day.
    pub day: Option<i64>,
    /// Early end of the band.
    pub earliest: Option<i64>,
    /// Late end of the band.
    pub latest: Option<i64>,
}

impl Forecast {
    /// Fits the peaks, without those of holidays. `Err` is the reason why there is no forecast.
    pub fn fit(peaks: &[Peak], holidays: &BTreeSet<i64>) -> Result<Forecast, String> {
        let peaks: Vec<Peak> = peaks
            .iter()
            .filter(|peak| !holidays.contains(&peak.day) && peak.rate > 0.0)
            .copied()
            .collect();
        let count = peaks.len();
        if count < DAYS_MIN {
            let days = if count == 1 { "day" } else { "days" };
            return Err(format!("{count} {days} of data: a trend needs {DAYS_MIN}"));
        }
        let last = peaks.last().map_or(0, |peak| peak.day);
        let mut random = Random::new(SEED);
        let mut factors = factors(&peaks);
        let mut steps = Vec::new();
        // Factors from detrended peaks are better than those of the first look.
        for _ in 0..2 {
            let plain = without(&peaks, &factors);
            steps = find_steps(&plain, &mut random);
            let (slope, jumps) = fit_line(&plain, &steps, &mut random);
            let level = level_of(&plain, slope, &jumps, last);
            factors = refined(&peaks, |day| level_at(day, last, level, slope, &jumps), &factors);
        }
        let plain = without(&peaks, &factors);
        let (slope, jumps) = fit_line(&plain, &steps, &mut random);
        let level = level_of(&plain, slope, &jumps, last);
        let expected = |day: i64| level_at(day, last, level, slope, &jumps) * factors[weekday(day)];
        let mut residuals: Vec<f64> =
            peaks.iter().map(|peak| peak.rate / expected(peak.day).max(1e-9) - 1.0).collect();
        // The fit takes part of the scatter away: 2 numbers of the line, 6 of the week, and the size
        // and day of each step, which is chosen among many.
        let taken = (8 + 6 * jumps.len()) as f64;
        let scale = (count as f64 / (count as f64 - taken).max(2.0)).sqrt();
        for residual in &mut residuals {
            *residual *= scale;
        }
        let course = Course { level, slope, factors };
        let mut forecast = Forecast {
            days: count,
            last,
            slope,
            level,
            factors,
            steps: jumps.iter().map(|(at, size)| (*at, *size)).collect(),
            course,
            repeats: Vec::new(),
            residuals,
        };
        let truth: Vec<Peak> =
            peaks.iter().map(|peak| Peak { day: peak.day, rate: expected(peak.day) }).collect();
        forecast.repeats =
            (0..REPEATS).map(|_| forecast.repeat(&truth, &jumps, &mut random)).collect();
        Ok(forecast)
    }

    /// Fits the expected peaks with residuals of other days.
    fn repeat(&self, truth: &[Peak], jumps: &[(i64, f64)], random: &mut Random) -> Course {
        let count = truth.len();
        let mut drawn = Vec::with_capacity(count + BLOCK);
        while drawn.len() < count {
            let begin = random.below(count);
            let sign = if random.unit() < 0.5 { -1.0 } else { 1.0 };
            drawn.extend((0..BLOCK).map(|n| sign * self.residuals[(begin + n) % count]));
        }
        let peaks: Vec<Peak> = truth
            .iter()
            .zip(&drawn)
            .map(|(peak, residual)| Peak { rate: peak.rate * (1.0 + residual).max(0.05), ..*peak })
            .collect();
        // The day of a step is uncertain, too.
        let places: Vec<usize> = jumps
            .iter()
            .map(|(at, _)| {
                let place = peaks.partition_point(|peak| peak.day < *at);
                (place + random.below(2 * JITTER + 1)).saturating_sub(JITTER).min(count - 1)
            })
            .collect();
        let plain = without(&peaks, &self.factors);
        let (slope, found) = fit_line(&plain, &places, random);
        let level = level_of(&plain, slope, &found, self.last);
        let last = self.last;
        let factors =
            refined(&peaks, |day| level_at(day, last, level, slope, &found), &self.factors);
        Course { level, slope, factors }
    }

    /// Returns the expected peak of a day.
    pub fn at(&self, day: i64) -> f64 {
        self.course.at(day, self.last)
    }

    /// Returns the band of the expected peak of a day.
    pub fn band(&self, day: i64) -> (f64, f64) {
        let mut all: Vec<f64> =
            self.repeats.iter().map(|course| course.at(day, self.last)).collect();
        let edge = (1.0 - BAND) / 2.0;
        (quantile(&mut all, edge), quantile(&mut all, 1.0 - edge))
    }

    /// Relative deviation of single days from the expected peak.
    pub fn scatter(&self) -> f64 {
        deviation(&self.residuals)
    }

    /// Returns the highest expected peak of the week that ends with this day.
    pub fn weekly(&self, day: i64) -> f64 {
        (day - 6..=day).map(|day| self.at(day)).fold(0.0, f64::max)
    }

    /// Returns the first day from `from` to `to` whose expected peak reaches a rate. `error` is the
    /// relative standard error of the rate; `growth` multiplies all peaks.
    pub fn crossing(&self, rate: f64, error: f64, growth: f64, from: i64, to: i64) -> Crossing {
        let first = |course: &Course, rate: f64| {
            (from..=to).find(|day| course.at(*day, self.last) * growth >= rate)
        };
        let mut random = Random::new(SEED);
        let mut all: Vec<f64> = self
            .repeats
            .iter()
            .map(|course| first(course, rate * (1.0 + error * random.normal()).max(0.1)))
            .map(|day| day.map_or(f64::INFINITY, |day| day as f64))
            .collect();
        let edge = (1.0 - BAND) / 2.0;
        let day = |value: f64| value.is_finite().then_some(value as i64);
        Crossing {
            day: first(&self.course, rate),
            earliest: day(quantile(&mut all, edge)),
            latest: day(quantile(&mut all, 1.0 - edge)),
        }
    }
}

/// Divides the peaks by the factors of their weekdays.
fn without(peaks: &[Peak], factors: &[f64; 7]) -> Vec<(f64, f64)> {
    peaks.iter().map(|peak| (peak.day as f64, peak.rate / factors[weekday(peak.day)])).collect()
}

/// Weekday factors from the ratio to the median of the week around each day.
fn factors(peaks: &[Peak]) -> [f64; 7] {
    let around = |day: i64| {
        let week = peaks.iter().filter(|peak| (peak.day - day).abs() <= 3);
        let (sum, count) = week.fold((0.0, 0.0), |all, peak| (all.0 + peak.rate, all.1 + 1.0));
        sum / f64::max(count, 1.0)
    };
    refined(peaks, around, &[1.0; 7])
}

/// Weekday factors as medians of the ratio to a level, with a mean of 1.
fn refined(peaks: &[Peak], level: impl Fn(i64) -> f64, before: &[f64; 7]) -> [f64; 7] {
    let mut found = *before;
    for (place, factor) in found.iter_mut().enumerate() {
        let of_day = peaks.iter().filter(|peak| weekday(peak.day) == place);
        let mut ratios: Vec<f64> =
            of_day.map(|peak| peak.rate / level(peak.day).max(1e-9)).collect();
        if ratios.len() >= 2 {
            // The mean of the middle two: with few weeks, one median is an outlier's.
            let (low, high) = (quantile(&mut ratios, 0.34), quantile(&mut ratios, 0.66));
            *factor = f64::midpoint(low, high).clamp(0.02, 50.0);
        }
    }
    let mean = found.iter().sum::<f64>() / 7.0;
    found.map(|factor| factor / mean)
}

/// Level at a day: the line, without the steps after the day.
fn level_at(day: i64, last: i64, level: f64, slope: f64, jumps: &[(i64, f64)]) -> f64 {
    let later: f64 = jumps.iter().filter(|(at, _)| *at > day).map(|(_, size)| size).sum();
    level + slope * (day - last) as f64 - later
}

fn level_of(plain: &[(f64, f64)], slope: f64, jumps: &[(i64, f64)], last: i64) -> f64 {
    let mut rest: Vec<f64> = plain
        .iter()
        .map(|(day, rate)| rate - level_at(*day as i64, last, 0.0, slope, jumps))
        .collect();
    median(&mut rest)
}

/// Fits one slope for all parts between `steps`, which are places in `plain`; returns it with the
/// day and size of each step.
fn fit_line(plain: &[(f64, f64)], steps: &[usize], random: &mut Random) -> (f64, Vec<(i64, f64)>) {
    let slope = slope(plain, steps, random);
    let mut edges = vec![0];
    edges.extend_from_slice(steps);
    edges.push(plain.len());
    let mut levels = edges.windows(2).map(|part| {
        let mut rest: Vec<f64> =
            plain[part[0]..part[1]].iter().map(|(day, rate)| rate - slope * day).collect();
        median(&mut rest)
    });
    let mut before = levels.next().unwrap_or(0.0);
    let jumps = steps.iter().zip(levels).map(|(at, level)| {
        let size = level - before;
        before = level;
        (plain[*at].0 as i64, size)
    });
    let jumps = jumps.collect();
    (slope, jumps)
}

/// Median of the slopes of pairs within the same part.
fn slope(plain: &[(f64, f64)], steps: &[usize], random: &mut Random) -> f64 {
    let count = plain.len();
    let part = |place: usize| steps.partition_point(|step| *step <= place);
    let of = |i: usize, j: usize| {
        let width = plain[j].0 - plain[i].0;
        (width != 0.0 && part(i) == part(j)).then(|| (plain[j].1 - plain[i].1) / width)
    };
    let mut slopes: Vec<f64> = if count * count / 2 <= PAIRS_MAX {
        (0..count).flat_map(|i| (i + 1..count).filter_map(move |j| of(i, j))).collect()
    } else {
        let mut draw = || of(random.below(count), random.below(count));
        (0..PAIRS_MAX).filter_map(|_| draw()).collect()
    };
    median(&mut slopes)
}

/// Finds lasting changes of the level. A trend alone must explain much less.
fn find_steps(plain: &[(f64, f64)], random: &mut Random) -> Vec<usize> {
    let mut steps: Vec<usize> = Vec::new();
    let spread = |steps: &[usize], random: &mut Random| {
        let (slope, jumps) = fit_line(plain, steps, random);
        let last = plain.last().map_or(0, |point| point.0 as i64);
        let level = level_of(plain, slope, &jumps, last);
        let rest = plain
            .iter()
            .map(|(day, rate)| (rate - level_at(*day as i64, last, level, slope, &jumps)).abs());
        (rest.sum::<f64>(), jumps)
    };
    while steps.len() < STEPS_MAX {
        let (now, _) = spread(&steps, random);
        let mut best: Option<(f64, Vec<usize>, Vec<(i64, f64)>)> = None;
        for place in STEP_DAYS..plain.len().saturating_sub(STEP_DAYS) {
            if steps.iter().any(|step| step.abs_diff(place) < STEP_DAYS) {
                continue;
            }
            let mut tried = steps.clone();
            tried.push(place);
            tried.sort_unstable();
            let (rest, jumps) = spread(&tried, random);
            if best.as_ref().is_none_or(|best| rest < best.0) {
                best = Some((rest, tried, jumps));
            }
        }
        let Some((rest, tried, jumps)) = best else { break };
        let noise = MAD * rest / plain.len() as f64;
        let is_large = jumps.iter().all(|(_, size)| size.abs() > STEP_DEVIATIONS * noise);
        if rest > 0.75 * now || !is_large {
            break;
        }
        steps = tried;
    }
    steps
}
