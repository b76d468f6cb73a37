//! Values of php.ini.

/// A value that is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSize;

/// Returns whether a switch is on, as PHP reads it.
pub(crate) fn is_on(value: &str) -> bool {
    let word = value.trim().to_ascii_lowercase();
    matches!(&*word, "on" | "yes" | "true" | "stderr" | "stdout")
        || word.trim_start_matches(['+', '-']).chars().next().is_some_and(|c| c.is_ascii_digit())
            && bytes(&word) != Ok(Some(0))
}

/// Returns a size in bytes, such as that of `128M`; `None`: unlimited.
pub(crate) fn bytes(value: &str) -> Result<Option<u64>, NoSize> {
    let text = value.trim();
    if text.starts_with('-') {
        return Ok(None);
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| NoSize)?;
    let shift = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(NoSize),
    };
    // More than the address space is no limit.
    Ok(number.checked_mul(1 << shift))
}

#[cfg(test)]
mod tests {
    use super::{NoSize, bytes, is_on};

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
            ("128M", Ok(Some(128 << 20))),
            ("4096k", Ok(Some(4 << 20))),
            ("1G", Ok(Some(1 << 30))),
            ("0", Ok(Some(0))),
            ("-1", Ok(None)),
            ("", Err(NoSize)),
            ("12 parsecs", Err(NoSize)),
            ("99999999999999999999", Err(NoSize)),
        ] {
            assert_eq!(bytes(value), size, "{value}");
        }
    }
}
