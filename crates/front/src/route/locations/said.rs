//! What a table says, with the place where it is said.

/// Something that a table says, and the line that it begins in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<T> {
    pub(crate) line: usize,
    pub(crate) what: T,
}
