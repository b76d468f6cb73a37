//! One server hands over to the next: `words` are what they say, `predecessor` is the next one's side, `claim` is which of the two goes on.

pub(crate) mod claim;
pub(crate) mod predecessor;
pub(crate) mod words;
