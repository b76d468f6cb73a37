//! Literal values in the source.

use mago_syntax::ast::{Argument, Expression, Literal, Modifier, UnaryPrefixOperator};

/// Text of a string literal without its quotes; escapes are as in the source if the parser has not
/// decoded them.
pub(crate) fn text<'a>(expression: &'a Expression<'_>) -> Option<&'a [u8]> {
    match expression {
        Expression::Literal(Literal::String(literal)) => Some(match literal.value {
            Some(value) => value,
            None => literal.raw.get(1..literal.raw.len().saturating_sub(1)).unwrap_or_default(),
        }),
        Expression::Parenthesized(inner) => text(inner.expression),
        _ => None,
    }
}

/// Value of an integer literal, also a negative one.
pub(crate) fn integer(expression: &Expression<'_>) -> Option<i64> {
    match expression {
        Expression::Literal(Literal::Integer(literal)) => {
            literal.value.and_then(|value| i64::try_from(value).ok())
        }
        Expression::Parenthesized(inner) => integer(inner.expression),
        Expression::UnaryPrefix(unary) => match unary.operator {
            UnaryPrefixOperator::Negation(_) => integer(unary.operand).map(|value| -value),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn is_null(expression: &Expression<'_>) -> bool {
    matches!(bare(expression), Expression::Literal(Literal::Null(_)))
}

pub(crate) fn is_number(expression: &Expression<'_>) -> bool {
    match bare(expression) {
        Expression::Literal(Literal::Integer(_) | Literal::Float(_)) => true,
        Expression::UnaryPrefix(unary) => {
            matches!(unary.operator, UnaryPrefixOperator::Negation(_)) && is_number(unary.operand)
        }
        _ => false,
    }
}

/// Returns the expression within parentheses.
pub(crate) fn bare<'a, 'b>(expression: &'a Expression<'b>) -> &'a Expression<'b> {
    let mut expression = expression;
    while let Expression::Parenthesized(inner) = expression {
        expression = inner.expression;
    }
    expression
}

/// Returns the value of a positional or named argument.
pub(crate) fn value<'a>(argument: &'a Argument<'a>) -> &'a Expression<'a> {
    match argument {
        Argument::Positional(argument) => argument.value,
        Argument::Named(argument) => argument.value,
    }
}

/// Whether a method is static.
pub(crate) fn has_static(modifiers: &[Modifier<'_>]) -> bool {
    modifiers.iter().any(|modifier| matches!(modifier, Modifier::Static(_)))
}

/// Whether PHP 8 compares this text with a number as a number.
pub(crate) fn is_numeric(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte));
    is_plain && std::str::from_utf8(text).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// Flags of a regular expression in a literal; `None`: the text is no whole expression.
pub(crate) fn pattern_flags(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let open = *text.first()?;
    if open.is_ascii_alphanumeric() || open == b'\\' || open.is_ascii_whitespace() {
        return None;
    }
    flags_after(&text[1..], closing(open))
}

/// Returns the flags after the last delimiter.
pub(crate) fn flags_after(text: &[u8], delimiter: u8) -> Option<&[u8]> {
    let at = text.iter().rposition(|byte| *byte == delimiter)?;
    let flags = &text[at + 1..];
    flags
        .iter()
        .all(|byte| byte.is_ascii_alphabetic() || byte.is_ascii_whitespace())
        .then_some(flags)
}

pub(crate) fn closing(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        b'{' => b'}',
        b'<' => b'>',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_texts_are_recognized() {
        for text in ["0", "1.5", "-3", " 42 ", "1e3", ".5"] {
            assert!(is_numeric(text.as_bytes()), "{text}");
        }
        for text in ["", "a", "42foo", "0x1A", "nan", "inf"] {
            assert!(!is_numeric(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn flags_of_patterns_are_found() {
        let cases: [(&str, Option<&[u8]>); 6] = [
            ("/a/e", Some(b"e")),
            ("{a}ie", Some(b"ie")),
            ("#a/e#", Some(b"")),
            ("abc", None),
            ("/a", None),
            ("/a/ e", Some(b" e")),
        ];
        for (pattern, flags) in cases {
            assert_eq!(pattern_flags(pattern.as_bytes()), flags, "{pattern}");
        }
    }
}
