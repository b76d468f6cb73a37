//! The command `samovar`: selects the subcommand; each one has its own file.
//!
//! Modules by layer; a layer uses only the ones before it (`tests/rooms.rs`):
//!
//! - errors of the command line (`usage_error`), arguments of several commands (`arguments`,
//!   `php_flags`), the declaration of a command (`subcommand`)
//! - the commands' end of the control socket (`control_client`)
//! - the `commands` that query a server; `top`, `spy`, `profile`, `calls`, `boot`, `includes`,
//!   `replay`
//! - `trial`: servers that `compare`, `leaks` and `preload` start for themselves
//! - `doctor`: checks of a server or of an application
//! - `plan`: capacity planning
//! - `experiment`: the effect of a changed setting (`samovar try`)
//! - `init`: settings for a project
//! - `dev`: the server for a project that is being developed
//! - `test_suite`: runs of a project's tests
//! - `lint`: the compilation of PHP files under each installed PHP
//! - `migrate`: the check of PHP code before an upgrade of PHP
//! - `explain`: meanings of errors, from the documentation
//! - `document`: completion scripts and manual pages
//! - `args`: the command line
//!
//! The server itself is in crates/server.

mod args;
mod arguments;
mod boot;
mod calls;
mod commands;
mod compare;
mod compression;
mod control_client;
mod deploy;
mod dev;
mod doctor;
mod document;
mod experiment;
mod explain;
mod includes;
mod init;
mod known_names;
mod leaks;
mod lint;
mod migrate;
mod php_flags;
mod plan;
mod preload;
mod profile;
mod replay;
mod spy;
mod subcommand;
mod test_suite;
mod top;
mod trial;
mod usage_error;

use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use samovar_supervisor::secrets::{self, SecretNames};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Must run before this process opens any descriptor. A new descriptor could get the number of
    // an inherited one that is missing.
    let predecessor = match Predecessor::of_environment() {
        Ok(predecessor) => predecessor,
        Err(error) => {
            terminal::complain(&format!(
                "samovar: cannot take over from the previous server: {error}"
            ));
            return ExitCode::FAILURE;
        }
    };
    let command = match args::parse() {
        Ok(command) => command,
        Err(refused) => {
            if let Some(predecessor) = predecessor {
                predecessor.failed(&refused.to_string());
            }
            return refused.report();
        }
    };
    let (variables, flags) = Sources::secret_names();
    if let Err(error) = secrets::conceal(&SecretNames { variables, flags }) {
        terminal::complain(&format!(
            "samovar: cannot remove secrets from the environment: {error}"
        ));
        return ExitCode::FAILURE;
    }
    match command.run(predecessor.as_ref()) {
        Ok(code) => code,
        Err(error) => {
            terminal::complain(&format!("samovar: {}", terminal::words(&error)));
            ExitCode::FAILURE
        }
    }
}
