//! Rows of the latency heat map: ranges of wall times. `series.rs` counts requests by row.

/// Rows of the latency heat map: row n is for times below 100 µs × 2ⁿ, the last row for all longer
/// times.
pub const HEAT_ROWS: usize = 20;
const HEAT_FIRST_NS: u64 = 100_000;

/// Returns the heat map's row for a wall time.
#[must_use]
pub fn heat_row(ns: u64) -> usize {
    let doublings = u64::BITS - (ns / HEAT_FIRST_NS).leading_zeros();
    (doublings as usize).min(HEAT_ROWS - 1)
}

#[cfg(test)]
mod tests {
    use super::{HEAT_ROWS, heat_row};

    #[test]
    fn heat_map_rows_double() {
        for (us, row) in [(0, 0), (99, 0), (100, 1), (199, 1), (200, 2), (399, 2), (400, 3)] {
            assert_eq!(heat_row(us * 1_000), row, "{us} µs");
        }
        assert_eq!(heat_row(u64::MAX), HEAT_ROWS - 1);
    }
}
