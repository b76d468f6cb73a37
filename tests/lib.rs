//! Whole-server tests live in `tests/`.
