//! One server hands over to the next: `words` are what they say, `predecessor` is the next one's side.

pub(crate) mod predecessor;
pub(crate) mod words;
