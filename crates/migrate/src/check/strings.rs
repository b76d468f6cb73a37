//! Texts in arguments: patterns with `/e`, callables as text, constants in an expression.

use super::literal::{bare, closing, flags_after, pattern_flags, text};
use mago_syntax::ast::{ArrayElement, BinaryOperator, CompositeString, Expression, StringPart};

/// Maximum number of parts of an expression that are read.
const PARTS_MAX: usize = 200;

/// Whether a pattern of `preg_replace()` has the flag `e`.
pub(super) fn has_eval_flag(pattern: &Expression<'_>) -> bool {
    let has_e = |flags: &[u8]| flags.contains(&b'e');
    match bare(pattern) {
        Expression::Array(array) => array.elements.iter().any(|element| is_eval_element(element)),
        Expression::LegacyArray(array) => {
            array.elements.iter().any(|element| is_eval_element(element))
        }
        Expression::Binary(_) => {
            // `'/' . $name . '/e'`
            let (mut first, mut last) = (pattern, pattern);
            for _ in 0..PARTS_MAX {
                match bare(first) {
                    Expression::Binary(binary) => first = binary.lhs,
                    _ => break,
                }
            }
            if let Expression::Binary(binary) = bare(last) {
                last = binary.rhs;
            }
            let (Some(first), Some(last)) = (text(first), text(last)) else { return false };
            let Some(open) = first.trim_ascii_start().first() else { return false };
            if open.is_ascii_alphanumeric() {
                return false;
            }
            flags_after(last, closing(*open)).is_some_and(has_e)
        }
        Expression::CompositeString(CompositeString::Interpolated(string)) => {
            let parts = string.parts.as_slice();
            let (Some(StringPart::Literal(first)), Some(StringPart::Literal(last))) =
                (parts.first(), parts.last())
            else {
                return false;
            };
            let Some(open) = first.value.first() else { return false };
            flags_after(last.value, closing(*open)).is_some_and(has_e)
        }
        other => text(other).and_then(pattern_flags).is_some_and(has_e),
    }
}

fn is_eval_element(element: &ArrayElement<'_>) -> bool {
    let value = match element {
        ArrayElement::KeyValue(element) => element.value,
        ArrayElement::Value(element) => element.value,
        _ => return false,
    };
    text(value).and_then(pattern_flags).is_some_and(|flags| flags.contains(&b'e'))
}

/// `'self::method'`, `['parent', 'method']`, `['Foo', 'parent::method']`.
pub(super) fn is_relative_callable(expression: &Expression<'_>) -> bool {
    let starts = |text: &[u8]| {
        let text = text.to_ascii_lowercase();
        [&b"self::"[..], b"parent::", b"static::"].iter().any(|start| text.starts_with(start))
    };
    let elements = match bare(expression) {
        Expression::Array(array) => array.elements.as_slice(),
        Expression::LegacyArray(array) => array.elements.as_slice(),
        other => return text(other).is_some_and(starts),
    };
    let [ArrayElement::Value(class), ArrayElement::Value(method)] = elements else { return false };
    let is_keyword = text(class.value).is_some_and(|class| {
        [&b"self"[..], b"parent", b"static"].iter().any(|word| class.eq_ignore_ascii_case(word))
    });
    let has_class = text(method.value)
        .is_some_and(|method| starts(method) || memchr::memmem::find(method, b"::").is_some());
    (is_keyword && text(method.value).is_some()) || has_class
}

/// Whether a literal contains this text, or an array has it as a key.
pub(super) fn contains(expression: &Expression<'_>, wanted: &[u8]) -> bool {
    let has = |text: &[u8]| memchr::memmem::find(text, wanted).is_some();
    match expression {
        Expression::CompositeString(string) => string.parts().iter().any(|part| match part {
            StringPart::Literal(literal) => has(literal.value),
            _ => false,
        }),
        Expression::Binary(_) => {
            parts(expression).into_iter().any(|part| text(part).is_some_and(has))
        }
        Expression::Array(array) => has_key(array.elements.as_slice(), wanted),
        Expression::LegacyArray(array) => has_key(array.elements.as_slice(), wanted),
        other => text(other).is_some_and(has),
    }
}

fn has_key(elements: &[ArrayElement<'_>], wanted: &[u8]) -> bool {
    elements.iter().any(|element| match element {
        ArrayElement::KeyValue(element) => text(element.key) == Some(wanted),
        _ => false,
    })
}

/// Whether an expression is this constant, or combines it with others.
pub(super) fn uses_constant(expression: &Expression<'_>, name: &[u8]) -> bool {
    parts(expression).into_iter().any(|part| match part {
        Expression::ConstantAccess(access) => {
            let value = access.name.value();
            value.strip_prefix(b"\\").unwrap_or(value) == name
        }
        Expression::Access(mago_syntax::ast::Access::ClassConstant(access)) => {
            use mago_syntax::ast::ClassLikeConstantSelector;
            let ClassLikeConstantSelector::Identifier(constant) = &access.constant else {
                return false;
            };
            let Expression::Identifier(class) = access.class else { return false };
            let class = class.value();
            let written =
                [class.strip_prefix(b"\\").unwrap_or(class), constant.value].join(&b"::"[..]);
            written.eq_ignore_ascii_case(name)
        }
        _ => false,
    })
}

/// Operands of a chain of operators.
fn parts<'a, 'b>(expression: &'a Expression<'b>) -> Vec<&'a Expression<'b>> {
    let mut open = vec![expression];
    let mut parts = Vec::new();
    while let Some(expression) = open.pop() {
        if parts.len() + open.len() > PARTS_MAX {
            break;
        }
        match bare(expression) {
            Expression::Binary(binary)
                if matches!(
                    binary.operator,
                    BinaryOperator::BitwiseOr(_)
                        | BinaryOperator::BitwiseAnd(_)
                        | BinaryOperator::BitwiseXor(_)
                        | BinaryOperator::StringConcat(_)
                        | BinaryOperator::Addition(_)
                ) =>
            {
                open.push(binary.lhs);
                open.push(binary.rhs);
            }
            other => parts.push(other),
        }
    }
    parts
}
