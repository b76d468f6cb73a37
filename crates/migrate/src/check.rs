//! Checks one file: walks its syntax tree and applies the rules.
//!
//! The walk has its own stack, because code is nested deeper than a thread's stack allows: a chain
//! of ten thousand concatenations is a tree of that depth.

mod calls;
mod checker;
mod classes;
mod expressions;
mod guards;
mod literal;
mod namespace;
mod outline;
mod scope;
mod statements;
mod strings;
mod walk;

use crate::parser;
use crate::project::FileFacts;
use crate::source::Source;
use crate::version::Range;
use bumpalo::Bump;
use checker::Checker;
pub use outline::{Declared, Obstacle, ObstacleKind, Outline};

/// Returns the declarations of a file, and the first code outside of them.
#[must_use]
pub fn outline(text: &[u8]) -> Outline {
    let arena = Bump::new();
    let source = Source::new(text);
    Outline::of(&source, parser::parse(&arena, text).program)
}

/// Checks a file's text.
pub(crate) fn check(text: &[u8], range: Range) -> FileFacts {
    let arena = Bump::new();
    let source = Source::new(text);
    let parsed = parser::parse(&arena, text);
    let mut checker = Checker::new(&source, range, parsed.program);
    for (open, close) in &parsed.curly_offsets {
        checker.curly_offset(*open, *close);
    }
    for at in &parsed.references {
        checker.call_time_reference(*at);
    }
    checker.parse_errors();
    checker.walk();
    checker.facts
}
