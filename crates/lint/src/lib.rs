//! `samovar lint`: compiles files under each installed PHP, and runs none.
//!
//! - `source`: the files to compile, from paths, from standard input, or from `git`
//! - `git`: files that changed, files as they are in the next commit, and the hook of a repository
//! - `compiler`: the process of one PHP, which compiles file after file
//! - `run`: all files under all versions, on all processors
//! - `report`: the result for people, for programs and for GitHub Actions

mod compiler;
mod git;
mod report;
mod run;
mod source;

pub use git::{Hook, changed_files, install_hook, remove_hook, staged_files};
pub use report::{Format, render};
pub use run::{Linter, Message, Results};
pub use source::{FILES_MAX, Origin, Source, find_files, from_text};

/// Whether a file has the name, or else the first line, of a PHP file.
pub fn is_php(path: &std::path::Path) -> bool {
    samovar_migrate::is_php(path, None)
}
