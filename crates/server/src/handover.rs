//! Handover from one server to the next: `messages` are the messages, `predecessor` is the new
//! server's side, `claim` decides which of the two serves.

pub(crate) mod claim;
pub(crate) mod messages;
pub(crate) mod predecessor;
