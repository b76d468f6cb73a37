//! Small numerics: medians, robust lines, a seeded generator.

/// Iterations of the robust line.
const ROUNDS: usize = 12;
/// Residuals above this number of deviations have less weight (Huber).
const HUBER: f64 = 1.5;
/// Deviation of a normal distribution, in median absolute deviations.
pub(crate) const MAD: f64 = 1.4826;

/// Returns the quantile of values, reordering them; 0 if there are none.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let last = values.len() - 1;
    let place = (share.clamp(0.0, 1.0) * last as f64).round() as usize;
    let (_, found, _) = values.select_nth_unstable_by(place.min(last), f64::total_cmp);
    *found
}

/// Returns the median of values, reordering them.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the robust deviation of values around their median.
pub(crate) fn deviation(values: &[f64]) -> f64 {
    let mut copy = values.to_vec();
    let middle = median(&mut copy);
    for value in &mut copy {
        *value = (*value - middle).abs();
    }
    MAD * median(&mut copy)
}

/// A line `intercept + slope · x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) intercept: f64,
    pub(crate) slope: f64,
}

/// Fits a line by least squares in which far points count less. With `through_origin`, or if the
/// intercept would be negative, it is 0.
pub(crate) fn robust_line(points: &[(f64, f64)], through_origin: bool) -> Line {
    let mut weights = vec![1.0; points.len()];
    let mut line = Line::default();
    for _ in 0..ROUNDS {
        line = weighted(points, &weights, through_origin);
        let residuals: Vec<f64> =
            points.iter().map(|(x, y)| y - line.intercept - line.slope * x).collect();
        let scale = deviation(&residuals).max(1e-12);
        for (weight, residual) in weights.iter_mut().zip(&residuals) {
            let far = residual.abs() / (HUBER * scale);
            *weight = if far > 1.0 { 1.0 / far } else { 1.0 };
        }
    }
    line
}

fn weighted(points: &[(f64, f64)], weights: &[f64], through_origin: bool) -> Line {
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((px, py), weight) in points.iter().zip(weights) {
        w += weight;
        x += weight * px;
        y += weight * py;
        xx += weight * px * px;
        xy += weight * px * py;
    }
    let spread = w * xx - x * x;
    if !through_origin && spread > 1e-12 * (w * xx) {
        let slope = (w * xy - x * y) / spread;
        let intercept = (y - slope * x) / w;
        if intercept >= 0.0 {
            return Line { intercept, slope };
        }
    }
    Line { intercept: 0.0, slope: if xx > 0.0 { xy / xx } else { 0.0 } }
}

/// Solves least squares with coefficients of 0 or more, by coordinate descent. `rows` are the
/// inputs and the output.
pub(crate) fn nonnegative(rows: &[(Vec<f64>, f64)], count: usize) -> Vec<f64> {
    const SWEEPS: usize = 400;
    let mut squares = vec![vec![0.0; count]; count];
    let mut products = vec![0.0; count];
    for (inputs, output) in rows {
        for i in 0..count {
            products[i] += inputs[i] * output;
            for j in 0..count {
                squares[i][j] += inputs[i] * inputs[j];
            }
        }
    }
    let mut found = vec![0.0; count];
    for _ in 0..SWEEPS {
        for i in 0..count {
            if squares[i][i] <= 0.0 {
                continue;
            }
            let others: f64 =
                (0..count).filter(|j| *j != i).map(|j| squares[i][j] * found[j]).sum();
            found[i] = f64::max((products[i] - others) / squares[i][i], 0.0);
        }
    }
    found
}

/// Generator of pseudo-random numbers (`SplitMix64`). The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A whole number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// A number of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robust_line_ignores_outliers() {
        let mut points: Vec<_> =
            (0..200).map(|n| (f64::from(n), 5.0 + 2.0 * f64::from(n))).collect();
        for n in (0..200).step_by(10) {
            points[n].1 = 4_000.0;
        }
        let line = robust_line(&points, false);
        assert!((line.slope - 2.0).abs() < 0.2 && (line.intercept - 5.0).abs() < 20.0, "{line:?}");
        assert_eq!(robust_line(&[], false), Line::default());
    }

    #[test]
    fn nonnegative_regression_separates_two_inputs() {
        let mut random = Random::new(7);
        let row = |_| {
            let (a, b) = (random.unit(), random.unit());
            (vec![a, b, random.unit()], 3.0 * a + 0.5 * b)
        };
        let rows: Vec<_> = (0..300).map(row).collect();
        let found = nonnegative(&rows, 3);
        assert!((found[0] - 3.0).abs() < 0.05 && (found[1] - 0.5).abs() < 0.05, "{found:?}");
        assert!(found[2].abs() < 0.05, "{found:?}");
    }
}
