//! `samovar status`: texts that several lines use.

use std::time::Duration;

/// Returns the prefix of a line about one of several pools: `pool export: `.
pub(super) fn whose(pool: &str) -> String {
    if pool.is_empty() { String::new() } else { format!("pool {pool}: ") }
}

/// Formats an age: `12s`, `3m20s`, `2h05m`, `4d03h`.
pub(super) fn age(seconds: f64) -> String {
    let s = Duration::try_from_secs_f64(seconds).unwrap_or_default().as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86400 => format!("{}h{:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d{:02}h", s / 86400, s % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::age;

    #[test]
    fn age_is_formatted_with_two_units() {
        for (seconds, expected) in
            [(0.4, "0s"), (59.9, "59s"), (200.0, "3m20s"), (7500.0, "2h05m"), (356_400.0, "4d03h")]
        {
            assert_eq!(age(seconds), expected);
        }
    }
}
