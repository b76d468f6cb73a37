//! Declarations around the current place: functions, classes, loops, and the classes of
//! variables as far as the source shows them.

use foldhash::{HashMap, HashSet};

/// Value of a variable as the source shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An object of this class; the name is in lower case.
    Class(String),
    /// The result of this internal function.
    Call(String),
    /// Something else, or different things.
    Other,
}

/// A loop or `switch` around the current place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    Plain,
    Switch,
    /// `foreach` over a variable, with or without a reference.
    Foreach {
        variable: String,
        is_by_reference: bool,
    },
}

/// Body of a function, or the code outside of functions.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) variables: HashMap<String, Origin>,
    pub(crate) loops: Vec<Loop>,
    /// Whether it can be bound to another class.
    pub(crate) is_closure: bool,
    /// Whether `$this` is the object of the class around it.
    pub(crate) has_this: bool,
}

/// A class-like declaration.
#[derive(Debug)]
pub(crate) struct Class {
    /// Full name in lower case; empty: anonymous.
    pub(crate) name: String,
    pub(crate) parent: Option<String>,
    pub(crate) is_trait: bool,
    pub(crate) properties: HashSet<String>,
    pub(crate) property_types: HashMap<String, Origin>,
}

impl Function {
    /// Notes a value of a variable. Different values make its origin unknown.
    pub(crate) fn assign(&mut self, variable: String, origin: Origin) {
        merge(&mut self.variables, variable, origin);
    }
}

impl Class {
    /// Notes a value of a property.
    pub(crate) fn assign(&mut self, property: String, origin: Origin) {
        merge(&mut self.property_types, property, origin);
    }
}

fn merge(origins: &mut HashMap<String, Origin>, name: String, origin: Origin) {
    match origins.get_mut(&name) {
        Some(known) if *known == origin => {}
        Some(known) => *known = Origin::Other,
        None => {
            origins.insert(name, origin);
        }
    }
}
