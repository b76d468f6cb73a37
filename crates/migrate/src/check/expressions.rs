//! Rules for operators, variables, strings and offsets.

use super::checker::{Checker, Report};
use super::literal::{bare, is_null, is_number, is_numeric, text};
use super::scope::Origin;
use crate::finding::Edit;
use crate::project::Need;
use crate::rules::{Target, code, names};
use mago_span::{HasSpan, Span};
use mago_syntax::ast::{
    Access, ArrayElement, Assignment, AssignmentOperator, Binary, BinaryOperator,
    ClassLikeMemberSelector, CompositeString, Conditional, Expression, IndirectVariable, Node,
    StringPart, UnaryPrefix, UnaryPrefixOperator, Variable,
};

impl<'a> Checker<'_, 'a> {
    pub(super) fn expression(&mut self, node: Node<'a, 'a>) {
        match node {
            Node::UnaryPrefix(unary) => self.unary(unary),
            Node::UnaryPostfix(unary) => self.written(unary.operand),
            Node::Assignment(assignment) => self.assignment(assignment),
            Node::CompositeString(string) => self.string(string),
            Node::ArrayAccess(access) => {
                if is_null(access.index) {
                    self.syntax("null-offset", access.index);
                }
                self.uniform_syntax(access.array, access);
            }
            Node::DirectVariable(variable) => {
                let name = String::from_utf8_lossy(variable.name);
                for entry in names().find(Target::Variable, &name) {
                    self.report(
                        Report::new(entry.rule, variable)
                            .subject(&name)
                            .replacement(entry.replacement),
                    );
                }
            }
            Node::MethodCall(call) => {
                self.method_call(call.object, &call.method, &call.argument_list);
            }
            Node::NullSafeMethodCall(call) => {
                self.method_call(call.object, &call.method, &call.argument_list);
            }
            Node::StaticMethodCall(call) => self.static_call(call),
            Node::Instantiation(new) => self.instantiation(new),
            Node::ClassConstantAccess(access) => self.class_constant(access),
            Node::StaticPropertyAccess(access) => self.static_property(access),
            Node::PropertyAccess(access) => self.property(access.object, &access.property),
            Node::NullSafePropertyAccess(access) => self.property(access.object, &access.property),
            Node::Identifier(name) => self.class_name(name),
            Node::Expression(Expression::Parent(keyword)) => {
                let is_bound = self.function().is_closure;
                let is_orphan = !is_bound
                    && self.classes.last().is_some_and(|class| {
                        class.parent.is_none() && !class.is_trait && !class.name.is_empty()
                    });
                if is_orphan {
                    self.syntax("parent-without-parent", keyword);
                }
            }
            Node::List(list) => self.list(list.elements.as_slice(), list),
            _ => {}
        }
    }

    fn unary(&mut self, unary: &'a UnaryPrefix<'a>) {
        let (id, span, cast) = match &unary.operator {
            UnaryPrefixOperator::RealCast(span, _) => ("syntax-real-cast", *span, "(float)"),
            UnaryPrefixOperator::BooleanCast(span, _) => ("cast-names", *span, "(bool)"),
            UnaryPrefixOperator::IntegerCast(span, _) => ("cast-names", *span, "(int)"),
            UnaryPrefixOperator::DoubleCast(span, _) => ("cast-names", *span, "(float)"),
            UnaryPrefixOperator::BinaryCast(span, _) => ("cast-names", *span, "(string)"),
            UnaryPrefixOperator::UnsetCast(span, _) => {
                self.syntax("syntax-unset-cast", span);
                return;
            }
            UnaryPrefixOperator::PreIncrement(_) | UnaryPrefixOperator::PreDecrement(_) => {
                self.written(unary.operand);
                return;
            }
            UnaryPrefixOperator::Reference(span) => {
                if is_globals(unary.operand) {
                    self.syntax("syntax-globals-array", span);
                }
                return;
            }
            _ => return,
        };
        self.report(Report::new(code(id), &span).edit(&span, cast));
    }

    fn assignment(&mut self, assignment: &'a Assignment<'a>) {
        self.written(assignment.lhs);
        if is_globals(assignment.lhs) {
            self.syntax("syntax-globals-array", assignment.lhs);
        }
        if let Expression::Array(array) = assignment.lhs {
            self.list(array.elements.as_slice(), array);
        }
        let (AssignmentOperator::Assign(_), rhs) = (&assignment.operator, assignment.rhs) else {
            return;
        };
        if let Expression::UnaryPrefix(unary) = rhs
            && let UnaryPrefixOperator::Reference(span) = unary.operator
            && matches!(unary.operand, Expression::Instantiation(_))
        {
            let edit = Edit {
                start: span.start.offset,
                end: unary.operand.span().start.offset,
                text: Vec::new(),
            };
            let mut report = Report::new(code("syntax-new-by-reference"), &span);
            report.edits.push(edit);
            self.report(report);
        }
        let origin = self.origin(rhs);
        match assignment.lhs {
            Expression::Variable(Variable::Direct(variable))
                // `$handle = null` closes it, and says nothing about its other values.
                if !is_null(rhs) && variable.name != b"$this" => {
                    let name = String::from_utf8_lossy(variable.name).into_owned();
                    self.function().assign(name, origin.unwrap_or(Origin::Other));
                }
            Expression::Access(Access::Property(access)) => {
                if let Some(property) = own_property(access.object, &access.property)
                    && !is_null(rhs)
                    && let Some(class) = self.classes.last_mut()
                {
                    class.assign(property, origin.unwrap_or(Origin::Other));
                }
            }
            _ => {}
        }
    }

    /// An expression that is assigned to: the property of a class must be declared.
    pub(super) fn written(&mut self, target: &'a Expression<'a>) {
        let mut target = bare(target);
        let mut is_append = false;
        loop {
            target = match target {
                Expression::ArrayAccess(access) => access.array,
                Expression::ArrayAppend(append) => {
                    is_append = true;
                    append.array
                }
                _ => break,
            };
        }
        if is_append
            && let Expression::Variable(Variable::Direct(variable)) = target
            && self.is_looped_over(&String::from_utf8_lossy(variable.name), true)
        {
            self.syntax("foreach-reference", target);
        }
        let Expression::Access(Access::Property(access)) = target else { return };
        let Some(property) = own_property(access.object, &access.property) else { return };
        // A closure may be bound to an object of another class.
        if !self.function().has_this || self.function().is_closure {
            return;
        }
        let Some(class) = self.classes.last() else { return };
        if class.is_trait || class.name.is_empty() || class.properties.contains(&property) {
            return;
        }
        let subject = format!("creating the property ${property} at run time");
        let need = Need::DynamicProperty { class: class.name.clone(), property };
        let rule = code("dynamic-property");
        self.report(Report::new(rule, &access.property).subject(&subject).need(need));
    }

    pub(super) fn binary(&mut self, binary: &'a Binary<'a>) {
        match binary.operator {
            BinaryOperator::Equal(span)
            | BinaryOperator::NotEqual(span)
            | BinaryOperator::AngledNotEqual(span) => {
                let is_word = |word| text(word).is_some_and(|text| !is_numeric(text));
                let is_pair = |number, word| is_number(number) && is_word(word);
                if is_pair(binary.lhs, binary.rhs) || is_pair(binary.rhs, binary.lhs) {
                    self.syntax("number-compared-with-text", &span);
                }
            }
            BinaryOperator::StringConcat(span) => {
                let is_sum = |operand: &Expression<'_>| match operand {
                    Expression::Binary(inner) => matches!(
                        inner.operator,
                        BinaryOperator::Addition(_) | BinaryOperator::Subtraction(_)
                    ),
                    _ => false,
                };
                let is_shift = |operand: &Expression<'_>| match operand {
                    Expression::Binary(inner) => matches!(
                        inner.operator,
                        BinaryOperator::LeftShift(_) | BinaryOperator::RightShift(_)
                    ),
                    _ => false,
                };
                if is_sum(binary.rhs) || is_shift(binary.rhs) || is_shift(binary.lhs) {
                    self.syntax("concatenation-precedence", &span);
                }
            }
            _ => {}
        }
    }

    pub(super) fn conditional(&mut self, conditional: &'a Conditional<'a>) {
        let is_mixed = |other: &Expression<'_>| match other {
            Expression::Conditional(other) => other.then.is_some() || conditional.then.is_some(),
            _ => false,
        };
        if is_mixed(conditional.condition) || is_mixed(conditional.r#else) {
            self.syntax("syntax-nested-ternary", &conditional.question_mark);
        }
    }

    fn string(&mut self, string: &'a CompositeString<'a>) {
        if let CompositeString::ShellExecute(command) = string {
            self.syntax("backtick-operator", &command.left_backtick);
        }
        for part in string.parts() {
            if let StringPart::Expression(Expression::Variable(Variable::Indirect(variable))) = part
            {
                self.interpolation(variable);
            }
            if let StringPart::Expression(Expression::ArrayAccess(access)) = part
                && let Expression::Variable(Variable::Indirect(variable)) = access.array
            {
                self.interpolation(variable);
            }
        }
    }

    /// `"${name}"` → `"{$name}"`, `"${name['a']}"` → `"{$name['a']}"`, `"${'a' . 1}"` →
    /// `"{${'a' . 1}}"`.
    fn interpolation(&mut self, variable: &IndirectVariable<'_>) {
        let inside = Span::between(variable.dollar_left_brace, variable.right_brace);
        let source = self.text(&inside);
        let inner = source.get(2..source.len().saturating_sub(1)).unwrap_or_default().to_vec();
        let name = inner.iter().take_while(|byte| is_name_byte(**byte)).count();
        let is_name = name > 0 && !inner[0].is_ascii_digit();
        let rest = inner.get(name..).unwrap_or_default();
        let text = if is_name && (rest.is_empty() || rest.starts_with(b"[")) {
            [b"{$", &inner[..], b"}"].concat()
        } else {
            [b"{${", &inner[..], b"}}"].concat()
        };
        let report = Report::new(code("interpolation-dollar-brace"), variable);
        self.report(report.edit(&inside, text));
    }

    /// `$$name['a']`, `$object->$name['a']`: PHP 5 evaluated them from the right.
    fn uniform_syntax(&mut self, array: &Expression<'_>, at: &impl HasSpan) {
        let is_changed = match array {
            Expression::Variable(Variable::Nested(_)) => true,
            Expression::Access(Access::Property(access)) => {
                matches!(access.property, ClassLikeMemberSelector::Variable(_))
            }
            _ => false,
        };
        if is_changed {
            self.syntax("uniform-variable-syntax", at);
        }
    }

    /// Targets of `list()` and `[…] =`.
    fn list(&mut self, elements: &'a [ArrayElement<'a>], at: &impl HasSpan) {
        let mut appended: Vec<&[u8]> = Vec::new();
        let mut is_repeated = false;
        let mut targets = 0;
        for element in elements {
            let value = match element {
                ArrayElement::Value(element) => element.value,
                ArrayElement::KeyValue(element) => element.value,
                _ => continue,
            };
            targets += 1;
            if let Expression::ArrayAppend(append) = value {
                let array = self.text(append.array);
                is_repeated |= appended.contains(&array);
                appended.push(array);
            }
        }
        for element in elements {
            match element {
                ArrayElement::Value(element) => self.written(element.value),
                ArrayElement::KeyValue(element) => self.written(element.value),
                _ => {}
            }
        }
        if is_repeated {
            self.syntax("list-order", at);
        }
        if targets == 0 {
            self.syntax("syntax-empty-list", at);
        }
    }

    /// `foo(&$x)`: the parser has seen a space instead.
    pub(super) fn call_time_reference(&mut self, offset: u32) {
        let at = self.byte(offset);
        self.report(Report::new(code("syntax-call-time-reference"), &at).edit(&at, ""));
    }

    /// The byte at an offset.
    pub(super) fn byte(&self, offset: u32) -> Span {
        let position = mago_span::Position::new;
        Span::new(self.program.file_id, position(offset), position(offset + 1))
    }

    pub(super) fn curly_offset(&mut self, open: u32, close: u32) {
        let (open, close) = (self.byte(open), self.byte(close));
        let report = Report::new(code("syntax-curly-offset"), &open);
        self.report(report.edit(&open, "[").edit(&close, "]"));
    }
}

/// Name of the property in `$this->name`.
fn own_property(object: &Expression<'_>, name: &ClassLikeMemberSelector<'_>) -> Option<String> {
    let Expression::Variable(Variable::Direct(variable)) = object else { return None };
    let ClassLikeMemberSelector::Identifier(name) = name else { return None };
    (variable.name == b"$this").then(|| String::from_utf8_lossy(name.value).into_owned())
}

fn is_globals(expression: &Expression<'_>) -> bool {
    match bare(expression) {
        Expression::Variable(Variable::Direct(variable)) => variable.name == b"$GLOBALS",
        _ => false,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
