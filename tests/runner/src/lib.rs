//! Runs the tests that cargo has built: each in a process of its own, as many at once as the machine carries.
//!
//! `programs` reads what cargo has built, `groups` which tests need the machine for themselves, `schedule` decides
//! which test starts next (a pure function), `process` runs one, `run` starts them by that order, `results` writes
//! what came out, `stress` repeats one test under load. Knows nothing of Samovar but the marker that names the
//! processes of one test (`samovar_testkit::family`).

pub mod groups;
pub mod process;
pub mod programs;
pub mod results;
pub mod run;
pub mod schedule;
pub mod stress;
