//! Forecast of daily peaks: trend, steps and weekly season, with a band.
//!
//! The peak of a day is its busiest five minutes. The model is a line with steps (`steps.rs`) times
//! the factor of the weekday times noise. Days far from their neighbours are left out. The band
//! comes from a bootstrap with a fixed seed: the model with new noise is fitted again, with a new
//! search for steps. The noise has the scatter and the autocorrelation of the residuals.

use crate::calendar::{self, weekday};
use crate::numbers::{Random, deviation, median, quantile};
use crate::steps::{self, Point, StepLine};
use serde::Serialize;
use std::collections::BTreeSet;

/// Minimum number of days for a trend.
pub(crate) const DAYS_MIN: usize = 14;
/// Smallest peak that counts, in requests per second.
const RATE_MIN: f64 = 1e-9;
/// Number of repetitions of the bootstrap.
const REPEATS: usize = 400;
/// Rounds of line and weekday factors in turn.
const ROUNDS: usize = 4;
/// The same in the bootstrap, which starts from good factors.
const ROUNDS_REPEATED: usize = 2;
/// Days before and after a day whose median is its usual value.
const NEIGHBOURS: usize = 5;
/// Days farther from their usual value than this number of deviations are outliers.
const OUTLIER: f64 = 4.0;
/// Maximum autocorrelation of neighbouring days.
const CORRELATED_MAX: f64 = 0.8;
/// Smallest level, relative to the median of all days: a falling line ends here.
const LEVEL_MIN: f64 = 0.02;
/// Seed of the bootstrap.
const SEED: u64 = 42;
/// Width of the band.
pub const BAND: f64 = 0.8;

/// Peak of a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// Days since 1970; as JSON a date.
    #[serde(serialize_with = "calendar::json")]
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

/// A date with its band, in days since 1970; as JSON dates. `None`: not within the horizon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Crossing {
    /// Expected day.
    #[serde(serialize_with = "calendar::json_option")]
    pub day: Option<i64>,
    /// Early end of the band.
    #[serde(serialize_with = "calendar::json_option")]
    pub earliest: Option<i64>,
    /// Late end of the band.
    #[serde(serialize_with = "calendar::json_option")]
    pub latest: Option<i64>,
}

impl Forecast {
    /// Fits the peaks, without those of holidays. `Err` is the reason why there is no forecast.
    pub fn fit(peaks: &[Peak], holidays: &BTreeSet<i64>) -> Result<Forecast, String> {
        let peaks: Vec<Peak> = peaks
            .iter()
            .filter(|peak| !holidays.contains(&peak.day) && peak.rate > RATE_MIN)
            .copied()
            .collect();
        let count = peaks.len();
        if count < DAYS_MIN {
            let days = if count == 1 { "day" } else { "days" };
            return Err(format!("{count} {days} of data: a trend needs {DAYS_MIN}"));
        }
        let last = peaks.last().map_or(0, |peak| peak.day);
        let mut days = Days::new(&peaks, last);
        let start = factors(&peaks);
        days.remove_outliers(&start);
        let fitted = days.fit(start, ROUNDS);
        // The first look at outliers had rough factors.
        days.remove_outliers(&fitted.factors);
        let fitted = days.fit(fitted.factors, ROUNDS);
        let mut noise = days.noise(&fitted);
        if noise.len() < DAYS_MIN / 2 {
            return Err("the peaks of neighbouring days differ too much for a trend".to_owned());
        }
        // The fit takes part of the scatter away: 2 numbers of the line, 6 of the week, and the
        // size and place of each step.
        let (used, taken) = (noise.len() as f64, (8 + 2 * fitted.line.steps.len()) as f64);
        let scale = (used / (used - taken).max(2.0)).sqrt();
        for (_, residual) in &mut noise {
            *residual *= scale;
        }
        let correlation = correlation(&noise, taken);
        let residuals: Vec<f64> = noise.into_iter().map(|(_, residual)| residual).collect();
        let mut random = Random::new(SEED);
        let repeats = (0..REPEATS)
            .map(|_| days.again(&fitted, &residuals, correlation, &mut random))
            .map(|days| days.fit(fitted.factors, ROUNDS_REPEATED).course())
            .collect();
        let steps = fitted.line.steps.iter();
        Ok(Forecast {
            days: count,
            last,
            slope: fitted.line.slope,
            level: fitted.line.level,
            factors: fitted.factors,
            steps: steps.map(|(place, size)| (peaks[*place].day, *size)).collect(),
            course: fitted.course(),
            repeats,
            residuals,
        })
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

/// Peaks of days, and their weights.
#[derive(Clone, Debug)]
struct Days {
    /// Day, days since the last one, and rate.
    peaks: Vec<(i64, f64, f64)>,
    is_usual: Vec<bool>,
    /// Expected level, for the weights: noise is relative to it.
    levels: Vec<f64>,
    level_min: f64,
}

/// A fitted model.
#[derive(Clone, Debug)]
struct Fitted {
    line: StepLine,
    factors: [f64; 7],
    /// Level of each day.
    levels: Vec<f64>,
}

impl Fitted {
    fn course(&self) -> Course {
        Course { level: self.line.level, slope: self.line.slope, factors: self.factors }
    }
}

impl Days {
    fn new(peaks: &[Peak], last: i64) -> Days {
        let mut rates: Vec<f64> = peaks.iter().map(|peak| peak.rate).collect();
        let level_min = LEVEL_MIN * median(&mut rates);
        let peaks: Vec<_> =
            peaks.iter().map(|peak| (peak.day, (peak.day - last) as f64, peak.rate)).collect();
        let is_usual = vec![true; peaks.len()];
        Days { levels: vec![1.0; peaks.len()], is_usual, peaks, level_min }
    }

    fn plain(&self, factors: &[f64; 7]) -> Vec<f64> {
        self.peaks.iter().map(|(day, _, rate)| rate / factors[weekday(*day)]).collect()
    }

    /// Compares days with the median of the days around them, and takes it as their level.
    fn remove_outliers(&mut self, factors: &[f64; 7]) {
        let plain = self.plain(factors);
        let around = |n: usize| {
            let end = (n + NEIGHBOURS + 1).min(plain.len());
            median(&mut plain[n.saturating_sub(NEIGHBOURS)..end].to_vec()).max(self.level_min)
        };
        let levels: Vec<f64> = (0..plain.len()).map(around).collect();
        let far: Vec<f64> =
            plain.iter().zip(&levels).map(|(rate, level)| rate / level - 1.0).collect();
        let limit = (OUTLIER * deviation(&far)).max(1e-6);
        self.is_usual = far.iter().map(|far| far.abs() <= limit).collect();
        self.levels = levels;
    }

    /// Fits line and factors in turn.
    fn fit(&self, factors: [f64; 7], rounds: usize) -> Fitted {
        let mut fitted = Fitted {
            line: StepLine { level: 0.0, slope: 0.0, steps: Vec::new() },
            factors,
            levels: self.levels.clone(),
        };
        for _ in 0..rounds {
            let plain = self.plain(&fitted.factors);
            let points: Vec<Point> = (0..plain.len())
                .map(|n| Point {
                    x: self.peaks[n].1,
                    value: plain[n],
                    weight: if self.is_usual[n] { fitted.levels[n].powi(-2) } else { 0.0 },
                })
                .collect();
            let inflation = |line: &StepLine| {
                let noise: Vec<(i64, f64)> = (0..points.len())
                    .filter(|n| self.is_usual[*n])
                    .map(|n| {
                        let rest = points[n].value - line.at(n, points[n].x);
                        (self.peaks[n].0, rest / fitted.levels[n])
                    })
                    .collect();
                let correlation = correlation(&noise, (8 + 2 * line.steps.len()) as f64);
                (1.0 + correlation) / (1.0 - correlation)
            };
            let line = steps::fit(&points, &steps::find(&points, inflation));
            let levels = (0..plain.len()).map(|n| line.at(n, points[n].x).max(self.level_min));
            fitted = Fitted { levels: levels.collect(), line, factors: fitted.factors };
            fitted.factors = self.refined(&fitted);
        }
        fitted
    }

    /// Weekday factors as means of the ratio to the level, with a mean of 1.
    fn refined(&self, fitted: &Fitted) -> [f64; 7] {
        let mut sums = [(0.0, 0.0); 7];
        for (n, (day, _, rate)) in self.peaks.iter().enumerate() {
            if self.is_usual[n] {
                let sum = &mut sums[weekday(*day)];
                *sum = (sum.0 + rate / fitted.levels[n], sum.1 + 1.0);
            }
        }
        let mut found = fitted.factors;
        for (factor, (sum, count)) in found.iter_mut().zip(sums) {
            if count >= 2.0 {
                *factor = (sum / count).clamp(0.02, 50.0);
            }
        }
        let mean = found.iter().sum::<f64>() / 7.0;
        found.map(|factor| factor / mean)
    }

    /// Day and relative residual of the usual days.
    fn noise(&self, fitted: &Fitted) -> Vec<(i64, f64)> {
        let usual = (0..self.peaks.len()).filter(|n| self.is_usual[*n]);
        usual
            .map(|n| {
                let (day, _, rate) = self.peaks[n];
                (day, rate / (fitted.levels[n] * fitted.factors[weekday(day)]) - 1.0)
            })
            .collect()
    }

    /// The expected peaks with new noise.
    fn again(
        &self,
        fitted: &Fitted,
        residuals: &[f64],
        correlation: f64,
        random: &mut Random,
    ) -> Days {
        let mut days = self.clone();
        days.levels.clone_from(&fitted.levels);
        let mut noise = 0.0;
        let mut before = i64::MIN / 2;
        for (n, (day, _, rate)) in days.peaks.iter_mut().enumerate() {
            let sign = if random.unit() < 0.5 { -1.0 } else { 1.0 };
            let drawn = sign * residuals[random.below(residuals.len())];
            let gap = i32::try_from((*day - before).min(1_000)).unwrap_or(0);
            let kept = correlation.powi(gap);
            noise = kept * noise + (1.0 - kept * kept).sqrt() * drawn;
            before = *day;
            let expected = fitted.levels[n] * fitted.factors[weekday(*day)];
            *rate = expected * (1.0 + noise).max(0.05);
        }
        days
    }
}

/// Autocorrelation of neighbouring days. `taken` is the number of fitted coefficients, which lower
/// it.
fn correlation(noise: &[(i64, f64)], taken: f64) -> f64 {
    let squares: f64 = noise.iter().map(|(_, residual)| residual * residual).sum();
    let pairs = noise.windows(2).filter(|pair| pair[1].0 - pair[0].0 == 1);
    let products: f64 = pairs.map(|pair| pair[0].1 * pair[1].1).sum();
    let count = noise.len() as f64;
    let found = products / squares.max(1e-12) + taken / count / 2.0;
    // Less than two standard errors is chance.
    if found < 2.0 / count.sqrt() { 0.0 } else { found.min(CORRELATED_MAX) }
}

/// Weekday factors from the ratio to the mean of the week around each day.
fn factors(peaks: &[Peak]) -> [f64; 7] {
    let around = |day: i64| {
        let week = peaks.iter().filter(|peak| (peak.day - day).abs() <= 3);
        let (sum, count) = week.fold((0.0, 0.0), |all, peak| (all.0 + peak.rate, all.1 + 1.0));
        sum / f64::max(count, 1.0)
    };
    let mut found = [1.0; 7];
    for (place, factor) in found.iter_mut().enumerate() {
        let of_day = peaks.iter().filter(|peak| weekday(peak.day) == place);
        let mut ratios: Vec<f64> =
            of_day.map(|peak| peak.rate / around(peak.day).max(1e-9)).collect();
        if ratios.len() >= 2 {
            *factor = median(&mut ratios).clamp(0.02, 50.0);
        }
    }
    let mean = found.iter().sum::<f64>() / 7.0;
    found.map(|factor| factor / mean)
}
