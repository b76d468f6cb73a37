//! Rules for functions, methods, classes, constants and their arguments.

use super::checker::{Checker, Report};
use super::literal::{bare, integer, is_null, text, value};
use super::scope::Origin;
use super::strings;
use crate::finding::Kind;
use crate::project::Need;
use crate::rules::{Condition, Rule, Target, Value, code, lower, names};
use mago_span::HasSpan;
use mago_syntax::ast::{
    Access, Argument, ArgumentList, Call, ClassConstantAccess, ClassLikeConstantSelector,
    ClassLikeMemberSelector, ConstantAccess, Expression, FunctionCall, Hint, Identifier,
    Instantiation, Literal, StaticMethodCall, StaticPropertyAccess, Variable,
};

/// Functions whose first argument is the name of a setting.
const INI_FUNCTIONS: [&str; 5] = ["ini_set", "ini_alter", "ini_get", "ini_restore", "get_cfg_var"];
/// Functions that take a callable, at any position.
const CALLABLE_FUNCTIONS: [&str; 14] = [
    "call_user_func",
    "call_user_func_array",
    "array_map",
    "array_filter",
    "array_walk",
    "usort",
    "uasort",
    "uksort",
    "is_callable",
    "array_reduce",
    "preg_replace_callback",
    "register_shutdown_function",
    "spl_autoload_register",
    "ob_start",
];
/// Functions that inspect or move the position in an array, which `foreach` moved before 7.0.
const POSITION_FUNCTIONS: [&str; 7] = ["current", "key", "next", "prev", "reset", "end", "each"];

impl<'a> Checker<'_, 'a> {
    pub(super) fn function_call(&mut self, call: &'a FunctionCall<'a>) {
        let Expression::Identifier(name) = call.function else {
            if let Expression::ArrayAccess(access) = call.function
                && matches!(access.array, Expression::Access(Access::StaticProperty(_)))
            {
                self.syntax("uniform-variable-syntax", call.function);
            }
            return;
        };
        let Some(function) = self.function_name(name) else { return };
        let list = &call.argument_list;
        let resolved = self.names.function(name);
        let need = not_declared(Target::Function, &function, resolved.local.as_deref(), true);
        self.conditions(&function, name, list, &need);
        self.nulls(&function, list, &need);
        self.settings(&function, list);
        self.special_calls(&function, call, &need);
    }

    /// Rules of the name itself. Returns the name if it can be an internal function.
    pub(super) fn function_name(&mut self, name: &Identifier<'_>) -> Option<String> {
        let resolved = self.names.function(name);
        let function = resolved.global?;
        for entry in names().find(Target::Function, &function) {
            let mut report = Report::new(entry.rule, name)
                .replacement(entry.replacement)
                .need(not_declared(Target::Function, &function, resolved.local.as_deref(), false));
            let subject = format!("{function}()");
            report = report.subject(&subject);
            if let Some(other) = entry.replacement
                && entry.rule.is_rename
            {
                let is_full = matches!(name, Identifier::FullyQualified(_));
                let other = if is_full { format!("\\{other}") } else { other.to_owned() };
                report = report.edit(name, other);
            }
            self.report(report);
        }
        Some(function)
    }

    /// Rules with conditions on the arguments.
    fn conditions(&mut self, name: &str, at: &impl HasSpan, list: &ArgumentList<'_>, need: &Need) {
        for (entry, conditions) in names().calls(name) {
            if conditions.iter().all(|condition| holds(*condition, list)) {
                self.report(Report::new(entry.rule, at).need(need.clone()));
            }
        }
    }

    /// Literal nulls for parameters of internal functions that do not take null.
    fn nulls(&mut self, function: &str, list: &ArgumentList<'_>, need: &Need) {
        let Some((entry, positions)) = names().nulls(function) else { return };
        for (at, argument) in list.arguments.iter().enumerate() {
            let Argument::Positional(one) = argument else { return };
            if one.ellipsis.is_some() {
                return;
            }
            if positions.contains(&(at + 1)) && is_null(one.value) {
                let subject = format!("null as argument {} of {function}()", at + 1);
                self.report(
                    Report::new(entry.rule, one.value).subject(&subject).need(need.clone()),
                );
            }
        }
    }

    /// Names of ini settings in `ini_set()` and similar functions.
    fn settings(&mut self, function: &str, list: &ArgumentList<'_>) {
        if !INI_FUNCTIONS.contains(&function) {
            return;
        }
        let Some(argument) = list.arguments.first().map(value) else { return };
        let Some(name) = text(argument).map(lower) else { return };
        let is_read = matches!(function, "ini_get" | "get_cfg_var");
        for entry in names().find(Target::Ini, &name) {
            let subject = format!("the ini setting {name}");
            let read = format!("the result of {function}('{name}')");
            let mut report =
                Report::new(entry.rule, argument).subject(&subject).replacement(entry.replacement);
            if is_read {
                report = report.subject(&read);
                // The value is false, and most code tests for that.
                match entry.rule.event(self.range, self.guards.below()) {
                    Some((Kind::Removed, _)) => report.kind = Some(Kind::Changed),
                    _ => continue,
                }
            }
            self.report(report);
        }
    }

    /// Rules that need more than the form of one argument.
    fn special_calls(&mut self, function: &str, call: &'a FunctionCall<'a>, need: &Need) {
        let list = &call.argument_list;
        let argument = |at: usize| list.arguments.get(at).map(value);
        match function {
            "preg_replace" | "preg_filter" => {
                if let Some(pattern) = argument(0)
                    && strings::has_eval_flag(pattern)
                {
                    self.report(Report::new(code("preg-replace-eval"), pattern).need(need.clone()));
                }
            }
            "in_array" | "array_search" => self.loose_search(list),
            "is_resource" => {
                if let Some(tested) = argument(0)
                    && let Some(Origin::Call(maker)) = self.origin(tested)
                {
                    for entry in names().find(Target::ReturnsObject, &maker) {
                        let subject = format!("is_resource() of the result of {maker}()");
                        self.report(
                            Report::new(entry.rule, call.function)
                                .subject(&subject)
                                .need(need.clone()),
                        );
                    }
                }
            }
            _ => {}
        }
        if CALLABLE_FUNCTIONS.contains(&function) {
            for argument in &list.arguments {
                if strings::is_relative_callable(value(argument)) {
                    self.report(
                        Report::new(code("relative-callable"), argument).need(need.clone()),
                    );
                }
            }
        }
        if POSITION_FUNCTIONS.contains(&function)
            && let Some(Expression::Variable(Variable::Direct(variable))) = argument(0)
        {
            let name = String::from_utf8_lossy(variable.name).into_owned();
            if self.is_looped_over(&name, false) {
                self.syntax("foreach-position", call.function);
            }
        }
        if matches!(function, "array_push" | "array_splice" | "array_unshift")
            && let Some(Expression::Variable(Variable::Direct(variable))) = argument(0)
        {
            let name = String::from_utf8_lossy(variable.name).into_owned();
            if self.is_looped_over(&name, true) {
                self.syntax("foreach-reference", call.function);
            }
        }
    }

    /// `in_array(0, ['a'])` without `true`.
    fn loose_search(&mut self, list: &ArgumentList<'_>) {
        let (Some(needle), Some(Expression::Array(array))) =
            (list.arguments.first().map(value), list.arguments.get(1).map(value))
        else {
            return;
        };
        if list.arguments.len() > 2 || !super::literal::is_number(needle) {
            return;
        }
        let is_word = array.elements.iter().any(|element| match element {
            mago_syntax::ast::ArrayElement::Value(one) => {
                text(one.value).is_some_and(|text| !super::literal::is_numeric(text))
            }
            _ => false,
        });
        if is_word {
            self.syntax("number-compared-with-text", needle);
        }
    }

    pub(super) fn constant(&mut self, access: &ConstantAccess<'_>) {
        let resolved = self.names.constant(&access.name);
        let Some(constant) = resolved.global else { return };
        for entry in names().find(Target::Constant, &constant) {
            let local = resolved.local.as_deref();
            let need = not_declared(Target::Constant, &constant, local, false);
            let mut report = Report::new(entry.rule, &access.name)
                .subject(&constant)
                .replacement(entry.replacement)
                .need(need);
            if let Some(other) = entry.replacement
                && entry.rule.is_rename
            {
                report = report.edit(&access.name, other);
            }
            self.report(report);
        }
    }

    /// A name that is used as a class.
    pub(super) fn class_name(&mut self, name: &Identifier<'_>) {
        let class = self.names.class(name);
        for entry in names().find(Target::Class, &class) {
            let written = String::from_utf8_lossy(name.value()).into_owned();
            let subject = format!("the class {}", written.trim_start_matches('\\'));
            self.report(
                Report::new(entry.rule, name)
                    .subject(&subject)
                    .replacement(entry.replacement)
                    .need(Need::NotDeclared(vec![(Target::Class, class.clone())])),
            );
        }
    }

    pub(super) fn instantiation(&mut self, new: &'a Instantiation<'a>) {
        let Some(list) = &new.argument_list else { return };
        if let Some(Origin::Class(class)) = self.class_of(new.class) {
            self.conditions(&format!("new {class}"), new.class, list, &Need::Nothing);
        }
    }

    pub(super) fn method_call(
        &mut self,
        object: &'a Expression<'a>,
        method: &'a ClassLikeMemberSelector<'a>,
        list: &'a ArgumentList<'a>,
    ) {
        let ClassLikeMemberSelector::Identifier(name) = method else { return };
        let class = match self.origin(object) {
            Some(Origin::Class(class)) => Some(class),
            _ => None,
        };
        self.method(class.as_deref(), name, list);
    }

    pub(super) fn static_call(&mut self, call: &'a StaticMethodCall<'a>) {
        let ClassLikeMemberSelector::Identifier(name) = &call.method else { return };
        let class = match self.class_of(call.class) {
            Some(Origin::Class(class)) => Some(class),
            _ => None,
        };
        self.method(class.as_deref(), name, &call.argument_list);
        if let (Expression::Identifier(_), Some(class)) = (call.class, class)
            && (self.applies("static-call-of-method") || self.applies("static-use-of-trait"))
        {
            let method = lower(name.value);
            let from = self.classes.last().map(|class| class.name.clone());
            for (id, is_trait) in [("static-call-of-method", false), ("static-use-of-trait", true)]
            {
                let need = Need::StaticCall {
                    class: class.clone(),
                    method: method.clone(),
                    from: from.clone(),
                    is_trait,
                };
                self.report(Report::new(code(id), call.class).need(need));
            }
        }
    }

    fn method(
        &mut self,
        class: Option<&str>,
        name: &mago_syntax::ast::LocalIdentifier<'_>,
        list: &ArgumentList<'_>,
    ) {
        let method = lower(name.value);
        let written = String::from_utf8_lossy(name.value).into_owned();
        let mut keys = vec![format!("*::{method}")];
        if let Some(class) = class {
            keys.push(format!("{class}::{method}"));
        }
        for key in keys {
            for entry in names().find(Target::Method, &key) {
                let subject = match entry.rule.targets.iter().find_map(|(_, text)| {
                    text.split([' ', '=']).find(|word| word.to_ascii_lowercase() == key)
                }) {
                    Some(known) if !known.starts_with('*') => format!("{known}()"),
                    _ => format!("the method {written}()"),
                };
                let mut report =
                    Report::new(entry.rule, name).subject(&subject).replacement(entry.replacement);
                if let Some(other) = entry.replacement
                    && entry.rule.is_rename
                {
                    report = report.edit(name, other.rsplit("::").next().unwrap_or(other));
                }
                if let Some(class) = class.filter(|_| !key.starts_with('*')) {
                    report =
                        report.need(Need::NotDeclared(vec![(Target::Class, class.to_owned())]));
                } else {
                    report = report.need(Need::NoMethod(method.clone()));
                }
                self.report(report);
            }
            let need = match class {
                Some(class) => Need::NotDeclared(vec![(Target::Class, class.to_owned())]),
                None => Need::Nothing,
            };
            self.conditions(&key, name, list, &need);
        }
    }

    pub(super) fn class_constant(&mut self, access: &'a ClassConstantAccess<'a>) {
        let ClassLikeConstantSelector::Identifier(name) = &access.constant else { return };
        let Some(Origin::Class(class)) = self.class_of(access.class) else { return };
        let constant = String::from_utf8_lossy(name.value).into_owned();
        for entry in names().find(Target::ClassConstant, &format!("{class}::{constant}")) {
            let subject = String::from_utf8_lossy(self.text(access)).into_owned();
            let replacement = entry.replacement.map(|other| match other.strip_suffix('*') {
                // `PDO::MYSQL_ATTR_*=Pdo\Mysql::ATTR_*`: the part of the star.
                Some(start) => {
                    let marker = star(entry.rule, &class, &constant);
                    format!("{start}{}", &constant[marker.min(constant.len())..])
                }
                None => other.to_owned(),
            });
            let need = Need::NotDeclared(vec![(Target::Class, class.clone())]);
            self.report(
                Report::new(entry.rule, access)
                    .subject(&subject)
                    .replacement(replacement.as_deref())
                    .need(need),
            );
        }
    }

    pub(super) fn static_property(&mut self, access: &'a StaticPropertyAccess<'a>) {
        if let Expression::Identifier(name) = access.class
            && self.applies("static-use-of-trait")
        {
            let class = self.names.class(name);
            let from = self.classes.last().map(|class| class.name.clone());
            let need = Need::StaticCall { class, method: String::new(), from, is_trait: true };
            self.report(Report::new(code("static-use-of-trait"), access.class).need(need));
        }
    }

    pub(super) fn property(&mut self, object: &Expression<'_>, name: &ClassLikeMemberSelector<'_>) {
        let ClassLikeMemberSelector::Identifier(name) = name else { return };
        let Some(Origin::Class(class)) = self.origin(object) else { return };
        let key = format!("{class}::{}", String::from_utf8_lossy(name.value));
        for entry in names().find(Target::Property, &key) {
            let subject = format!("the property {}", String::from_utf8_lossy(name.value));
            self.report(
                Report::new(entry.rule, name).subject(&subject).replacement(entry.replacement),
            );
        }
    }

    /// Class that an expression before `::` or after `new` denotes.
    pub(super) fn class_of(&self, expression: &Expression<'_>) -> Option<Origin> {
        match expression {
            Expression::Identifier(name) => Some(Origin::Class(self.names.class(name))),
            Expression::Self_(_) | Expression::Static(_) => {
                self.classes.last().map(|class| Origin::Class(class.name.clone()))
            }
            Expression::Parent(_) => {
                let parent = self.classes.last()?.parent.clone()?;
                Some(Origin::Class(parent))
            }
            other => self.origin(other),
        }
    }

    /// Class or function that a value comes from, as far as the source shows it.
    pub(super) fn origin(&self, expression: &Expression<'_>) -> Option<Origin> {
        match bare(expression) {
            Expression::Instantiation(new) => self.class_of_new(new.class),
            Expression::Variable(Variable::Direct(variable)) => {
                if variable.name == b"$this" {
                    // An inherited method of an internal class.
                    let class = self.classes.last()?;
                    return class.parent.clone().map(Origin::Class);
                }
                let name = String::from_utf8_lossy(variable.name);
                self.functions.last()?.variables.get(name.as_ref()).cloned()
            }
            Expression::Access(Access::Property(access)) => {
                let is_this = matches!(access.object, Expression::Variable(Variable::Direct(one))
                    if one.name == b"$this");
                let ClassLikeMemberSelector::Identifier(name) = &access.property else {
                    return None;
                };
                if !is_this {
                    return None;
                }
                let name = String::from_utf8_lossy(name.value);
                self.classes.last()?.property_types.get(name.as_ref()).cloned()
            }
            Expression::Call(Call::Function(call)) => {
                let Expression::Identifier(name) = call.function else { return None };
                self.names.function(name).global.map(Origin::Call)
            }
            Expression::Clone(clone) => match clone.object {
                Expression::Variable(_) => self.origin(clone.object),
                _ => None,
            },
            // `$handle = curl_init() or die()`
            Expression::Assignment(assignment) => match assignment.rhs {
                Expression::Assignment(_) => None,
                other => self.origin(other),
            },
            _ => None,
        }
    }

    fn class_of_new(&self, class: &Expression<'_>) -> Option<Origin> {
        match class {
            Expression::Identifier(name) => Some(Origin::Class(self.names.class(name))),
            _ => None,
        }
    }

    pub(super) fn origin_of_hint(&self, hint: &Hint<'_>) -> Origin {
        match hint {
            Hint::Identifier(name) => Origin::Class(self.names.class(name)),
            Hint::Nullable(nullable) => match nullable.hint {
                Hint::Identifier(name) => Origin::Class(self.names.class(name)),
                _ => Origin::Other,
            },
            _ => Origin::Other,
        }
    }

    /// Whether a loop around runs over this variable.
    pub(super) fn is_looped_over(&self, name: &str, wants_reference: bool) -> bool {
        let Some(function) = self.functions.last() else { return false };
        function.loops.iter().any(|one| match one {
            super::scope::Loop::Foreach { variable, is_by_reference } => {
                variable == name && *is_by_reference == wants_reference
            }
            _ => false,
        })
    }
}

/// A finding for a name counts only if the scanned code does not declare the name.
fn not_declared(kind: Target, global: &str, local: Option<&str>, is_local_only: bool) -> Need {
    let mut names = Vec::new();
    if let Some(local) = local {
        names.push((kind, local.to_owned()));
    }
    if !is_local_only {
        names.push((kind, global.to_owned()));
    }
    if names.is_empty() { Need::Nothing } else { Need::NotDeclared(names) }
}

/// Length of the name before the star of its entry.
fn star(rule: &Rule, class: &str, constant: &str) -> usize {
    let lengths = rule.targets.iter().flat_map(|(_, text)| text.split(' ')).filter_map(|word| {
        let (name, _) = word.split_once('=')?;
        let (of, prefix) = name.split_once("::")?;
        let prefix = prefix.strip_suffix('*')?;
        (of.eq_ignore_ascii_case(class) && constant.starts_with(prefix)).then_some(prefix.len())
    });
    lengths.max().unwrap_or(0)
}

fn holds(condition: Condition, list: &ArgumentList<'_>) -> bool {
    let count = list.arguments.len();
    let is_unpacked = list
        .arguments
        .iter()
        .any(|argument| matches!(argument, Argument::Positional(one) if one.ellipsis.is_some()));
    let is_named = |name: &str| {
        list.arguments.iter().any(|argument| {
            matches!(argument, Argument::Named(one) if one.name.value == name.as_bytes())
        })
    };
    match condition {
        Condition::Fewer(limit) => !is_unpacked && count < limit,
        Condition::More(limit) => !is_unpacked && count > limit,
        Condition::Exactly(number) => !is_unpacked && count == number,
        Condition::NotNamed(name) => !is_named(name),
        Condition::Named(name) => is_named(name),
        Condition::Argument(at, form) => {
            let argument = at.checked_sub(1).and_then(|at| list.arguments.get(at));
            match argument {
                Some(Argument::Positional(one)) if one.ellipsis.is_none() => {
                    is_of_form(one.value, form)
                }
                _ => false,
            }
        }
    }
}

fn is_of_form(expression: &Expression<'_>, form: Value) -> bool {
    let expression = bare(expression);
    match form {
        Value::Null => is_null(expression),
        Value::True => matches!(expression, Expression::Literal(Literal::True(_))),
        Value::False => matches!(expression, Expression::Literal(Literal::False(_))),
        Value::Text => match expression {
            Expression::Literal(Literal::String(_)) => true,
            Expression::CompositeString(string) => {
                !matches!(string, mago_syntax::ast::CompositeString::ShellExecute(_))
            }
            _ => false,
        },
        Value::Integer => integer(expression).is_some(),
        Value::Array => matches!(expression, Expression::Array(_) | Expression::LegacyArray(_)),
        Value::Object => match expression {
            Expression::Instantiation(_) | Expression::AnonymousClass(_) => true,
            Expression::Variable(Variable::Direct(variable)) => variable.name == b"$this",
            _ => false,
        },
        Value::Globals => match expression {
            Expression::Variable(Variable::Direct(variable)) => variable.name == b"$GLOBALS",
            _ => false,
        },
        Value::Is(wanted) => {
            text(expression).is_some_and(|text| text.eq_ignore_ascii_case(wanted.as_bytes()))
                || integer(expression).is_some_and(|number| number.to_string() == wanted)
        }
        Value::Contains(wanted) => strings::contains(expression, wanted.as_bytes()),
        Value::Constant(name) => strings::uses_constant(expression, name.as_bytes()),
    }
}
