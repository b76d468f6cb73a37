//! Quantiles of Student's distribution, for any level.

/// Terms of the continued fraction; it converges in a few dozen.
const TERMS_MAX: usize = 300;
/// Steps of the bisection: more than the bits of a result.
const STEPS: usize = 200;
const TINY: f64 = 1e-300;

/// Returns the value that the absolute value of a variable with Student's distribution exceeds
/// with probability `alpha`.
pub(super) fn two_sided(alpha: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while tails(high, freedom) > alpha && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if tails(middle, freedom) > alpha { low = middle } else { high = middle }
    }
    high
}

/// Probability of both tails beyond `t`.
fn tails(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5)
}

/// Regularized incomplete beta function, by its continued fraction (Lentz's method).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..TERMS_MAX {
        let m = term as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// Logarithm of the gamma function for positive values, by Stirling's series.
fn ln_gamma(mut x: f64) -> f64 {
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        for (alpha, freedom, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 5.0, 2.571),
            (0.05, 10.0, 2.228),
            (0.01, 10.0, 3.169),
            (0.01, 30.0, 2.750),
            (0.001, 20.0, 3.850),
            (0.0001, 20.0, 4.837),
            (0.05, 1e6, 1.960),
        ] {
            let found = two_sided(alpha, freedom);
            assert!((found - expected).abs() < 2e-3, "{alpha} {freedom}: {found}, {expected}");
        }
    }
}
