//! Sizes of the memory's fixed parts: the process registry and the directory of objects. Their
//! positions are in `memory`, their contents in `process_registry` and `directory`.

/// Maximum number of objects of all kinds together.
pub const OBJECTS_MAX: usize = 1024;
/// Words of an entry of the directory.
pub(crate) const ENTRY_WORDS: usize = 512;
/// Maximum number of processes of all generations at once: workers, console workers, templates, and
/// processes that scripts fork.
pub(crate) const SEATS: usize = 1024;
/// Words of a seat.
pub(crate) const SEAT_WORDS: usize = 8;
