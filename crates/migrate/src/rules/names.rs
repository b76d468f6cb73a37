//! Finds the rules of a name.

use super::calls::{self, Condition};
use super::rule::Rule;
use foldhash::{HashMap, HashSet};

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Function,
    Constant,
    Class,
    /// `class::method`, or `*::method` for any class.
    Method,
    /// `class::CONSTANT`.
    ClassConstant,
    /// `class::property`.
    Property,
    Variable,
    Ini,
    Extension,
    DeclaresFunction,
    DeclaresClass,
    /// Function that returns an object since the version, and a resource before.
    ReturnsObject,
    /// Function with arguments that must not be null: `name:1:3`.
    Nulls,
}

/// A rule for a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) rule: &'static Rule,
    /// Replacement of this name.
    pub(crate) replacement: Option<&'static str>,
}

type Calls = Vec<(Entry, Vec<Condition>)>;

#[derive(Debug, Default)]
pub(crate) struct Names {
    exact: HashMap<(Target, String), Vec<Entry>>,
    /// Names that end with `*`, without it.
    prefixes: Vec<(Target, String, Entry)>,
    calls: HashMap<String, Calls>,
    /// Methods of internal classes with a return type since 8.1, by class.
    overrides: HashMap<String, Vec<(Entry, Vec<String>)>>,
    /// All methods in `overrides`.
    overridden: HashSet<String>,
    /// Positions of arguments that must not be null, by function.
    nulls: HashMap<String, (Entry, Vec<usize>)>,
    /// All rules by id.
    codes: HashMap<&'static str, &'static Rule>,
}

/// Returns the name as PHP compares it.
pub(crate) fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

impl Names {
    pub(crate) fn new(rules: &'static [Rule]) -> Self {
        let mut names = Self::default();
        for rule in rules {
            names.codes.insert(rule.id, rule);
            for (kind, text) in &rule.targets {
                names.add(rule, kind, text);
            }
        }
        names
    }

    fn add(&mut self, rule: &'static Rule, kind: &str, text: &'static str) {
        let plain = Entry { rule, replacement: None };
        let target = match kind {
            "function" => Target::Function,
            "constant" => Target::Constant,
            "class" => Target::Class,
            "method" => Target::Method,
            "classconst" => Target::ClassConstant,
            "property" => Target::Property,
            "variable" => Target::Variable,
            "ini" => Target::Ini,
            "extension" => Target::Extension,
            "declares-function" => Target::DeclaresFunction,
            "declares-class" => Target::DeclaresClass,
            "returns-object" => Target::ReturnsObject,
            "nulls" => Target::Nulls,
            "call" => {
                let (name, conditions) = calls::parse(text);
                let key = name.to_ascii_lowercase();
                self.calls.entry(key).or_default().push((plain, conditions));
                return;
            }
            "overrides" => {
                let mut words = text.split(' ').map(str::to_ascii_lowercase);
                let class = words.next().expect("a class");
                let methods: Vec<String> = words.collect();
                self.overridden.extend(methods.iter().cloned());
                self.overrides.entry(class).or_default().push((plain, methods));
                return;
            }
            "code" => return,
            other => panic!("{}: `{other}` is no line of a rule", rule.id),
        };
        for word in text.split(' ').filter(|word| !word.is_empty()) {
            if target == Target::Nulls {
                let mut parts = word.split(':');
                let name = parts.next().expect("a name").to_owned();
                let positions = parts.map(|part| part.parse().expect("a position")).collect();
                self.nulls.insert(name, (plain, positions));
                continue;
            }
            let (name, replacement) = match word.split_once('=') {
                Some((name, replacement)) => (name, Some(replacement)),
                None => (word, None),
            };
            let key = key(target, name);
            let entry = Entry { rule, replacement };
            match key.strip_suffix('*') {
                Some(prefix) => self.prefixes.push((target, prefix.to_owned(), entry)),
                None => self.exact.entry((target, key)).or_default().push(entry),
            }
        }
    }

    /// Returns the rules of a name. Names of functions, methods and classes are in lower case.
    pub(crate) fn find(&self, target: Target, name: &str) -> Vec<Entry> {
        let mut found = Vec::new();
        if let Some(entries) = self.exact.get(&(target, name.to_owned())) {
            found.extend_from_slice(entries);
        }
        let starts = |(kind, prefix, _): &&(Target, String, Entry)| {
            *kind == target && name.starts_with(prefix.as_str())
        };
        if found.is_empty() {
            found.extend(self.prefixes.iter().filter(starts).map(|(_, _, entry)| *entry));
        }
        found
    }

    /// Returns the rules with conditions on a call of `function`, `class::method` or `new class`.
    pub(crate) fn calls(&self, name: &str) -> &[(Entry, Vec<Condition>)] {
        self.calls.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the rules for methods that override those of an internal class.
    pub(crate) fn overrides(&self, class: &str) -> &[(Entry, Vec<String>)] {
        self.overrides.get(class).map_or(&[], Vec::as_slice)
    }

    /// Whether any internal class has a method of this name with a return type since 8.1.
    pub(crate) fn is_overridden(&self, method: &str) -> bool {
        self.overridden.contains(method)
    }

    /// Returns the positions, from 1, at which a function does not take null.
    pub(crate) fn nulls(&self, function: &str) -> Option<&(Entry, Vec<usize>)> {
        self.nulls.get(function)
    }

    /// Panics if the rule is not in the table.
    pub(crate) fn code(&self, id: &str) -> &'static Rule {
        self.codes.get(id).unwrap_or_else(|| panic!("no rule `{id}`"))
    }
}

/// Key of a name: in lower case, except for constants, properties and variables.
fn key(target: Target, name: &str) -> String {
    match target {
        Target::Constant | Target::Variable => name.to_owned(),
        Target::ClassConstant | Target::Property => match name.split_once("::") {
            Some((class, member)) => format!("{}::{member}", class.to_ascii_lowercase()),
            None => name.to_owned(),
        },
        _ => name.to_ascii_lowercase(),
    }
}
