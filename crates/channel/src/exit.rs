//! The only exit status with a meaning. In a file of its own, because the worker's build script
//! reads it for C.

/// Exit status of a worker that has noted its reason in the ring and must be replaced at once.
pub const EXIT_REPLACE: i32 = 83;
