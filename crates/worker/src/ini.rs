//! Converts definitions `key=value` to lines of ini text, with the quoting rules of `php -d`.

use std::collections::BTreeMap;

/// Returns all definitions as one text.
pub(crate) fn lines(define: &BTreeMap<String, String>) -> String {
    // Several values of one directive, such as `extension`, are on separate lines.
    let values = |(key, values): (&String, &String)| -> String {
        values.split('\n').map(|value| line(&format!("{key}={value}"))).collect()
    };
    define.iter().map(values).collect()
}

/// Returns one line with its newline. A key alone means 1, as in `php -d`.
///
/// Numbers, words, expressions (`E_ALL & ~E_NOTICE`) and quoted text are left to the ini parser.
/// Anything else reaches PHP as it was written.
fn line(definition: &str) -> String {
    let Some((key, value)) = definition.split_once('=') else {
        return format!("{}=1\n", clean(definition));
    };
    let (key, value) = (clean(key), clean(value));
    let begins = value.chars().next().is_none_or(|c| c.is_ascii_alphanumeric());
    if (begins && value.chars().all(is_plain)) || is_quoted(&value) {
        format!("{key}={value}\n")
    } else if value.contains('\'') {
        format!("{key}=\"{}\"\n", value.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        // No character is special within single quotes.
        format!("{key}='{value}'\n")
    }
}

/// Returns true if PHP keeps a directive of that name in its table after its start. The names of
/// extensions to load are not directives, and lists exist for `get_cfg_var()` only.
pub(crate) fn is_kept(name: &str) -> bool {
    !matches!(name, "extension" | "zend_extension") && !name.contains('[')
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " _-.,:/+*&|^~!()".contains(c)
}

fn is_quoted(value: &str) -> bool {
    ['"', '\''].iter().any(|quote| {
        let inner = value.strip_prefix(*quote).and_then(|v| v.strip_suffix(*quote));
        inner.is_some_and(|inner| !inner.contains(*quote))
    })
}

/// Replaces line breaks, which would begin another setting.
fn clean(text: &str) -> String {
    text.replace(['\n', '\r', '\0'], " ")
}

#[cfg(test)]
mod tests {
    use super::{line, lines};

    #[test]
    fn repeated_directive_has_a_line_per_value() {
        let define = [("extension", "a\nb.so"), ("memory_limit", "1M")];
        let define = define.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(lines(&define), "extension=a\nextension=b.so\nmemory_limit=1M\n");
    }

    #[test]
    fn ini_lines_are_quoted_like_php_d() {
        for (definition, expected) in [
            ("memory_limit=64M", "memory_limit=64M\n"),
            ("error_reporting=E_ALL & ~E_NOTICE", "error_reporting=E_ALL & ~E_NOTICE\n"),
            ("error_log=/tmp/x.log", "error_log='/tmp/x.log'\n"),
            ("user_agent=a; b", "user_agent='a; b'\n"),
            ("a=x \"y; z", "a='x \"y; z'\n"),
            ("a=it's; $x", "a=\"it's; $x\"\n"),
            ("a='it's'", "a=\"'it's'\"\n"),
            ("display_errors", "display_errors=1\n"),
            ("list[a]=x y", "list[a]=x y\n"),
            ("a=\"b\"", "a=\"b\"\n"),
            ("a=", "a=\n"),
            ("a=1\nb=2", "a='1 b=2'\n"),
        ] {
            assert_eq!(line(definition), expected);
        }
    }
}
