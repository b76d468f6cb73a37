//! Time series and heat maps, divided into the pieces that a chart shows.

use samovar_insight::store::RouteMinute;
use samovar_insight::{HEAT_ROWS, Moment, Series, heat_row};

/// Figures of one piece of time. Times in ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Piece {
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) queue_ns: u64,
    pub(crate) queue_ns_max: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) rollback_ns: u64,
    pub(crate) waiting_ns: u64,
    /// CPU time of the server itself.
    pub(crate) front_ns: u64,
    pub(crate) heat: [u64; HEAT_ROWS],
}

impl Piece {
    fn add(&mut self, moment: &Moment) {
        self.requests += moment.requests;
        self.errors += moment.errors;
        self.queue_ns = self.queue_ns.saturating_add(moment.queue_ns);
        self.queue_ns_max = self.queue_ns_max.max(moment.queue_ns_max);
        self.cpu_ns = self.cpu_ns.saturating_add(moment.cpu_ns);
        self.rollback_ns = self.rollback_ns.saturating_add(moment.rollback_ns);
        self.waiting_ns = self.waiting_ns.saturating_add(moment.waiting_ns);
        self.front_ns = self.front_ns.saturating_add(moment.front_ns);
        for (sum, n) in self.heat.iter_mut().zip(moment.heat) {
            *sum += u64::from(n);
        }
    }

    /// Returns the figures of a minute. The server's own CPU time is not in it.
    pub(crate) fn of_minute(minute: &RouteMinute) -> Piece {
        let mut heat = [0; HEAT_ROWS];
        for (ns, times) in minute.wall.filled() {
            heat[heat_row(ns)] += times;
        }
        Piece {
            requests: minute.requests,
            errors: minute.errors,
            queue_ns: minute.queue_ns,
            queue_ns_max: minute.queue.max_ns(),
            cpu_ns: minute.cpu.sum_ns(),
            rollback_ns: minute.rollback_ns,
            waiting_ns: minute.waiting_ns,
            front_ns: 0,
            heat,
        }
    }

    /// CPU time of PHP itself.
    pub(crate) fn php_ns(&self) -> u64 {
        self.cpu_ns.saturating_sub(self.rollback_ns)
    }

    /// Returns the approximate quantile `q` of the durations, from the heat map; `None` without
    /// requests.
    pub(crate) fn about_ns(&self, q: f64) -> Option<u64> {
        let all: u64 = self.heat.iter().sum();
        let wanted = q * all as f64;
        let mut below = 0.0;
        for (row, n) in self.heat.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = *n as f64;
            if below + n >= wanted {
                let (low, high) = row_bounds_ns(row);
                let share = (wanted - below) / n;
                return Some((low as f64 + share * (high - low) as f64) as u64);
            }
            below += n;
        }
        None
    }
}

/// Returns the bounds of a heat map's row.
pub(crate) fn row_bounds_ns(row: usize) -> (u64, u64) {
    let top = |row: usize| 100_000_u64 << row;
    (if row == 0 { 0 } else { top(row - 1) }, top(row))
}

/// Pieces of equal length, up to now.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// Start of the first piece, in seconds since 1970.
    pub(crate) from: u64,
    /// Length of a piece in seconds.
    pub(crate) step: u64,
    pub(crate) all: Vec<Piece>,
}

impl Pieces {
    /// Returns the last `count` complete pieces of `step` seconds before `end`.
    pub(crate) fn of(series: &Series, end: u64, step: u64, count: usize) -> Pieces {
        let end = end - end % series.step();
        let from = end.saturating_sub(step * count as u64);
        let mut all = vec![Piece::default(); count];
        for moment in series.since(from).filter(|m| m.at < end) {
            let at = (moment.at - from) / step;
            if let Some(piece) = usize::try_from(at).ok().and_then(|at| all.get_mut(at)) {
                piece.add(moment);
            }
        }
        Pieces { from, step, all }
    }

    pub(crate) fn to(&self) -> u64 {
        self.from + self.step * self.all.len() as u64
    }

    /// Returns the sum of the last `count` pieces.
    pub(crate) fn last(&self, count: usize) -> Piece {
        let mut sum = Piece::default();
        for piece in self.all.iter().rev().take(count) {
            sum.requests += piece.requests;
            sum.errors += piece.errors;
            sum.queue_ns = sum.queue_ns.saturating_add(piece.queue_ns);
            sum.queue_ns_max = sum.queue_ns_max.max(piece.queue_ns_max);
            sum.cpu_ns = sum.cpu_ns.saturating_add(piece.cpu_ns);
            sum.rollback_ns = sum.rollback_ns.saturating_add(piece.rollback_ns);
            sum.waiting_ns = sum.waiting_ns.saturating_add(piece.waiting_ns);
            sum.front_ns = sum.front_ns.saturating_add(piece.front_ns);
            sum.heat.iter_mut().zip(piece.heat).for_each(|(sum, n)| *sum += n);
        }
        sum
    }

    /// Returns a value for each piece.
    pub(crate) fn each(&self, value: impl Fn(&Piece) -> Option<f64>) -> Vec<Option<f64>> {
        self.all.iter().map(value).collect()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.all.iter().map(|piece| piece.requests).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Pieces, row_bounds_ns};
    use samovar_insight::{Aggregate, Batch, Finished, Limits, Numbers, heat_row};

    #[test]
    fn pieces_have_equal_length_and_are_complete() {
        let mut figures = Aggregate::new(Limits { routes_max: 1, slow_ns: u64::MAX });
        for at in [99, 100, 104, 105, 119, 120] {
            let mut batch = Batch::default();
            batch.put(&Finished { numbers: Numbers::default(), ..Finished::default() });
            figures.take(&batch, at);
        }
        let pieces = Pieces::of(figures.seconds(), 120, 5, 4);
        assert_eq!((pieces.from, pieces.to()), (100, 120));
        let found: Vec<_> = pieces.all.iter().map(|p| p.requests).collect();
        assert_eq!(found, [2, 1, 0, 1]);
        assert_eq!((pieces.last(2).requests, pieces.requests()), (1, 4));
    }

    #[test]
    fn quantile_is_estimated_from_heat_map() {
        let mut piece = Piece::default();
        assert_eq!(piece.about_ns(0.5), None);
        for ns in [1_000_000, 1_100_000, 1_200_000, 90_000_000] {
            piece.heat[heat_row(ns)] += 1;
            let (low, high) = row_bounds_ns(heat_row(ns));
            assert!((low..high).contains(&ns), "{ns}");
        }
        let (low, high) = row_bounds_ns(heat_row(1_000_000));
        assert!((low..=high).contains(&piece.about_ns(0.5).unwrap()));
        assert_eq!(piece.about_ns(1.0), Some(row_bounds_ns(heat_row(90_000_000)).1));
    }
}
