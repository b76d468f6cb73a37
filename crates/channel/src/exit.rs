//! The one exit status that means something. A file of its own: the worker's build script reads it for C.

/// Exit status of a worker that has noted in the ring why it leaves, and is to be replaced at once.
pub const EXIT_REPLACE: i32 = 83;
