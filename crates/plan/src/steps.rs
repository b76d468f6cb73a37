//! A line with steps: weighted least squares, and the search for steps.
//!
//! `value(n) = level + slope · x(n) − Σ size(j) · [n < place(j)]`: the level holds after the last
//! step, at x = 0.

/// Maximum number of steps.
const STEPS_MAX: usize = 2;
/// Minimum number of days before, between and after steps.
const STEP_DAYS: usize = 10;
/// Maximum number of coefficients: level, slope, and the size of each step.
const COLUMNS: usize = 2 + STEPS_MAX;
/// F statistic from which a step is accepted. The largest of all places exceeds this value by
/// chance in 1 % of the lines without a step.
const ACCEPTED: f64 = 15.0;
/// Ridge that keeps the system solvable, relative to its diagonal.
const RIDGE: f64 = 1e-9;

/// A value of one day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    /// Days since the last day; 0 or less.
    pub(crate) x: f64,
    pub(crate) value: f64,
    /// 0: an outlier.
    pub(crate) weight: f64,
}

/// A line with steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepLine {
    pub(crate) level: f64,
    pub(crate) slope: f64,
    /// Place of the first day after each step, and its size; in order of time.
    pub(crate) steps: Vec<(usize, f64)>,
}

impl StepLine {
    /// Returns the value at a place.
    pub(crate) fn at(&self, place: usize, x: f64) -> f64 {
        let later = self.steps.iter().filter(|step| place < step.0);
        self.level + self.slope * x - later.map(|step| step.1).sum::<f64>()
    }
}

type Row = [f64; COLUMNS];

/// Coefficients, and the inverse of the matrix of the normal equations.
struct Solved {
    line: StepLine,
    inverse: [Row; COLUMNS],
}

fn columns(place: usize, x: f64, places: &[usize]) -> Row {
    let mut row = [1.0, x, 0.0, 0.0];
    for (column, step) in row[2..].iter_mut().zip(places) {
        *column = if place < *step { -1.0 } else { 0.0 };
    }
    row
}

fn solve(points: &[Point], places: &[usize]) -> Solved {
    let count = 2 + places.len();
    let mut matrix = [[0.0; COLUMNS]; COLUMNS];
    let mut right = [0.0; COLUMNS];
    for (place, point) in points.iter().enumerate() {
        let row = columns(place, point.x, places);
        for i in 0..count {
            right[i] += point.weight * row[i] * point.value;
            for j in 0..count {
                matrix[i][j] += point.weight * row[i] * row[j];
            }
        }
    }
    for (i, row) in matrix.iter_mut().enumerate() {
        row[i] += if i < count { RIDGE * row[i] } else { 1.0 };
    }
    let inverse = inverse(matrix);
    let of = |i: usize| inverse[i].iter().zip(&right).map(|(a, b)| a * b).sum::<f64>();
    let steps = places.iter().enumerate().map(|(n, place)| (*place, of(2 + n))).collect();
    Solved { line: StepLine { level: of(0), slope: of(1), steps }, inverse }
}

/// Inverse of a positive matrix, by elimination.
fn inverse(mut matrix: [Row; COLUMNS]) -> [Row; COLUMNS] {
    let mut found = [[0.0; COLUMNS]; COLUMNS];
    for (i, row) in found.iter_mut().enumerate() {
        row[i] = 1.0;
    }
    for i in 0..COLUMNS {
        let pivot = matrix[i][i];
        if pivot.abs() < f64::MIN_POSITIVE {
            continue;
        }
        for j in 0..COLUMNS {
            matrix[i][j] /= pivot;
            found[i][j] /= pivot;
        }
        for k in (0..COLUMNS).filter(|k| *k != i) {
            let factor = matrix[k][i];
            for j in 0..COLUMNS {
                matrix[k][j] -= factor * matrix[i][j];
                found[k][j] -= factor * found[i][j];
            }
        }
    }
    found
}

/// Fits a line with steps at these places.
pub(crate) fn fit(points: &[Point], places: &[usize]) -> StepLine {
    solve(points, places).line
}

/// Finds the places of lasting changes of the level. `inflation` is the factor by which
/// autocorrelation of the residuals increases chance results, as a function of a line.
pub(crate) fn find(points: &[Point], inflation: impl Fn(&StepLine) -> f64) -> Vec<usize> {
    let mut places = Vec::new();
    while places.len() < STEPS_MAX {
        let Some((place, gain)) = best(points, &places) else { break };
        let mut tried = places.clone();
        tried.push(place);
        tried.sort_unstable();
        let line = fit(points, &tried);
        let rest = squares(points, &line);
        let used = points.iter().filter(|point| point.weight > 0.0).count() as f64;
        // 6 factors of weekdays are fitted as well.
        let free = (used - (8 + 2 * tried.len()) as f64).max(1.0);
        if gain / (rest / free).max(1e-12) < ACCEPTED * inflation(&line) {
            break;
        }
        places = tried;
    }
    places
}

fn squares(points: &[Point], line: &StepLine) -> f64 {
    let each = points.iter().enumerate();
    each.map(|(n, point)| point.weight * (point.value - line.at(n, point.x)).powi(2)).sum()
}

/// Place of the step that reduces the squares most, and by how much.
fn best(points: &[Point], places: &[usize]) -> Option<(usize, f64)> {
    let Solved { line, inverse } = solve(points, places);
    // Sums over the days before a place: the products of the column of its step.
    let (mut with, mut own, mut rest) = ([0.0; COLUMNS], 0.0, 0.0);
    let mut found: Option<(usize, f64)> = None;
    let mut used = 0;
    let total = points.iter().filter(|point| point.weight > 0.0).count();
    for (place, point) in points.iter().enumerate() {
        let is_far = places.iter().all(|step| step.abs_diff(place) >= STEP_DAYS);
        if used >= STEP_DAYS && total - used >= STEP_DAYS && is_far {
            let explained: f64 = (0..COLUMNS)
                .flat_map(|i| (0..COLUMNS).map(move |j| (i, j)))
                .map(|(i, j)| with[i] * inverse[i][j] * with[j])
                .sum();
            let free = own - explained;
            let gain = if free > RIDGE * own { rest * rest / free } else { 0.0 };
            if found.is_none_or(|found| gain > found.1) {
                found = Some((place, gain));
            }
        }
        let row = columns(place, point.x, places);
        for (sum, column) in with.iter_mut().zip(row) {
            *sum += point.weight * column;
        }
        own += point.weight;
        rest += point.weight * (point.value - line.at(place, point.x));
        used += usize::from(point.weight > 0.0);
    }
    found
}
