//! Runs of a project's test suite: PHP, the test framework and the application are booted once, and
//! the framework's own command runs in a fork of that process for each unit of tests.
//!
//! The framework is used through its command line only: its list of tests, the file and the filter
//! to run, and its log in `JUnit`'s format. So one implementation serves `PHPUnit` 9 to 12, and
//! Pest.
//!
//! The modules, lower ones first (`tests/rooms.rs`):
//! - `case`: the result of one test
//! - `junit`: results as `JUnit`'s XML
//! - `quarantine`: tests whose failures are known
//! - `framework`: the framework's command line
//! - `scratch`: files of a run
//! - `options`: the options of a run
//! - `filter`: names of tests as regular expressions
//! - `unit`: the tests of one fork
//! - `suite`: all tests, and their division into units
//! - `ending`: ends of processes without results
//! - `order`: files for the driver
//! - `image`: the process that is forked
//! - `results`: the results of a run
//! - `run`: units in parallel, time limits, crashes, reruns
//! - `report`, `difference`: texts for people

mod case;
mod difference;
mod ending;
mod filter;
mod framework;
mod image;
mod junit;
mod options;
mod order;
mod quarantine;
mod report;
mod results;
mod run;
mod scratch;
mod suite;
mod unit;

pub use case::{Case, Note, Verdict};
pub use difference::differences;
pub use framework::{Coverage, Framework, default_command};
pub use junit::write as junit;
pub use options::{By, Options};
pub use quarantine::Quarantine;
pub use report::{Progress, summary};
pub use results::{Results, Step};
pub use run::run;
