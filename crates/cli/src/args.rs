//! Command line → the command to run.

#[cfg(test)]
mod tests;

use crate::commands::{
    canary, check, queue, record, reload, routes, schedule, serve, status, stop, upgrade, version,
};
use crate::subcommand::{Prepared, Subcommand};
use crate::usage_error::{Early, early};
use crate::{
    boot, calls, compare, compression, deploy, dev, doctor, document, experiment, explain,
    includes, init, leaks, lint, migrate, plan, preload, profile, replay, spy, test_suite, top,
};
use clap::Command;
use samovar_config::Sources;
use std::ffi::OsString;

/// All commands, in the order of the help.
const COMMANDS: &[Subcommand] = &[
    init::SUBCOMMAND,
    dev::SUBCOMMAND,
    serve::SUBCOMMAND,
    check::SUBCOMMAND,
    routes::SUBCOMMAND,
    compare::SUBCOMMAND,
    leaks::SUBCOMMAND,
    preload::SUBCOMMAND,
    experiment::SUBCOMMAND,
    test_suite::SUBCOMMAND,
    lint::SUBCOMMAND,
    migrate::SUBCOMMAND,
    spy::SUBCOMMAND,
    profile::SUBCOMMAND,
    calls::SUBCOMMAND,
    boot::SUBCOMMAND,
    includes::SUBCOMMAND,
    record::SUBCOMMAND,
    replay::SUBCOMMAND,
    queue::SUBCOMMAND,
    schedule::SUBCOMMAND,
    status::SUBCOMMAND,
    top::SUBCOMMAND,
    doctor::SUBCOMMAND,
    plan::SUBCOMMAND,
    compression::SUBCOMMAND,
    deploy::SUBCOMMAND,
    deploy::rollback::SUBCOMMAND,
    deploy::releases::SUBCOMMAND,
    reload::SUBCOMMAND,
    canary::SUBCOMMAND,
    upgrade::SUBCOMMAND,
    stop::SUBCOMMAND,
    explain::SUBCOMMAND,
    version::SUBCOMMAND,
];

const HELP: &str = "\
Examples:
  samovar init                        write a settings file that fits the project
  samovar dev                         serve a project, and reload it after each change
  samovar serve                       serve public/ (or .) on http://127.0.0.1:8080
  samovar serve public/index.php      serve one script for all paths without a file
  samovar serve --listen :80 -w 16    listen on all interfaces, run 16 workers
  samovar check                       check whether a server would start, for scripts and deploys
  samovar routes /uploads/a.php       show the rules that match a path, and the response
  samovar compare --urls / /about     compare the checkpoint with scripts: responses and CPU time
  samovar preload --urls / /about     write a preload file, and measure its gain
  samovar try opcache.jit=tracing     measure a changed setting, on requests that were recorded
  samovar test                        run the tests in forks of the booted application
  samovar migrate check --to 8.4      find code that a newer PHP rejects or runs in another way
  samovar spy --all                   show the functions that all PHP processes run
  samovar profile                     show which functions take the time of requests
  samovar calls                       show callers and callees in traced requests
  samovar boot                        show the cost of the boot, and the files requests still load
  samovar includes                    show the files that the requests of each route include
  samovar record --failed             keep requests that fail, with their input
  samovar replay 3                    run a recorded request again, and compare the responses
  samovar queue                       list the queues of jobs, and their dead jobs
  samovar schedule                    list the schedules, and their last runs
  samovar status --json               show the state of the running server
  samovar doctor                      find faults and costs of the running server
  samovar plan                        show how many times today's peak the machine carries
  samovar compression http://…/        compare codings and levels with a page
  samovar deploy shop.tar.gz          unpack a release, boot it, and switch to it
  samovar rollback                    serve the release before
  samovar reload                      after a deploy: boot again, without losing requests
  samovar reload --canary 5%          let the new release serve 5% of the visitors first
  samovar canary                      compare it with the serving release
  samovar upgrade                     replace the server, without losing requests
  samovar stop                        finish pending requests, then stop
  samovar explain 503                 explain a status, an error or a setting

samovar serve --help explains every setting.";

fn command() -> Command {
    Command::new("samovar")
        .version(env!("CARGO_PKG_VERSION"))
        .about("An application server for PHP")
        .after_help(HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.iter().map(|command| (command.define)()))
        .subcommands(document::define())
}

/// Parses this process's command line, environment and file.
pub(crate) fn parse() -> Prepared {
    let sources = Sources::of_process().map_err(|error| {
        let hint = "start samovar in a folder that exists and that you can read";
        Early::Wrong(format!(
            "samovar: cannot determine the working directory: {error}\nhint: {hint}"
        ))
    })?;
    parse_from(std::env::args_os(), sources)
}

/// Parses `argv`, the program's name included, and resolves the settings with the other `sources`.
fn parse_from(
    argv: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    sources: Sources,
) -> Prepared {
    let hint = |flag: &str| {
        COMMANDS.iter().find_map(|command| (command.hint)(flag)).or_else(|| document::hint(flag))
    };
    let matches = command().try_get_matches_from(argv).map_err(|error| early(error, hint))?;
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let known = command();
    if let Some(document) = document::document(name, matches, command()) {
        return Ok(Box::new(document));
    }
    let at = known.get_subcommands().position(|command| command.get_name() == name);
    (COMMANDS[at.expect("clap accepts only known commands")].prepare)(matches, sources)
}
