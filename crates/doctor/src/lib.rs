//! doctor: checks of a server or of an application. Facts in, findings out; no I/O.
//!
//! | file | content |
//! |---|---|
//! | `facts.rs` | the facts, and their absence |
//! | `finding.rs` | a finding: severity, evidence, hint |
//! | `check.rs` | a check, and its result |
//! | `checks/` | the checks, one file per group |
//! | `examination.rs` | all checks on some facts |
//! | `directive.rs` | values of php.ini |
//! | `text.rs` | output for a terminal |
//! | `page.rs` | the table of all checks in the guide |
//!
//! A check never reports that all is well if a fact is missing: its result is then "not checked".
//! A figure is always measured, never estimated from experience.

mod check;
mod checks;
mod directive;
mod examination;
mod facts;
mod finding;
mod page;
mod text;

pub use check::{Check, Group};
pub use checks::all;
pub use examination::{Examination, NotChecked, examine};
pub use facts::{ApplicationFacts, BootFacts, ComposerFacts, Facts};
pub use finding::{Finding, Severity, TRIALS};
pub use page::table;
pub use text::{Shown, explanations, text};
