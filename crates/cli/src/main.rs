//! The command `samovar`: one file per subcommand, this one picks it.

mod args;
mod control;
mod logging;
mod reload;
mod serve;
mod status;
mod stop;

use args::Invocation;
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match args::parse() {
        Ok(Invocation::Serve { settings, sources }) => serve::run(*settings, *sources),
        Ok(Invocation::Status { json, control }) => status::run(control, json),
        Ok(Invocation::Reload { control }) => reload::run(control),
        Ok(Invocation::Stop { control }) => stop::run(control),
        Err(refused) => return refused.report(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("samovar: {error:#}");
            ExitCode::FAILURE
        }
    }
}
