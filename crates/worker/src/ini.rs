//! `--define key=value` → a line of ini text, with the quoting rules of `php -d`.

/// One line with its newline. A key alone means 1, as in `php -d`.
pub(crate) fn line(definition: &str) -> String {
    let Some((key, value)) = definition.split_once('=') else {
        return format!("{}=1\n", clean(definition));
    };
    let (key, value) = (clean(key), clean(value));
    // Expressions (`E_ALL & ~E_NOTICE`), numbers, words and quoted strings are the ini parser's business.
    let raw =
        value.chars().next().is_none_or(|c| c.is_ascii_alphanumeric() || c == '"' || c == '\'');
    if raw { format!("{key}={value}\n") } else { format!("{key}=\"{value}\"\n") }
}

/// A line break would begin another setting.
fn clean(text: &str) -> String {
    text.replace(['\n', '\r', '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn quoting_is_that_of_php_d() {
        for (definition, expected) in [
            ("memory_limit=64M", "memory_limit=64M\n"),
            ("error_reporting=E_ALL & ~E_NOTICE", "error_reporting=E_ALL & ~E_NOTICE\n"),
            ("error_log=/tmp/x.log", "error_log=\"/tmp/x.log\"\n"),
            ("display_errors", "display_errors=1\n"),
            ("a=\"b\"", "a=\"b\"\n"),
            ("a=", "a=\n"),
            ("a=1\nb=2", "a=1 b=2\n"),
        ] {
            assert_eq!(line(definition), expected);
        }
    }
}
