//! Parses a crate's licence, an SPDX expression, and checks whether deny.toml allows it.

use std::collections::BTreeSet;

/// `allow = ["…", …]` of deny.toml.
pub(crate) fn allowed(deny: &str) -> BTreeSet<&str> {
    let (_, rest) = deny.split_once("allow = [").expect("the list of licences");
    let (inside, _) = rest.split_once(']').expect("its end");
    inside.split('"').skip(1).step_by(2).collect()
}

/// Whether the expression lets us choose licences that are all on the list. An empty expression is
/// not allowed.
pub(crate) fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allowed };
    reader.either() && reader.words.is_empty()
}

struct Reader<'a> {
    words: &'a [&'a str],
    allowed: &'a BTreeSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn either(&mut self) -> bool {
        let mut is_fine = self.both();
        while self.takes("OR") {
            is_fine |= self.both();
        }
        is_fine
    }

    fn both(&mut self) -> bool {
        let mut is_fine = self.one();
        while self.takes("AND") {
            is_fine &= self.one();
        }
        is_fine
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let is_fine = self.either();
            return self.takes(")") && is_fine;
        }
        let name = self.next();
        if self.takes("WITH") {
            let whole = format!("{name} WITH {}", self.next());
            return self.allowed.contains(whole.as_str());
        }
        self.allowed.contains(name)
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.next();
        }
        is_next
    }

    fn next(&mut self) -> &'a str {
        let (first, rest) = self.words.split_first().unwrap_or((&"", &[]));
        self.words = rest;
        first
    }
}

#[test]
fn spdx_expressions_are_evaluated() {
    let list = allowed("[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Unicode-3.0\"]\n");
    for fine in [
        "MIT",
        "MIT/Apache-2.0",
        "Unlicense OR MIT",
        "(MIT OR GPL-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    ] {
        assert!(is_allowed(fine, &list), "{fine}");
    }
    for wrong in
        ["", "GPL-3.0", "MIT AND GPL-2.0", "Apache-2.0 WITH LLVM-exception", "(MIT", "MIT MIT"]
    {
        assert!(!is_allowed(wrong, &list), "{wrong}");
    }
}
