//! Names in a namespace: `use` and the fall-back to global functions and constants.

use crate::rules::lower;
use foldhash::HashMap;
use mago_syntax::ast::{Identifier, Namespace, Use, UseItem, UseItems, UseType};

/// Namespace of the current place.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// In lower case; empty: the global one.
    name: String,
    classes: HashMap<String, String>,
    functions: HashMap<String, String>,
    constants: HashMap<String, String>,
}

/// Meaning of the name of a function or constant.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// Name in the global namespace; `None`: the name is in another one.
    pub(crate) global: Option<String>,
    /// Name in the current namespace, which precedes the global one.
    pub(crate) local: Option<String>,
}

impl Names {
    pub(crate) fn enter(&mut self, namespace: &Namespace<'_>) {
        *self = Self::default();
        self.name = namespace.name.as_ref().map(|name| lower(name.value())).unwrap_or_default();
    }

    pub(crate) fn is_global(&self) -> bool {
        self.name.is_empty()
    }

    /// Returns the full name of a declaration, in lower case.
    pub(crate) fn declared(&self, name: &str) -> String {
        if self.name.is_empty() { name.to_owned() } else { format!("{}\\{name}", self.name) }
    }

    pub(crate) fn import(&mut self, import: &Use<'_>) {
        match &import.items {
            UseItems::Sequence(list) => {
                list.items.iter().for_each(|item| self.add(None, b"", item));
            }
            UseItems::TypedSequence(list) => {
                list.items.iter().for_each(|item| self.add(Some(&list.r#type), b"", item));
            }
            UseItems::TypedList(list) => {
                let prefix = list.namespace.value();
                list.items.iter().for_each(|item| self.add(Some(&list.r#type), prefix, item));
            }
            UseItems::MixedList(list) => {
                let prefix = list.namespace.value();
                for item in &list.items {
                    self.add(item.r#type.as_ref(), prefix, &item.item);
                }
            }
        }
    }

    fn add(&mut self, kind: Option<&UseType<'_>>, prefix: &[u8], item: &UseItem<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches('\\').to_owned();
        let mut full = text(item.name.value());
        if !prefix.is_empty() {
            full = format!("{}\\{full}", text(prefix));
        }
        let alias = match &item.alias {
            Some(alias) => text(alias.identifier.value),
            None => full.rsplit('\\').next().unwrap_or_default().to_owned(),
        };
        match kind {
            None => self.classes.insert(alias.to_ascii_lowercase(), full.to_ascii_lowercase()),
            Some(UseType::Function(_)) => {
                self.functions.insert(alias.to_ascii_lowercase(), full.to_ascii_lowercase())
            }
            Some(UseType::Const(_)) => self.constants.insert(alias, full),
        };
    }

    /// Returns the full name of a class, in lower case.
    pub(crate) fn class(&self, name: &Identifier<'_>) -> String {
        let text = lower(name.value());
        if let Identifier::FullyQualified(_) = name {
            return text.trim_start_matches('\\').to_owned();
        }
        if let Some(rest) = text.strip_prefix("namespace\\") {
            return self.declared(rest);
        }
        let (first, rest) = text.split_once('\\').unwrap_or((&text, ""));
        match self.classes.get(first) {
            Some(full) if rest.is_empty() => full.clone(),
            Some(full) => format!("{full}\\{rest}"),
            None => self.declared(&text),
        }
    }

    pub(crate) fn function(&self, name: &Identifier<'_>) -> Resolved {
        self.resolve(name, lower(name.value()), &self.functions)
    }

    pub(crate) fn constant(&self, name: &Identifier<'_>) -> Resolved {
        let text = String::from_utf8_lossy(name.value()).into_owned();
        self.resolve(name, text, &self.constants)
    }

    fn resolve(
        &self,
        name: &Identifier<'_>,
        text: String,
        imports: &HashMap<String, String>,
    ) -> Resolved {
        match name {
            Identifier::FullyQualified(_) => {
                let rest = text.trim_start_matches('\\').to_owned();
                let global = (!rest.contains('\\')).then_some(rest);
                Resolved { global, local: None }
            }
            Identifier::Qualified(_) => Resolved { global: None, local: None },
            Identifier::Local(_) => {
                if let Some(full) = imports.get(&text) {
                    let global = (!full.contains('\\')).then(|| full.clone());
                    Resolved { global, local: None }
                } else {
                    let local = (!self.name.is_empty()).then(|| self.declared(&text));
                    Resolved { global: Some(text), local }
                }
            }
        }
    }
}
