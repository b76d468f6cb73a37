//! Filters for the framework: the names of a unit's tests, together with the filter of the user.
//!
//! `PHPUnit` compares a filter with names such as `Shop\CartTest::testTotal with data set "a"`. It
//! takes a text that is no regular expression as a part of one.

/// Maximum number of data sets in a range such as `testTotal#3-17`.
const RANGE_MAX: u32 = 1000;
/// Flags of a regular expression that can be set for a part of one.
const INLINE_FLAGS: &str = "imsxnUJ";
/// Flags that the whole expression gets, or that have no effect on a part.
const OTHER_FLAGS: &str = "AuDSX \r\n";

/// Returns a filter for the tests that match both. A filter of the user that cannot be combined
/// is returned alone.
pub(crate) fn combined(pattern: Option<&str>, user: Option<&str>) -> Option<String> {
    match (pattern, user) {
        (None, None) => None,
        (None, Some(user)) => Some(user.to_owned()),
        (Some(pattern), None) => Some(format!("/^(?:{pattern})/s")),
        (Some(pattern), Some(user)) => match Expression::of(user) {
            Some(user) => Some(user.with(pattern)),
            None => Some(user.to_owned()),
        },
    }
}

/// A regular expression of the user, to be used between slashes.
struct Expression {
    pattern: String,
    flags: String,
}

impl Expression {
    fn of(filter: &str) -> Option<Expression> {
        delimited(filter).or_else(|| plain(filter))
    }

    fn with(&self, pattern: &str) -> String {
        let has = |flag| self.flags.contains(flag);
        let inline: String =
            self.flags.chars().filter(|flag| INLINE_FLAGS.contains(*flag)).collect();
        // A comment of an extended expression ends with its line.
        let end = if has('x') { "\n" } else { "" };
        let start = if has('A') { "" } else { ".*?" };
        let global: String = self.flags.chars().filter(|flag| "uD".contains(*flag)).collect();
        format!("/^(?={pattern})(?={start}(?{inline}:{}{end}))/s{global}", self.pattern)
    }
}

/// Reads `/pattern/flags`, with any delimiter of PHP.
fn delimited(filter: &str) -> Option<Expression> {
    let filter = filter.trim_start();
    let first = filter.chars().next().filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let last = match first {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    };
    let rest = &filter[1..];
    let end = if first == last { closing(rest, last) } else { balanced(rest, first, last) }?;
    let (pattern, flags) = (&rest[..end], &rest[end + 1..]);
    let is_flag = |flag: char| INLINE_FLAGS.contains(flag) || OTHER_FLAGS.contains(flag);
    let pattern = if first == '/' { pattern.to_owned() } else { slashed(pattern) };
    flags.chars().all(is_flag).then(|| Expression { pattern, flags: flags.to_owned() })
}

/// Returns the position of the first delimiter without a backslash.
fn closing(text: &str, delimiter: char) -> Option<usize> {
    balanced(text, '\0', delimiter)
}

fn balanced(text: &str, open: char, close: char) -> Option<usize> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, c) in text.char_indices() {
        if is_quoted {
            is_quoted = false;
        } else if c == '\\' {
            is_quoted = true;
        } else if c == close {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
        } else if c == open {
            depth += 1;
        }
    }
    None
}

/// Reads a text that is no regular expression, as `PHPUnit` does.
fn plain(filter: &str) -> Option<Expression> {
    let pattern = match filter.rsplit_once('#').and_then(|(name, sets)| Some((name, range(sets)?)))
    {
        Some((name, (first, last))) if first < last => {
            if last - first >= RANGE_MAX {
                return None;
            }
            let sets: Vec<_> = (first..=last).map(|set| set.to_string()).collect();
            format!("{name}.*with data set #(?:{})$", sets.join("|"))
        }
        Some((name, (set, _))) => format!("{name}.*with data set #{set}$"),
        None => match filter.split_once('@').filter(|(_, set)| !set.is_empty()) {
            Some((name, set)) => format!("{name}.*with data set \"{set}\"$"),
            None => filter.to_owned(),
        },
    };
    Some(Expression { pattern: slashed(&pattern), flags: "i".to_owned() })
}

/// Reads `4` or `4-8`.
fn range(text: &str) -> Option<(u32, u32)> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().ok()).flatten()
    };
    match text.split_once('-') {
        Some((first, last)) => Some((number(first)?, number(last)?)),
        None => number(text).map(|set| (set, set)),
    }
}

/// Puts a backslash before each slash that has none.
fn slashed(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut is_quoted = false;
    for c in pattern.chars() {
        if c == '/' && !is_quoted {
            out.push('\\');
        }
        is_quoted = c == '\\' && !is_quoted;
        out.push(c);
    }
    out
}

/// Quotes a text for a regular expression between slashes.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !(c.is_alphanumeric() || c == '_' || c == ' ' || !c.is_ascii()) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_of_unit_and_user_are_combined() {
        for (user, expected) in [
            ("Cart", "/^(?=A)(?=.*?(?i:Cart))/s"),
            ("a/b\\/c", "/^(?=A)(?=.*?(?i:a\\/b\\/c))/s"),
            ("/Cart$/", "/^(?=A)(?=.*?(?:Cart$))/s"),
            ("~a/b~ix", "/^(?=A)(?=.*?(?ix:a\\/b\n))/s"),
            ("(a(b)c)u", "/^(?=A)(?=.*?(?:a(b)c))/su"),
            ("(a|b)::c", "/^(?=A)(?=.*?(?i:(a|b)::c))/s"),
            ("#a#A", "/^(?=A)(?=(?:a))/s"),
            ("/a", "/^(?=A)(?=.*?(?i:\\/a))/s"),
            ("testA#4", "/^(?=A)(?=.*?(?i:testA.*with data set #4$))/s"),
            ("testA#4-6", "/^(?=A)(?=.*?(?i:testA.*with data set #(?:4|5|6)$))/s"),
            ("testA#6-4", "/^(?=A)(?=.*?(?i:testA.*with data set #6$))/s"),
            ("testA@x.*", "/^(?=A)(?=.*?(?i:testA.*with data set \"x.*\"$))/s"),
            ("testA#1-5000", "testA#1-5000"),
        ] {
            assert_eq!(combined(Some("A"), Some(user)).as_deref(), Some(expected), "{user}");
            assert_eq!(combined(None, Some(user)).as_deref(), Some(user));
        }
        assert_eq!(combined(Some("A|B"), None).as_deref(), Some("/^(?:A|B)/s"));
        assert_eq!(combined(None, None), None);
    }
}
