//! Sums of many stacks, and the formats in which they are written.

pub mod boxes;
pub mod callgrind;
pub mod collapsed;
pub mod difference;
mod measure;
pub mod packed;
pub mod pprof;
pub mod speedscope;
mod stacks;
pub mod svg;
pub mod tree;

pub use stacks::{
    Call, DEPTH_MAX, FUNCTIONS_MAX, NO_CODE, Part, Profile, RESET, ROLLBACK, STACKS_MAX, Share,
    Weight,
};
