//! Applies `Range: bytes=…` to a size. Pure functions.

use std::ops::Range;

/// Maximum number of ranges per request. With more, the whole file is sent.
pub(crate) const RANGES_MAX: usize = 16;

/// The part of the file that a `Range` header requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole file: no range, an unknown unit, invalid syntax, or too many ranges.
    Whole,
    /// These parts, in the requested order. Each is within the size and not empty.
    Parts(Vec<Range<u64>>),
    /// No range starts within the size.
    Unsatisfiable,
}

/// Reads the header's value (RFC 9110, 14.1.2) for a file of `size` bytes.
pub(crate) fn read(value: &[u8], size: u64) -> Wanted {
    let value = value.trim_ascii();
    let Some((unit, set)) = value.split_at_checked(6) else { return Wanted::Whole };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return Wanted::Whole;
    }
    let mut parts = Vec::new();
    for (count, spec) in set.split(|b| *b == b',').map(<[u8]>::trim_ascii).enumerate() {
        match one(spec, size) {
            _ if count >= RANGES_MAX => return Wanted::Whole,
            None => return Wanted::Whole,
            Some(part) if part.is_empty() => {}
            Some(part) => parts.push(part),
        }
    }
    let total = parts.iter().try_fold(0u64, |sum, part| sum.checked_add(part.end - part.start));
    match parts.len() {
        0 => Wanted::Unsatisfiable,
        // Overlapping ranges that add up to more than the file: an attack or an error.
        2.. if total.is_none_or(|total| total > size) => Wanted::Whole,
        _ => Wanted::Parts(parts),
    }
}

/// Reads `a-b`, `a-` or `-n`. `None`: invalid. An empty range: beyond the end.
fn one(spec: &[u8], size: u64) -> Option<Range<u64>> {
    let dash = spec.iter().position(|b| *b == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    match (first.is_empty(), last.is_empty()) {
        (true, true) => None,
        (true, false) => Some(size - number(last)?.min(size)..size),
        (false, true) => Some(number(first)?.min(size)..size),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first.min(size)..last.saturating_add(1).min(size))
        }
    }
}

/// Reads a decimal number, saturating at the maximum.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |n: u64, d: &u8| n.saturating_mul(10).saturating_add(u64::from(d - b'0'));
    Some(digits.iter().fold(0, add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: &str, size: u64, expected: &Wanted) {
        assert_eq!(&read(value.as_bytes(), size), expected, "{value} of {size}");
    }

    #[test]
    fn valid_ranges_become_parts() {
        let part = |from, to| Wanted::Parts(std::iter::once(from..to).collect());
        check("bytes=0-0", 10, &part(0, 1));
        check("bytes=0-9", 10, &part(0, 10));
        check("bytes=0-99", 10, &part(0, 10));
        check("bytes=3-", 10, &part(3, 10));
        check("bytes=-3", 10, &part(7, 10));
        check("bytes=-30", 10, &part(0, 10));
        check("Bytes= 2-3 ", 10, &part(2, 4));
        check("bytes=0-99999999999999999999999", 10, &part(0, 10));
        check("bytes=0-1,4-5", 10, &Wanted::Parts(vec![0..2, 4..6]));
        check("bytes=8-9, 0-1", 10, &Wanted::Parts(vec![8..10, 0..2]));
        check("bytes=0-1,20-30", 10, &part(0, 2));
    }

    #[test]
    fn ranges_beyond_the_size_are_unsatisfiable() {
        for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=20-30,40-"] {
            check(value, 10, &Wanted::Unsatisfiable);
        }
        check("bytes=0-", 0, &Wanted::Unsatisfiable);
    }

    #[test]
    fn invalid_or_excessive_ranges_select_whole_file() {
        for value in
            ["", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=3-2", "lines=0-1", "bytes=0-1,x"]
        {
            check(value, 10, &Wanted::Whole);
        }
        check("bytes=0-,0-,0-", 10, &Wanted::Whole);
        check("bytes=0-,0-,0-", u64::MAX, &Wanted::Whole);
        let many = format!("bytes={}", vec!["0-0"; RANGES_MAX + 1].join(","));
        check(&many, 1_000, &Wanted::Whole);
    }

    proptest! {
        #[test]
        fn parts_are_within_the_size(
            value in "bytes=([0-9]{0,3}-[0-9]{0,3},?){0,5}",
            size in 0u64..500,
        ) {
            if let Wanted::Parts(parts) = read(value.as_bytes(), size) {
                prop_assert!(!parts.is_empty());
                prop_assert!(parts.iter().all(|p| p.start < p.end && p.end <= size));
            }
        }
    }
}
