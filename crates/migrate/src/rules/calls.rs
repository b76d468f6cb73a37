//! Conditions on the arguments of a call, from a `call` line of a rule.
//!
//! `call fgetcsv args<5 no:escape`: fewer than five arguments, and none is named `escape`.
//! `call define arg3:true`: the third argument is the literal `true`.

/// A condition. All conditions of a line must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Fewer arguments than this.
    Fewer(usize),
    /// More arguments than this.
    More(usize),
    /// Exactly this number of arguments.
    Exactly(usize),
    /// No argument has this name.
    NotNamed(&'static str),
    /// An argument has this name.
    Named(&'static str),
    /// The argument at this position, from 1, is of this form.
    Argument(usize, Value),
}

/// Form of an argument in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    True,
    False,
    Text,
    Integer,
    Array,
    /// `$this` or `new …`.
    Object,
    /// A literal with this text.
    Is(&'static str),
    /// A literal that contains this text, also in a part of it.
    Contains(&'static str),
    /// A constant of this name, also within an expression.
    Constant(&'static str),
    /// `$GLOBALS`.
    Globals,
}

/// Splits the line after `call`: the name, and the conditions.
pub(crate) fn parse(line: &'static str) -> (&'static str, Vec<Condition>) {
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let mut name = words.next().expect("a call has a name");
    if name == "new" {
        let class = words.next().expect("`new` has a class");
        let start = line.find(class).expect("it is a part of the line");
        name = &line[..start + class.len()];
    }
    (name, words.map(condition).collect())
}

fn condition(word: &'static str) -> Condition {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    if let Some(rest) = word.strip_prefix("args<") {
        return Condition::Fewer(number(rest));
    }
    if let Some(rest) = word.strip_prefix("args>") {
        return Condition::More(number(rest));
    }
    if let Some(rest) = word.strip_prefix("args=") {
        return Condition::Exactly(number(rest));
    }
    if let Some(rest) = word.strip_prefix("no:") {
        return Condition::NotNamed(rest);
    }
    if let Some(rest) = word.strip_prefix("named:") {
        return Condition::Named(rest);
    }
    let rest = word.strip_prefix("arg").expect("a condition on an argument");
    let (at, value) = rest.split_once(':').expect("position and form");
    let value = match value {
        "null" => Value::Null,
        "true" => Value::True,
        "false" => Value::False,
        "string" => Value::Text,
        "int" => Value::Integer,
        "array" => Value::Array,
        "object" => Value::Object,
        "globals" => Value::Globals,
        other if other.starts_with('~') => Value::Contains(&other[1..]),
        other if other.starts_with('\'') => Value::Is(other.trim_matches('\'')),
        other => Value::Constant(other),
    };
    Condition::Argument(number(at), value)
}
