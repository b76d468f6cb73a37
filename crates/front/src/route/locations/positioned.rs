//! A setting of a table, with its position in the file.

/// A setting and the first line of its table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<T> {
    pub(crate) line: usize,
    pub(crate) what: T,
}
