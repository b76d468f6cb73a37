//! `cargo +nightly fuzz run scribble` in crates/ring.
#![no_main]

#[path = "../../tests/hostile/scribble.rs"]
mod scribble;

libfuzzer_sys::fuzz_target!(|program: &[u8]| scribble::run(program));
