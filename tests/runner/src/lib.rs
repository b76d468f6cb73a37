//! Runs the tests that cargo has built: each in its own process, as many at once as the machine can
//! run.
//!
//! - `programs` reads the list of programs that cargo has built.
//! - `groups` reads which tests must run without other tests.
//! - `schedule` decides which test starts next (a pure function).
//! - `process` runs one test.
//! - `run` starts the tests in the order of the schedule.
//! - `results` writes the results.
//! - `stress` repeats one test under load.
//!
//! Independent of Samovar, except for the marker that identifies the processes of one test
//! (`samovar_testkit::family`).

pub mod groups;
pub mod process;
pub mod programs;
pub mod results;
pub mod run;
pub mod schedule;
pub mod stress;
