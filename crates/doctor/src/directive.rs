//! Values of php.ini.

/// Returns whether a switch is on, as PHP reads it.
pub(crate) fn is_on(value: &str) -> bool {
    let word = value.trim().to_ascii_lowercase();
    matches!(&*word, "on" | "yes" | "true" | "stderr" | "stdout")
        || word.trim_start_matches(['+', '-']).chars().next().is_some_and(|c| c.is_ascii_digit())
            && bytes(&word) != Some(Some(0))
}

/// Returns a size in bytes, such as that of `128M`. `Some(None)`: unlimited; `None`: no size.
pub(crate) fn bytes(value: &str) -> Option<Option<u64>> {
    let text = value.trim();
    if text.starts_with('-') {
        return Some(None);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    Some(number.checked_mul(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::{bytes, is_on};

    #[test]
    fn switches_are_read_as_php_does() {
        for (value, on) in [
            ("1", true),
            ("On", true),
            ("yes", true),
            ("stderr", true),
            ("4096", true),
            ("128k", true),
            ("0", false),
            ("", false),
            ("Off", false),
            ("no", false),
        ] {
            assert_eq!(is_on(value), on, "{value}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (value, size) in [
            ("128M", Some(Some(128 << 20))),
            ("4096k", Some(Some(4 << 20))),
            ("1G", Some(Some(1 << 30))),
            ("0", Some(Some(0))),
            ("-1", Some(None)),
            ("", None),
            ("12 parsecs", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(bytes(value), size, "{value}");
        }
    }
}
