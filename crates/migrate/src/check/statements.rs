//! Rules for statements, tags and parameters.

use super::checker::{Checker, Report};
use super::literal::{integer, is_null};
use super::scope::Loop;
use crate::rules::code;
use mago_span::HasSpan;
use mago_syntax::ast::{
    Expression, Foreach, ForeachTarget, FunctionLikeParameter, FunctionLikeParameterList, Hint,
    Inline, Node, Switch, SwitchCase, SwitchCaseSeparator, UnaryPrefixOperator, Variable,
};

/// Maximum depth of a type.
const HINT_DEPTH_MAX: usize = 64;

impl<'a> Checker<'_, 'a> {
    pub(super) fn statement(&mut self, node: Node<'a, 'a>) {
        match node {
            Node::Break(statement) => self.jump(statement.level, &statement.r#break, false),
            Node::Continue(statement) => self.jump(statement.level, &statement.r#continue, true),
            Node::SwitchCaseSeparator(SwitchCaseSeparator::SemiColon(span)) => {
                self.report(Report::new(code("case-semicolon"), span).edit(span, ":"));
            }
            Node::Inline(inline) => self.inline(inline),
            Node::Constant(constant) => self.constants(constant),
            Node::Unset(statement) => {
                for value in &statement.values {
                    if matches!(value, Expression::Variable(Variable::Direct(one))
                        if one.name == b"$GLOBALS")
                    {
                        self.syntax("syntax-globals-array", *value);
                    }
                }
            }
            Node::Global(statement) => {
                for variable in &statement.variables {
                    if matches!(variable, Variable::Nested(_)) {
                        self.syntax("global-variable-variable", variable);
                    }
                }
            }
            _ => {}
        }
    }

    fn jump(&mut self, level: Option<&Expression<'_>>, at: &impl HasSpan, is_continue: bool) {
        let number = level.map_or(Some(1), integer);
        if level.is_some() && number.is_none_or(|number| number < 1) {
            self.syntax("syntax-jump-level", at);
            return;
        }
        let loops = &self.function().loops;
        if loops.is_empty() {
            self.syntax("syntax-jump-outside-loop", at);
        } else if is_continue
            && let Some(number) = number.and_then(|number| usize::try_from(number).ok())
            && let Some(at_level) = loops.len().checked_sub(number)
            && loops.get(at_level) == Some(&Loop::Switch)
        {
            self.syntax("continue-in-switch", at);
        }
    }

    /// Text outside of PHP: removed kinds of tags.
    fn inline(&mut self, inline: &Inline<'_>) {
        let text = inline.value;
        let start = inline.span.start.offset;
        for at in memchr::memmem::find_iter(text, b"<%") {
            // Templates of scripts and of other languages have these tags as well.
            let rest = text[at + 2..].strip_prefix(b"=").unwrap_or(&text[at + 2..]);
            if rest.trim_ascii_start().starts_with(b"$") {
                self.tag(start + at as u32);
            }
        }
        for at in memchr::memmem::find_iter(text, b"<script") {
            let end = memchr::memchr(b'>', &text[at..]).map_or(text.len(), |end| at + end);
            let tag = text[at..end].to_ascii_lowercase();
            let tag: Vec<u8> = tag.into_iter().filter(|b| !b"\"' ".contains(b)).collect();
            if memchr::memmem::find(&tag, b"language=php").is_some() {
                self.tag(start + at as u32);
            }
        }
    }

    fn tag(&mut self, offset: u32) {
        let at = self.byte(offset);
        self.syntax("syntax-asp-tags", &at);
    }

    pub(super) fn switch(&mut self, statement: &'a Switch<'a>) {
        let mut defaults = statement.body.cases().iter().filter_map(|case| match case {
            SwitchCase::Default(case) => Some(case),
            SwitchCase::Expression(_) => None,
        });
        defaults.next();
        if let Some(second) = defaults.next() {
            self.syntax("syntax-two-defaults", &second.default);
        }
    }

    pub(super) fn foreach(&mut self, statement: &'a Foreach<'a>) {
        let target = match &statement.target {
            ForeachTarget::Value(target) => target.value,
            ForeachTarget::KeyValue(target) => target.value,
        };
        match target {
            Expression::UnaryPrefix(unary)
                if matches!(unary.operator, UnaryPrefixOperator::Reference(_)) =>
            {
                if matches!(statement.expression, Expression::Variable(Variable::Direct(one))
                    if one.name == b"$GLOBALS")
                {
                    self.syntax("syntax-globals-array", statement.expression);
                }
            }
            other => self.written(other),
        }
    }

    pub(super) fn parameters(&mut self, list: &'a FunctionLikeParameterList<'a>) {
        let parameters = list.parameters.as_slice();
        let is_required = |parameter: &FunctionLikeParameter<'_>| {
            parameter.default_value.is_none() && parameter.ellipsis.is_none()
        };
        let last_required = parameters.iter().rposition(is_required);
        for (at, parameter) in parameters.iter().enumerate() {
            let earlier = &parameters[..at];
            if earlier.iter().any(|other| other.variable.name == parameter.variable.name) {
                self.syntax("syntax-parameter-twice", &parameter.variable);
            }
            let Some(default) = &parameter.default_value else { continue };
            let is_optional_first = last_required.is_some_and(|last| at < last);
            let is_null_default = is_null(default.value);
            let hint = parameter.hint.as_ref().filter(|_| is_null_default);
            let nullable = hint.map(|hint| accepts_null(hint, 0));
            if is_optional_first {
                match nullable {
                    Some(true) => self.syntax("nullable-before-required", &parameter.variable),
                    Some(false) => {}
                    None => self.syntax("optional-before-required", &parameter.variable),
                }
            }
            if let (Some(hint), Some(false)) = (hint, nullable)
                && parameter.modifiers.is_empty()
            {
                self.implicit_nullable(hint, is_optional_first);
            }
        }
    }

    /// `T $x = null` → `?T $x = null`. Before a required parameter the default must go as well.
    fn implicit_nullable(&mut self, hint: &Hint<'_>, is_before_required: bool) {
        let mut report = Report::new(code("implicit-nullable"), hint);
        if !is_before_required {
            let span = hint.span();
            report = match hint {
                Hint::Union(_) => report.insert(span.end.offset, "|null"),
                Hint::Intersection(_) => {
                    report.insert(span.start.offset, "(").insert(span.end.offset, ")|null")
                }
                _ => report.insert(span.start.offset, "?"),
            };
        }
        self.report(report);
    }
}

/// Whether a type accepts null explicitly.
fn accepts_null(hint: &Hint<'_>, depth: usize) -> bool {
    if depth > HINT_DEPTH_MAX {
        return true;
    }
    match hint {
        Hint::Nullable(_) | Hint::Null(_) | Hint::Mixed(_) => true,
        Hint::Parenthesized(inner) => accepts_null(inner.hint, depth + 1),
        Hint::Union(union) => {
            accepts_null(union.left, depth + 1) || accepts_null(union.right, depth + 1)
        }
        _ => false,
    }
}
