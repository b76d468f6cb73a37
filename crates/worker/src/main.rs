//! `samovar-php`: the worker side. A template process starts PHP once and forks the workers.
//!
//! It is started by `samovar serve`, which passes the ring and a channel. A person starts it only
//! to query its version.
#![allow(unsafe_code)] // Fork, signals and the C boundary. Each block says why it is sound.

mod boundary;
mod bytes;
mod cli_settings;
mod compile_only;
mod console;
mod engine;
mod file_class;
mod image;
mod ini;
mod jobs;
mod life;
mod loads;
mod log;
mod meter;
mod options;
mod os;
mod php_options;
mod relinking;
mod request_head;
mod sealed;
mod shared;
mod statement_text;
mod template;
mod test_image;
mod tracing;
mod warmup;

use php_options::PhpOptions;
use samovar_channel::{PhpQuestion, PhpResponse};
use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;

/// Starts PHP only to answer a query of its settings.
fn respond(question: PhpQuestion) -> ExitCode {
    let started = PhpOptions::new(&question.options(), false)
        .map_err(|error| error.to_string())
        .and_then(|options| boundary::php_startup(options).map_err(str::to_owned));
    if let Err(error) = started {
        log::write(&format!("samovar-php: {error}"), "");
        return ExitCode::FAILURE;
    }
    let setup = boundary::setup().bounded();
    let response = PhpResponse { jit: boundary::jit(), sessions: boundary::sessions(), setup };
    print!("{}", response.text());
    boundary::php_shutdown();
    ExitCode::SUCCESS
}

fn ended(result: Result<ExitCode, Box<dyn Error>>) -> ExitCode {
    result.unwrap_or_else(|error| {
        log::write(&format!("samovar-php: {error}"), "");
        ExitCode::FAILURE
    })
}

fn main() -> ExitCode {
    let inherited = match options::parse() {
        Ok(options::Invocation::Template(inherited)) => *inherited,
        Ok(options::Invocation::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(options::Invocation::Ask(question)) => return respond(question),
        Ok(options::Invocation::Test(start)) => return ended(test_image::run(*start)),
        Ok(options::Invocation::Lint(start)) => return ended(compile_only::run(&start)),
        Err(error) => {
            log::write(
                &format!("samovar-php: {error}\nhint: run `samovar serve`, which starts it"),
                "",
            );
            return ExitCode::from(2);
        }
    };
    match template::run(inherited) {
        Ok(()) => ExitCode::SUCCESS,
        // The server closes the channel to end its processes, also while a message is on its way.
        Err(error) if is_end_of_channel(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            log::write(&format!("samovar-php: {error}"), "");
            ExitCode::FAILURE
        }
    }
}

/// Whether the server has closed its end of the channel.
fn is_end_of_channel(error: &(dyn Error + 'static)) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::BrokenPipe | ErrorKind::ConnectionReset))
}

#[cfg(test)]
mod tests {
    use super::is_end_of_channel;
    use std::io::{Error, ErrorKind};

    #[test]
    fn closed_channel_is_not_a_failure() {
        for (kind, expected) in [
            (ErrorKind::BrokenPipe, true),
            (ErrorKind::ConnectionReset, true),
            (ErrorKind::OutOfMemory, false),
        ] {
            assert_eq!(is_end_of_channel(&Error::from(kind)), expected, "{kind}");
        }
        assert!(!is_end_of_channel(&std::fmt::Error));
    }

    /// The modules build on each other, from system calls to the template. The test is here because
    /// a test with its own binary needs substitutes for functions that C calls.
    #[test]
    fn modules_import_only_lower_ones() {
        let rooms = [
            "bytes",
            "file_class",
            "statement_text",
            "request_head",
            "os",
            "log",
            "sealed",
            "meter",
            "ini",
            "php_options.in",
            "php_options",
            "jobs",
            "loads",
            "tracing",
            "shared",
            "boundary",
            "engine",
            "options",
            "cli_settings",
            "life",
            "warmup",
            "image",
            "relinking",
            "console",
            "template",
            "test_image",
            "compile_only",
        ];
        samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
    }
}
