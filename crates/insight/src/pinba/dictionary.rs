//! Dictionary of a packet: each word once.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Dictionary<'a> {
    places: HashMap<&'a str, u32>,
    words: Vec<String>,
}

impl<'a> Dictionary<'a> {
    /// Returns the index of a word.
    pub(super) fn place(&mut self, word: &'a str) -> u32 {
        *self.places.entry(word).or_insert_with(|| {
            self.words.push(word.to_owned());
            (self.words.len() - 1) as u32
        })
    }

    pub(super) fn words(self) -> Vec<String> {
        self.words
    }
}
