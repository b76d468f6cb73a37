//! A pattern for names of functions: a part of the name, or `*` for any text.

use crate::stack::{Function, Stack};

/// A pattern. Names of functions ignore case in PHP, and so does the pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    /// Parts between the stars, in lower case.
    parts: Vec<String>,
    /// Whether the whole name must match: there is a star.
    is_whole: bool,
}

impl Pattern {
    /// Reads a pattern. Without a star, it matches names that contain it.
    pub fn new(text: &str) -> Pattern {
        let parts = text.to_ascii_lowercase().split('*').map(str::to_owned).collect();
        Pattern { text: text.to_owned(), parts, is_whole: text.contains('*') }
    }

    /// The pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a function's name with its class matches: `App\Shop::basket`, `strlen`.
    pub fn matches(&self, function: &Function) -> bool {
        let name = function.full_name().to_ascii_lowercase();
        let (Some((first, rest)), Some(last)) = (self.parts.split_first(), self.parts.last())
        else {
            return true;
        };
        if !self.is_whole {
            return name.contains(first);
        }
        let Some(mut left) = name.strip_prefix(first.as_str()) else { return false };
        for part in &rest[..rest.len() - 1] {
            let Some(at) = left.find(part.as_str()) else { return false };
            left = &left[at + part.len()..];
        }
        left.ends_with(last.as_str())
    }

    /// Whether one of a stack's calls matches.
    pub fn is_in(&self, stack: &Stack) -> bool {
        stack.frames.iter().any(|frame| self.matches(&frame.function))
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;
    use crate::stack::Function;

    #[test]
    fn patterns_match_parts_and_whole_names() {
        let function = Function {
            class: "App\\Shop".to_owned(),
            name: "addToBasket".to_owned(),
            ..Function::default()
        };
        for (pattern, expected) in [
            ("basket", true),
            ("Shop::add", true),
            ("", true),
            ("*", true),
            ("**", true),
            ("App\\*::*Basket", true),
            ("app\\shop::*", true),
            ("*basket", true),
            ("basket*", false),
            ("App\\*Basket*Basket", false),
            ("App\\Shop::addToBasket*Basket", false),
            ("curl", false),
            ("*::", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(&function), expected, "{pattern}");
        }
    }
}
