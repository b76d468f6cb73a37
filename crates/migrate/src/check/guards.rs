//! Conditions under which code runs: `function_exists('x')`, `PHP_VERSION_ID >= 80000`.

use super::literal::{integer, text};
use crate::rules::{Rule, Target, lower, names};
use mago_syntax::ast::{
    Argument, ArgumentList, Binary, BinaryOperator, Call, Expression, Identifier, Statement,
    UnaryPrefixOperator,
};

/// Maximum depth of a condition.
const DEPTH_MAX: usize = 100;

/// A fact that holds where the code runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Exists(Target, String),
    Missing(Target, String),
    /// `PHP_VERSION_ID` is below this.
    Below(u32),
}

/// Facts of the current place; a block truncates them at its end.
#[derive(Debug, Default)]
pub(crate) struct Guards(pub(crate) Vec<Fact>);

impl Guards {
    /// Upper limit of `PHP_VERSION_ID` here.
    pub(crate) fn below(&self) -> u32 {
        let limits = self.0.iter().filter_map(|fact| match fact {
            Fact::Below(limit) => Some(*limit),
            _ => None,
        });
        limits.min().unwrap_or(u32::MAX)
    }

    /// Whether the code has checked that something of this rule exists.
    pub(crate) fn has_checked(&self, rule: &Rule) -> bool {
        self.0.iter().any(|fact| match fact {
            Fact::Exists(target, name) => {
                names().find(*target, name).iter().any(|entry| entry.rule.id == rule.id)
            }
            _ => false,
        })
    }

    /// Whether the code has checked that this name is free.
    pub(crate) fn is_missing(&self, target: Target, name: &str) -> bool {
        self.0.iter().any(|fact| match fact {
            Fact::Missing(kind, missing) => *kind == target && missing == name,
            _ => false,
        })
    }
}

/// Adds the facts that follow from the result of a condition.
pub(crate) fn facts(condition: &Expression<'_>, is_true: bool, depth: usize, out: &mut Vec<Fact>) {
    if depth > DEPTH_MAX {
        return;
    }
    match condition {
        Expression::Parenthesized(inner) => facts(inner.expression, is_true, depth + 1, out),
        Expression::UnaryPrefix(unary) => match unary.operator {
            UnaryPrefixOperator::Not(_) => facts(unary.operand, !is_true, depth + 1, out),
            UnaryPrefixOperator::ErrorControl(_) => facts(unary.operand, is_true, depth + 1, out),
            _ => {}
        },
        Expression::Binary(binary) => {
            let is_joined = match binary.operator {
                BinaryOperator::And(_) | BinaryOperator::LowAnd(_) => is_true,
                BinaryOperator::Or(_) | BinaryOperator::LowOr(_) => !is_true,
                _ => {
                    compared(binary, is_true, out);
                    return;
                }
            };
            if is_joined {
                facts(binary.lhs, is_true, depth + 1, out);
                facts(binary.rhs, is_true, depth + 1, out);
            }
        }
        Expression::Call(Call::Function(call)) => {
            let Expression::Identifier(name) = call.function else { return };
            called(name, &call.argument_list, is_true, out);
        }
        _ => {}
    }
}

fn called(name: &Identifier<'_>, list: &ArgumentList<'_>, is_true: bool, out: &mut Vec<Fact>) {
    let name = lower(name.value());
    let argument = |at: usize| list.arguments.get(at).and_then(argument_text);
    let (target, value) = match name.trim_start_matches('\\') {
        "function_exists" | "is_callable" => (Target::Function, argument(0)),
        "class_exists" | "interface_exists" | "trait_exists" | "enum_exists" => {
            (Target::Class, argument(0))
        }
        "extension_loaded" => (Target::Extension, argument(0)),
        "defined" => (Target::Constant, argument(0)),
        "method_exists" => (Target::Method, argument(1).map(|method| format!("*::{method}"))),
        "version_compare" => {
            let operator = argument(2).unwrap_or_default();
            if is_php_version(list)
                && let Some(version) = argument(1).as_deref().and_then(version_id)
            {
                version_fact(&operator, version, is_true, out);
            }
            return;
        }
        _ => return,
    };
    let Some(value) = value else { return };
    let value = value.trim_start_matches('\\').to_owned();
    let value = if target == Target::Constant { value } else { value.to_ascii_lowercase() };
    out.push(if is_true { Fact::Exists(target, value) } else { Fact::Missing(target, value) });
}

fn argument_text(argument: &Argument<'_>) -> Option<String> {
    let Argument::Positional(argument) = argument else { return None };
    text(argument.value).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Whether the first argument is `PHP_VERSION` or `phpversion()`.
fn is_php_version(list: &ArgumentList<'_>) -> bool {
    match list.arguments.first() {
        Some(Argument::Positional(first)) => match first.value {
            Expression::ConstantAccess(access) => is_constant(&access.name, "PHP_VERSION"),
            Expression::Call(Call::Function(call)) => match call.function {
                Expression::Identifier(name) => is_constant(name, "phpversion"),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

fn is_constant(name: &Identifier<'_>, constant: &str) -> bool {
    name.value().strip_prefix(b"\\").unwrap_or(name.value()) == constant.as_bytes()
}

/// `8.1.0-dev` → 80100.
fn version_id(text: &str) -> Option<u32> {
    let mut parts = text.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse::<u32>().unwrap_or(0)
    });
    let major = parts.next().filter(|major| (1..100).contains(major))?;
    let minor = parts.next().unwrap_or(0);
    Some(major * 10_000 + minor.min(99) * 100 + parts.next().unwrap_or(0).min(99))
}

/// A comparison with `PHP_VERSION_ID`, `PHP_MAJOR_VERSION` or the result of `version_compare()`.
fn compared(binary: &Binary<'_>, is_true: bool, out: &mut Vec<Fact>) {
    let operator = match binary.operator {
        BinaryOperator::LessThan(_) => "<",
        BinaryOperator::LessThanOrEqual(_) => "<=",
        BinaryOperator::GreaterThan(_) => ">",
        BinaryOperator::GreaterThanOrEqual(_) => ">=",
        BinaryOperator::Equal(_) | BinaryOperator::Identical(_) => "==",
        BinaryOperator::NotEqual(_) | BinaryOperator::NotIdentical(_) => "!=",
        _ => return,
    };
    let (name, value, operator) = match (version_factor(binary.lhs), version_factor(binary.rhs)) {
        (Some(factor), _) => (factor, binary.rhs, operator),
        (_, Some(factor)) => (factor, binary.lhs, mirrored(operator)),
        _ => {
            compared_call(binary, operator, is_true, out);
            return;
        }
    };
    if let Some(value) = integer(value).and_then(|value| u32::try_from(value).ok()) {
        version_fact(operator, value.saturating_mul(name), is_true, out);
    }
}

/// `version_compare(PHP_VERSION, '8.0.0') >= 0`.
fn compared_call(binary: &Binary<'_>, operator: &str, is_true: bool, out: &mut Vec<Fact>) {
    if integer(binary.rhs) != Some(0) {
        return;
    }
    let Expression::Call(Call::Function(call)) = binary.lhs else { return };
    let Expression::Identifier(name) = call.function else { return };
    let list = &call.argument_list;
    if lower(name.value()).trim_start_matches('\\') == "version_compare"
        && list.arguments.len() == 2
        && is_php_version(list)
        && let Some(text) = list.arguments.get(1).and_then(argument_text)
        && let Some(version) = version_id(&text)
    {
        version_fact(operator, version, is_true, out);
    }
}

/// Factor from the constant's unit to that of `PHP_VERSION_ID`.
fn version_factor(expression: &Expression<'_>) -> Option<u32> {
    let Expression::ConstantAccess(access) = expression else { return None };
    if is_constant(&access.name, "PHP_VERSION_ID") {
        return Some(1);
    }
    is_constant(&access.name, "PHP_MAJOR_VERSION").then_some(10_000)
}

fn mirrored(operator: &str) -> &str {
    match operator {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        other => other,
    }
}

/// Notes an upper limit of the version.
fn version_fact(operator: &str, value: u32, is_true: bool, out: &mut Vec<Fact>) {
    let limit = match (operator, is_true) {
        ("<" | "lt", true) | (">=" | "ge", false) => value,
        ("<=" | "le", true) | (">" | "gt", false) => value.saturating_add(1),
        // `PHP_MAJOR_VERSION === 7`
        ("==" | "eq" | "===", true) => value.saturating_add(9_999) / 10_000 * 10_000 + 10_000,
        _ => return,
    };
    out.push(Fact::Below(limit));
}

/// Whether control never continues after this statement.
pub(crate) fn leaves(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::Return(_) | Statement::Continue(_) | Statement::Break(_) => true,
        Statement::Block(block) => block.statements.last().is_some_and(leaves),
        Statement::Expression(statement) => matches!(
            statement.expression,
            Expression::Throw(_)
                | Expression::Construct(
                    mago_syntax::ast::Construct::Exit(_) | mago_syntax::ast::Construct::Die(_)
                )
        ),
        _ => false,
    }
}
