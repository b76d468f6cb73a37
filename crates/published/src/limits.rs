//! Limits of published values that the sender and the server check.

/// Maximum length of a value's name, bytes.
pub const NAME_BYTES_MAX: usize = 256;
