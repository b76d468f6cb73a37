//! Rules for declarations of classes, functions and their members, and the facts about them.

use super::checker::{Checker, Report};
use super::literal::has_static;
use super::scope::{Class as Scope, Origin};
use crate::project::{ClassFacts, ClassKind, MethodFacts, Need};
use crate::rules::{Target, code, lower, names};
use mago_syntax::ast::{
    AnonymousClass, AttributeList, Class, ClassLikeMember, Constant, Enum, Extends, Function, Hint,
    Implements, Interface, LocalIdentifier, Method, Modifier, Property, PropertyItem, Trait,
};

/// Words that cannot name a class since a version, by rule.
const CLASS_WORDS: [(&str, &[&str]); 8] = [
    ("reserved-class-5-4", &["trait", "callable", "insteadof"]),
    ("reserved-class-5-5", &["yield", "finally"]),
    ("reserved-class-7-0", &["bool", "int", "float", "string", "null", "true", "false"]),
    ("reserved-class-7-1", &["void", "iterable"]),
    ("reserved-class-7-2", &["object"]),
    ("reserved-class-8-0", &["mixed", "match"]),
    ("reserved-class-8-1", &["never", "readonly"]),
    ("reserved-class-7-4", &["fn"]),
];

struct Parts<'a> {
    kind: ClassKind,
    name: Option<&'a LocalIdentifier<'a>>,
    attributes: &'a [AttributeList<'a>],
    extends: Option<&'a Extends<'a>>,
    implements: Option<&'a Implements<'a>>,
    members: &'a [ClassLikeMember<'a>],
}

impl<'a> Checker<'_, 'a> {
    pub(super) fn class(&mut self, class: &'a Class<'a>) {
        self.open(&Parts {
            kind: ClassKind::Class,
            name: Some(&class.name),
            attributes: class.attribute_lists.as_slice(),
            extends: class.extends.as_ref(),
            implements: class.implements.as_ref(),
            members: class.members.as_slice(),
        });
    }

    pub(super) fn interface(&mut self, interface: &'a Interface<'a>) {
        self.open(&Parts {
            kind: ClassKind::Interface,
            name: Some(&interface.name),
            attributes: interface.attribute_lists.as_slice(),
            extends: interface.extends.as_ref(),
            implements: None,
            members: interface.members.as_slice(),
        });
    }

    pub(super) fn r#trait(&mut self, item: &'a Trait<'a>) {
        self.open(&Parts {
            kind: ClassKind::Trait,
            name: Some(&item.name),
            attributes: item.attribute_lists.as_slice(),
            extends: None,
            implements: None,
            members: item.members.as_slice(),
        });
    }

    pub(super) fn r#enum(&mut self, item: &'a Enum<'a>) {
        self.open(&Parts {
            kind: ClassKind::Enum,
            name: Some(&item.name),
            attributes: item.attribute_lists.as_slice(),
            extends: None,
            implements: item.implements.as_ref(),
            members: item.members.as_slice(),
        });
    }

    pub(super) fn anonymous_class(&mut self, class: &'a AnonymousClass<'a>) {
        self.open(&Parts {
            kind: ClassKind::Class,
            name: None,
            attributes: class.attribute_lists.as_slice(),
            extends: class.extends.as_ref(),
            implements: class.implements.as_ref(),
            members: class.members.as_slice(),
        });
    }

    fn open(&mut self, parts: &Parts<'a>) {
        let short = parts.name.map(|name| lower(name.value)).unwrap_or_default();
        let name = if short.is_empty() { short.clone() } else { self.names.declared(&short) };
        if let Some(identifier) = parts.name {
            self.class_declaration(identifier, &short, &name);
        }
        let list = |names: Option<&[mago_syntax::ast::Identifier<'_>]>, checker: &Self| {
            names.unwrap_or_default().iter().map(|one| checker.names.class(one)).collect::<Vec<_>>()
        };
        let extends = list(parts.extends.map(|extends| extends.types.as_slice()), self);
        let implements = list(parts.implements.map(|list| list.types.as_slice()), self);
        let mut facts = ClassFacts {
            name: name.clone(),
            kind: parts.kind,
            parent: (parts.kind == ClassKind::Class).then(|| extends.first().cloned()).flatten(),
            interfaces: implements,
            allows_dynamic: has_attribute(parts.attributes, b"AllowDynamicProperties"),
            ..ClassFacts::default()
        };
        if parts.kind == ClassKind::Interface {
            facts.interfaces = extends;
        }
        let mut scope = Scope {
            name: name.clone(),
            parent: facts.parent.clone(),
            is_trait: parts.kind == ClassKind::Trait,
            properties: foldhash::HashSet::default(),
            property_types: foldhash::HashMap::default(),
        };
        for member in parts.members {
            self.member(member, &mut facts, &mut scope);
        }
        facts.properties = scope.properties.iter().cloned().collect();
        self.class_rules(parts, &short, &facts);
        self.classes.push(scope);
        self.open_classes.push(facts);
    }

    fn member(
        &mut self,
        member: &'a ClassLikeMember<'a>,
        facts: &mut ClassFacts,
        scope: &mut Scope,
    ) {
        match member {
            ClassLikeMember::TraitUse(item) => {
                facts.traits.extend(item.trait_names.iter().map(|name| self.names.class(name)));
            }
            ClassLikeMember::Property(property) => {
                let (hint, items): (_, Vec<&PropertyItem<'_>>) = match property {
                    Property::Plain(property) => {
                        (property.hint.as_ref(), property.items.iter().collect())
                    }
                    Property::Hooked(property) => (property.hint.as_ref(), vec![&property.item]),
                };
                for item in items {
                    let variable = match item {
                        PropertyItem::Abstract(item) => &item.variable,
                        PropertyItem::Concrete(item) => &item.variable,
                    };
                    self.property_fact(variable.name, hint, scope);
                }
            }
            ClassLikeMember::Method(method) => {
                for parameter in &method.parameter_list.parameters {
                    if !parameter.modifiers.is_empty() || parameter.hooks.is_some() {
                        self.property_fact(parameter.variable.name, parameter.hint.as_ref(), scope);
                    }
                }
                facts.methods.push(MethodFacts {
                    name: lower(method.name.value),
                    is_static: has_static(method.modifiers.as_slice()),
                });
            }
            _ => {}
        }
    }

    fn property_fact(&mut self, name: &[u8], hint: Option<&Hint<'_>>, scope: &mut Scope) {
        let name = String::from_utf8_lossy(name).trim_start_matches('$').to_owned();
        if let Some(Origin::Class(class)) = hint.map(|hint| self.origin_of_hint(hint)) {
            scope.property_types.insert(name.clone(), Origin::Class(class));
        }
        scope.properties.insert(name);
    }

    /// Rules for the name of a class.
    fn class_declaration(&mut self, at: &LocalIdentifier<'_>, short: &str, full: &str) {
        for (id, words) in CLASS_WORDS {
            if words.contains(&short) {
                let subject = format!("a class with the name {short}");
                self.report(Report::new(code(id), at).subject(&subject));
            }
        }
        if short == "_" {
            self.syntax("class-named-underscore", at);
        }
        if self.names.is_global() && !self.guards.is_missing(Target::Class, full) {
            for entry in names().find(Target::DeclaresClass, full) {
                let subject =
                    format!("the declaration of the class {}", String::from_utf8_lossy(at.value));
                self.report(Report::new(entry.rule, at).subject(&subject));
            }
        }
    }

    /// Rules for a class with all its members.
    fn class_rules(&mut self, parts: &Parts<'a>, short: &str, facts: &ClassFacts) {
        let has = |name: &str| facts.methods.iter().any(|method| method.name == name);
        let is_serializable = facts.interfaces.iter().any(|one| one == "serializable");
        if parts.kind == ClassKind::Class
            && is_serializable
            && !(has("__serialize") && has("__unserialize"))
            && let Some(name) = parts.name
        {
            let need = Need::NoSerialize { class: facts.name.clone() };
            self.report(Report::new(code("serializable-only"), name).need(need));
        }
        for member in parts.members {
            let ClassLikeMember::Method(method) = member else { continue };
            let name = lower(method.name.value);
            let is_constructor = parts.kind == ClassKind::Class
                && self.names.is_global()
                && name == short
                && !has("__construct");
            if is_constructor {
                self.report(Report::new(code("php4-constructor"), &method.name));
            }
            let modifiers = method.modifiers.as_slice();
            let is_private = modifiers.iter().any(|one| matches!(one, Modifier::Private(_)));
            let is_final = modifiers.iter().any(|one| matches!(one, Modifier::Final(_)));
            if is_private && is_final && name != "__construct" {
                self.syntax("final-private-method", &method.name);
            }
            if matches!(name.as_str(), "__sleep" | "__wakeup") {
                let other = if name == "__sleep" { "__serialize" } else { "__unserialize" };
                if !has(other) {
                    self.syntax("sleep-and-wakeup", &method.name);
                }
            }
            self.overriding(method, &name, facts, parts.kind);
        }
    }

    /// A method that overrides one of an internal class needs its return type since 8.1.
    fn overriding(
        &mut self,
        method: &'a Method<'a>,
        name: &str,
        facts: &ClassFacts,
        kind: ClassKind,
    ) {
        let has_ancestors =
            facts.parent.is_some() || !facts.interfaces.is_empty() || kind == ClassKind::Trait;
        if !has_ancestors
            || kind == ClassKind::Trait
            || method.return_type_hint.is_some()
            || has_attribute(method.attribute_lists.as_slice(), b"ReturnTypeWillChange")
            || !names().is_overridden(name)
        {
            return;
        }
        let subject =
            format!("{}() without a return type", String::from_utf8_lossy(method.name.value));
        let start = facts.parent.iter().chain(&facts.interfaces).cloned().collect();
        let need = Need::Overrides { ancestors: start, method: name.to_owned() };
        let rule = code("return-type-of-override");
        self.report(Report::new(rule, &method.name).subject(&subject).need(need));
    }

    pub(super) fn leave_class(&mut self) {
        self.classes.pop();
        if let Some(facts) = self.open_classes.pop()
            && !facts.name.is_empty()
        {
            self.facts.classes.push(facts);
        }
    }

    pub(super) fn function_declaration(&mut self, function: &'a Function<'a>) {
        let short = lower(function.name.value);
        let full = self.names.declared(&short);
        if self.names.is_global() {
            if !self.guards.is_missing(Target::Function, &full) {
                for entry in names().find(Target::DeclaresFunction, &full) {
                    let subject = format!("the declaration of the function {full}()");
                    self.report(
                        Report::new(entry.rule, &function.name)
                            .subject(&subject)
                            .need(Need::Nothing),
                    );
                }
            }
            if short == "__autoload" {
                self.syntax("syntax-autoload-function", &function.name);
            }
        } else if short == "assert" {
            self.syntax("syntax-assert-in-namespace", &function.name);
        }
        if matches!(short.as_str(), "fn" | "match") {
            let id = if short == "fn" { "reserved-function-7-4" } else { "reserved-function-8-0" };
            let subject = format!("a function with the name {short}");
            self.report(Report::new(code(id), &function.name).subject(&subject));
        }
        if function.ampersand.is_some()
            && let Some(hint) = &function.return_type_hint
            && matches!(hint.hint, Hint::Void(_))
        {
            self.syntax("void-by-reference", &function.name);
        }
        self.facts.functions.push(full);
    }

    pub(super) fn method_declaration(&mut self, method: &'a Method<'a>) {
        if method.ampersand.is_some()
            && let Some(hint) = &method.return_type_hint
            && matches!(hint.hint, Hint::Void(_))
        {
            self.syntax("void-by-reference", &method.name);
        }
    }

    pub(super) fn constants(&mut self, constant: &Constant<'_>) {
        for item in &constant.items {
            let name = String::from_utf8_lossy(item.name.value).into_owned();
            self.facts.constants.push(self.names.declared(&name));
        }
    }
}

fn has_attribute(lists: &[AttributeList<'_>], name: &[u8]) -> bool {
    lists.iter().flat_map(|list| list.attributes.iter()).any(|attribute| {
        let value = attribute.name.value();
        value.strip_prefix(b"\\").unwrap_or(value).eq_ignore_ascii_case(name)
    })
}
