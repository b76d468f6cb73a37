//! Facts about all files, and the findings that depend on them: a name that the code declares
//! itself, a property that a parent declares, a method that is not static.

use crate::finding::{Finding, Kind};
use crate::rules::{Target, names};
use foldhash::{HashMap, HashSet};

/// Maximum number of ancestors of a class.
const ANCESTORS_MAX: usize = 200;
/// Properties of exceptions.
const EXCEPTION_PROPERTIES: [&str; 7] =
    ["message", "code", "file", "line", "previous", "string", "trace"];
/// Internal classes without properties of their own, whose child classes must declare theirs.
const PLAIN_ANCESTORS: [&str; 12] = [
    "stringable",
    "countable",
    "iterator",
    "iteratoraggregate",
    "traversable",
    "arrayaccess",
    "jsonserializable",
    "serializable",
    "seekableiterator",
    "outeriterator",
    "recursiveiterator",
    "sessionhandlerinterface",
];
/// Suffixes of internal exceptions and errors.
const EXCEPTIONS: [&str; 24] = [
    "exception",
    "error",
    "errorexception",
    "typeerror",
    "valueerror",
    "arithmeticerror",
    "divisionbyzeroerror",
    "argumentcounterror",
    "jsonexception",
    "logicexception",
    "badfunctioncallexception",
    "badmethodcallexception",
    "domainexception",
    "invalidargumentexception",
    "lengthexception",
    "outofrangeexception",
    "runtimeexception",
    "outofboundsexception",
    "overflowexception",
    "rangeexception",
    "underflowexception",
    "unexpectedvalueexception",
    "throwable",
    "unhandledmatcherror",
];

/// Result of one file.
#[derive(Debug, Default)]
pub(crate) struct FileFacts {
    pub(crate) candidates: Vec<Candidate>,
    /// Findings above the limit of a file.
    pub(crate) dropped: usize,
    pub(crate) classes: Vec<ClassFacts>,
    /// Full names of declared functions, in lower case.
    pub(crate) functions: Vec<String>,
    pub(crate) constants: Vec<String>,
    pub(crate) lines: usize,
}

/// A finding, if its condition holds.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) finding: Finding,
    pub(crate) need: Need,
}

/// Condition that needs the facts of all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// No file declares one of these.
    NotDeclared(Vec<(Target, String)>),
    /// No class of the files has a method of this name.
    NoMethod(String),
    /// The class must not create properties, and has not declared this one.
    DynamicProperty {
        class: String,
        property: String,
    },
    /// An ancestor is an internal class with this method.
    Overrides {
        ancestors: Vec<String>,
        method: String,
    },
    /// No ancestor has both `__serialize` and `__unserialize`.
    NoSerialize {
        class: String,
    },
    /// The method is not static; or the class is a trait.
    StaticCall {
        class: String,
        method: String,
        from: Option<String>,
        is_trait: bool,
    },
}

/// Kind of a class-like declaration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClassKind {
    #[default]
    Class,
    Interface,
    Trait,
    Enum,
}

/// A declared class. Names are in lower case.
#[derive(Debug, Default)]
pub(crate) struct ClassFacts {
    pub(crate) name: String,
    pub(crate) kind: ClassKind,
    pub(crate) parent: Option<String>,
    pub(crate) interfaces: Vec<String>,
    pub(crate) traits: Vec<String>,
    pub(crate) properties: Vec<String>,
    pub(crate) methods: Vec<MethodFacts>,
    /// Whether `#[AllowDynamicProperties]` is there.
    pub(crate) allows_dynamic: bool,
}

/// A declared method.
#[derive(Debug)]
pub(crate) struct MethodFacts {
    pub(crate) name: String,
    pub(crate) is_static: bool,
}

/// Facts of all files.
#[derive(Debug, Default)]
pub(crate) struct Project {
    classes: HashMap<String, Vec<ClassFacts>>,
    functions: HashSet<String>,
    constants: HashSet<String>,
    methods: HashSet<String>,
}

/// Ancestors of a class.
#[derive(Default)]
struct Ancestors<'a> {
    /// The class, its parents, interfaces and traits, that the files declare.
    known: Vec<&'a ClassFacts>,
    /// Ancestors without a declaration in the files.
    unknown: Vec<&'a str>,
}

impl Project {
    pub(crate) fn add(&mut self, facts: &mut FileFacts) {
        for class in facts.classes.drain(..) {
            self.methods.extend(class.methods.iter().map(|method| method.name.clone()));
            self.classes.entry(class.name.clone()).or_default().push(class);
        }
        self.functions.extend(facts.functions.drain(..));
        self.constants.extend(facts.constants.drain(..));
    }

    /// Whether the condition of a finding holds.
    pub(crate) fn holds(&self, candidate: &Candidate) -> bool {
        match &candidate.need {
            Need::Nothing => true,
            Need::NotDeclared(list) => list.iter().all(|(kind, name)| {
                // A polyfill replaces a removed name. A deprecated name precedes its polyfill.
                let is_own = self.declares(*kind, name);
                !is_own || (candidate.finding.kind != Kind::Removed && !name.contains('\\'))
            }),
            Need::NoMethod(method) => !self.methods.contains(method),
            Need::DynamicProperty { class, property } => self.is_dynamic(class, property),
            Need::Overrides { ancestors, method } => self.overrides(ancestors, method),
            Need::NoSerialize { class } => {
                let ancestors = self.ancestors(class);
                let has = |name: &str| {
                    ancestors.known.iter().any(|one| one.methods.iter().any(|m| m.name == name))
                };
                !(has("__serialize") && has("__unserialize"))
            }
            Need::StaticCall { class, method, from, is_trait } => {
                self.static_call(class, method, from.as_deref(), *is_trait)
            }
        }
    }

    fn declares(&self, kind: Target, name: &str) -> bool {
        match kind {
            Target::Function => self.functions.contains(name),
            Target::Constant => self.constants.contains(name),
            Target::Class => self.classes.contains_key(name),
            _ => false,
        }
    }

    fn ancestors<'s>(&'s self, class: &'s str) -> Ancestors<'s> {
        self.all_ancestors(std::iter::once(class))
    }

    fn all_ancestors<'s>(&'s self, first: impl Iterator<Item = &'s str>) -> Ancestors<'s> {
        let mut found = Ancestors::default();
        let mut seen = HashSet::default();
        let mut open: Vec<&str> = first.collect();
        while let Some(name) = open.pop() {
            if !seen.insert(name) || seen.len() > ANCESTORS_MAX {
                continue;
            }
            let Some(declarations) = self.classes.get(name) else {
                found.unknown.push(name);
                continue;
            };
            for class in declarations {
                found.known.push(class);
                open.extend(class.parent.iter().map(String::as_str));
                open.extend(class.interfaces.iter().map(String::as_str));
                open.extend(class.traits.iter().map(String::as_str));
            }
        }
        found
    }

    fn is_dynamic(&self, class: &str, property: &str) -> bool {
        let ancestors = self.ancestors(class);
        let mut is_exception = false;
        for name in &ancestors.unknown {
            if EXCEPTIONS.contains(name) {
                is_exception = true;
            } else if !PLAIN_ANCESTORS.contains(name) {
                // A class of another package may declare the property.
                return false;
            }
        }
        if is_exception && EXCEPTION_PROPERTIES.contains(&property) {
            return false;
        }
        ancestors.known.iter().all(|one| {
            !one.allows_dynamic
                && !one.properties.iter().any(|known| known == property)
                && !one.methods.iter().any(|method| method.name == "__set")
        })
    }

    fn overrides(&self, first: &[String], method: &str) -> bool {
        let ancestors = self.all_ancestors(first.iter().map(String::as_str));
        // The declaration in a class between them is the one to change.
        ancestors.unknown.iter().any(|name| {
            names().overrides(name).iter().any(|(_, methods)| methods.iter().any(|m| m == method))
        })
    }

    fn static_call(&self, class: &str, method: &str, from: Option<&str>, is_trait: bool) -> bool {
        let Some(declarations) = self.classes.get(class) else { return false };
        if is_trait {
            // Within the trait itself and its users the call is that of a class.
            return declarations.iter().all(|one| one.kind == ClassKind::Trait)
                && from.is_none_or(|from| {
                    !self.ancestors(from).known.iter().any(|one| one.name == class)
                });
        }
        if declarations.iter().any(|one| one.kind != ClassKind::Class) {
            return false;
        }
        // A call of a parent's method, or of a child's, has an object.
        if let Some(from) = from {
            let is_related = from.is_empty()
                || self.ancestors(from).known.iter().any(|one| one.name == class)
                || self.ancestors(class).known.iter().any(|one| one.name == from);
            if is_related {
                return false;
            }
        }
        let ancestors = self.ancestors(class);
        if !ancestors.unknown.is_empty() {
            return false;
        }
        let has_magic = ancestors
            .known
            .iter()
            .any(|one| one.methods.iter().any(|method| method.name == "__callstatic"));
        let mut found = ancestors
            .known
            .iter()
            .flat_map(|one| one.methods.iter().filter(|known| known.name == method));
        let mut is_static = false;
        let mut is_known = false;
        found.by_ref().for_each(|known| {
            is_known = true;
            is_static |= known.is_static;
        });
        is_known && !is_static && !has_magic
    }
}
