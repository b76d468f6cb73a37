//! Finds all words in a text in one pass: an automaton of Aho and Corasick.

/// Words and parts of words. Upper case counts as lower case, and a hyphen, a dot, a space and a
/// plus sign as an underscore: PHP replaces some of them in names.
pub(super) struct WordSearch {
    /// Next state, by state and by class of the next byte.
    next: Vec<u32>,
    /// Class of each byte; 0: in no word.
    classes: [u16; 256],
    class_count: usize,
    /// By state, the match that ends there.
    matches: Vec<Match>,
}

#[derive(Clone, Copy, Default)]
struct Match {
    is_word: bool,
    /// Length of a part that ends here; zero: none. No part is the end of another one.
    part: usize,
}

fn plain(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' | b' ' | b'+' => b'_',
        byte => byte.to_ascii_lowercase(),
    }
}

impl WordSearch {
    /// `words` match anywhere, `parts` only between characters that are no letters or digits.
    pub(super) fn new<'a>(words: impl Iterator<Item = &'a str>, parts: &[&str]) -> WordSearch {
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let mut classes = [0; 256];
        let mut class_count = 1;
        for byte in words.iter().chain(parts).flat_map(|word| word.bytes()).map(plain) {
            if classes[usize::from(byte)] == 0 {
                classes[usize::from(byte)] = class_count;
                class_count += 1;
            }
        }
        for byte in 0..=u8::MAX {
            classes[usize::from(byte)] = classes[usize::from(plain(byte))];
        }
        let class_count = usize::from(class_count);
        let (next, matches) = (vec![0; class_count], vec![Match::default()]);
        let mut search = WordSearch { next, classes, class_count, matches };
        for word in words {
            let state = search.add(word);
            search.matches[state].is_word = true;
        }
        for part in parts {
            let state = search.add(part);
            search.matches[state].part = part.len();
        }
        search.link();
        search
    }

    /// Adds the states of a word. Returns the last one.
    fn add(&mut self, word: &str) -> usize {
        word.bytes().fold(0, |state, byte| {
            let cell = state * self.class_count + usize::from(self.classes[usize::from(byte)]);
            if self.next[cell] == 0 {
                // The number of states is that of the bytes of all words.
                self.next[cell] = u32::try_from(self.matches.len()).unwrap_or(0);
                self.matches.push(Match::default());
                self.next.resize(self.next.len() + self.class_count, 0);
            }
            self.next[cell] as usize
        })
    }

    /// Fills missing transitions from the longest other start of a word.
    fn link(&mut self) {
        let count = self.class_count;
        let mut fallback = vec![0; self.matches.len()];
        let mut states: Vec<usize> = vec![0];
        let mut at = 0;
        while let Some(&state) = states.get(at) {
            at += 1;
            for class in 0..count {
                let other = self.next[fallback[state] * count + class] as usize;
                let child = self.next[state * count + class] as usize;
                if child == 0 {
                    self.next[state * count + class] = u32::try_from(other).unwrap_or(0);
                    continue;
                }
                // At the root, `other` is the child itself.
                let other = if state == 0 { 0 } else { other };
                fallback[child] = other;
                let of_other = self.matches[other];
                let own = &mut self.matches[child];
                own.is_word |= of_other.is_word;
                own.part = own.part.max(of_other.part);
                states.push(child);
            }
        }
    }

    /// Returns the ends of all words and parts in the text, in ascending order.
    pub(super) fn ends<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let mut state = 0;
        let is_letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        text.iter().enumerate().filter_map(move |(at, byte)| {
            let class = usize::from(self.classes[usize::from(*byte)]);
            state = self.next[state * self.class_count + class] as usize;
            let Match { is_word, part } = self.matches[state];
            let end = at + 1;
            let is_alone = || {
                let before = end.checked_sub(part + 1);
                part > 0 && !is_letter(end) && !before.is_some_and(is_letter)
            };
            (is_word || is_alone()).then_some(end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_anywhere_and_parts_between_other_characters() {
        let search =
            WordSearch::new(["api_key", "sessid", "abcd", "X-Own"].into_iter(), &["sid", "bc"]);
        for (text, ends) in [
            ("api_key", &[7][..]),
            ("API-Key", &[7]),
            ("api key, api+key", &[7, 16]),
            ("xsessidx", &[7]),
            ("sessid", &[6]),
            ("sid", &[3]),
            ("asid", &[]),
            ("side", &[]),
            ("a[sid]", &[5]),
            ("abc", &[]),
            ("a bc", &[4]),
            ("ababcd", &[6]),
            ("abcabcd bc", &[7, 10]),
            ("x_own=", &[5]),
            ("x-OWN", &[5]),
            ("", &[]),
            ("\u{e9}sid\u{e9}", &[5]),
        ] {
            let found: Vec<usize> = search.ends(text.as_bytes()).collect();
            assert_eq!(found, ends, "{text}");
        }
        let nothing = WordSearch::new([""].into_iter(), &[]);
        assert_eq!(nothing.ends(b"anything").count(), 0);
    }
}
