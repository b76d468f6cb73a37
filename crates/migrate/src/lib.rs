//! Static check of PHP code before an upgrade of PHP: which lines meet a removed, deprecated or
//! changed feature of the new version. And the conversion of other servers' configuration.
//!
//! - `version`: PHP versions and ranges of them
//! - `rules`: the table of changes, from the files in `rules/`; `names` finds the rules of a name
//! - `finding`: one place that a rule applies to, with its edit
//! - `source`: a file's text, its lines; `parser` makes the syntax tree, also of removed syntax
//! - `check`: one file → findings, and facts about its classes; `ini`: the same for ini files
//! - `project`: facts of all files → findings that need more than one file
//! - `files`, `scan`: all files of a folder, on all cores
//! - `baseline`, `fix`, `report`: uses of the findings
//! - `from`: the configuration of another server → settings of Samovar

mod baseline;
mod check;
mod files;
mod finding;
mod fix;
pub mod from;
mod ini;
mod parser;
mod project;
mod report;
mod rules;
mod scan;
mod source;
mod version;

pub use baseline::{Baseline, BaselineError};
pub use check::{Declared, Obstacle, ObstacleKind, Outline, outline};
pub use files::{Found, is_php, php_files};
pub use finding::{Edit, Finding, Kind, Severity};
pub use fix::{Fixed, fix};
pub use report::{Annotation, Format, annotation, render};
pub use rules::{Rule, rules};
pub use scan::{Checked, Options, Skipped, check_text, scan};
pub use version::{KNOWN, Range, Version, composer_minimum};
