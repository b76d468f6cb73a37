//! Reasons why a line is not a valid request. The parsers of the requests return them.

/// Reason why a line is not a valid [`Request`](crate::Request).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misunderstood {
    /// The first word is not a command, or a command without options is followed by more words.
    Command,
    /// The options of `reload` are invalid.
    ReloadOptions,
    /// The options of `profile` are invalid.
    Profile,
    /// The options of `calls` are invalid.
    Calls,
    /// The options of `includes` are invalid.
    Includes,
    /// The options of `queue` are invalid.
    Queue,
    /// The options of `schedule` are invalid.
    Schedule,
    /// The options of `canary` are invalid.
    Canary,
    /// The options of `record` are invalid.
    Record,
    /// The options of `replay` are invalid.
    Replay,
    /// The options of `upgrade` are invalid.
    Upgrade,
}
