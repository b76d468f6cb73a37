//! `samovar explain`: the meaning of an error, a status, a finding or a setting, with its causes
//! and the action.
//!
//! The source is the documentation: `pages.rs` reads its tables, which the binary contains.
//! `lookup.rs` finds the rows.

mod lookup;
mod pages;

use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use std::process::ExitCode;

const HELP: &str = "\
CODE is an HTTP status, an exit status, a word that the server uses in its log or in samovar status
(the kind of a finding, the reason of a rejection), or the name of a setting. It may also be a whole
message, copied from the log.

Examples:
  samovar explain 503
  samovar explain kernel-object
  samovar explain timeouts.queue
  samovar explain --workers
  samovar explain 'cannot bind `0.0.0.0:80`: permission denied'

Exit codes: 0 found, 1 not found, 2 wrong flags.";

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

/// The question.
#[derive(Debug)]
struct Explain {
    text: String,
}

fn define() -> Command {
    // A setting is also known by its flag: `--workers`.
    let code = Arg::new("code").value_name("CODE").required(true).num_args(1..);
    let code = code.allow_hyphen_values(true).trailing_var_arg(true);
    Command::new("explain")
        .about("Explains an error, a status, a finding or a setting")
        .after_help(HELP)
        .arg(code.help("A code, or a message"))
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    let words: Vec<_> = matches.get_many::<String>("code").into_iter().flatten().cloned().collect();
    Ok(Box::new(Explain { text: words.join(" ") }))
}

impl Run for Explain {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        match lookup::explain(&self.text, &pages::entries()) {
            Ok(text) => terminal::print(&text)?,
            Err(near) => bail!("no explanation of `{}`\nhint: {near}", self.text.trim()),
        }
        Ok(ExitCode::SUCCESS)
    }
}
