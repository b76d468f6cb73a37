//! Sizes and times of other servers → Samovar's.

/// Bytes of a size such as `64m`, `10MB` or `512`; `unit` is the number of bytes without a unit.
pub(crate) fn bytes(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace('_', "");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let factor = match text[digits..].trim() {
        "" => unit,
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Writes a size with the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Milliseconds of a time such as `30s`, `1h 30m`, `500ms` or `60`; a number is `unit`
/// milliseconds.
pub(crate) fn milliseconds(text: &str, unit: u64) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let digits = rest.len() - rest.trim_start_matches(is_number).len();
        let (whole, fraction) = rest[..digits].split_once('.').unwrap_or((&rest[..digits], ""));
        let whole: u64 = whole.parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let factor = match &rest[..letters] {
            "" => unit,
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 7 * 86_400_000,
            "M" => 30 * 86_400_000,
            "y" => 365 * 86_400_000,
            _ => return None,
        };
        total = total.checked_add(whole.checked_mul(factor)?)?;
        // Digits after the dot, up to thousandths.
        let mut part = factor;
        for digit in fraction.chars().take(3) {
            part /= 10;
            total = total.checked_add(u64::from(digit.to_digit(10)?) * part)?;
        }
        rest = rest[letters..].trim_start();
    }
    Some(total)
}

/// Writes a time with the largest unit that divides it.
pub(crate) fn time(milliseconds: u64) -> String {
    for (factor, unit) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{}{unit}", milliseconds / factor);
        }
    }
    if milliseconds == 0 { String::from("0") } else { format!("{milliseconds}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_converted() {
        for (text, expected) in [
            ("64m", Some("64M")),
            ("10MB", Some("10M")),
            ("1536k", Some("1536K")),
            ("1000", Some("1000")),
            ("0", Some("0")),
            ("m", None),
            ("99999999999999999999g", None),
            ("é1", None),
        ] {
            assert_eq!(bytes(text, 1).map(size).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("30s", Some("30s")),
            ("1h 30m", Some("90m")),
            ("500ms", Some("500ms")),
            ("60", Some("1m")),
            ("1.5m", Some("90s")),
            ("0", Some("0")),
            ("7d", Some("168h")),
            ("", None),
            ("s", None),
            ("1x", None),
            ("é", None),
        ] {
            assert_eq!(milliseconds(text, 1000).map(time).as_deref(), expected, "{text}");
        }
    }
}
