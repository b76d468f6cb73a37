//! `samovar-php`: the worker side. A template process starts PHP once and forks the workers.
//!
//! It is started by `samovar serve`, which passes the ring and a channel. A person starts it only
//! to query its version.
#![allow(unsafe_code)] // Fork, signals and the C boundary. Each block says why it is sound.

mod boundary;
mod bytes;
mod console;
mod engine;
mod image;
mod ini;
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
mod template;
mod tracing;
mod warmup;

use php_options::PhpOptions;
use samovar_channel::{PhpQuestion, PhpResponse};
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
    print!("{}", PhpResponse { jit: boundary::jit(), sessions: boundary::sessions() }.text());
    boundary::php_shutdown();
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    let inherited = match options::parse() {
        Ok(options::Invocation::Template(inherited)) => *inherited,
        Ok(options::Invocation::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(options::Invocation::Ask(question)) => return respond(question),
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
        Err(error) => {
            log::write(&format!("samovar-php: {error}"), "");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    /// The modules build on each other, from system calls to the template. The test is here because
    /// a test with its own binary needs substitutes for functions that C calls.
    #[test]
    fn modules_import_only_lower_ones() {
        let rooms = [
            "bytes",
            "request_head",
            "os",
            "log",
            "sealed",
            "meter",
            "ini",
            "php_options.in",
            "php_options",
            "loads",
            "tracing",
            "shared",
            "boundary",
            "engine",
            "options",
            "life",
            "warmup",
            "image",
            "relinking",
            "console",
            "template",
        ];
        samovar_testkit::rooms::check(concat!(env!("CARGO_MANIFEST_DIR"), "/src"), &rooms);
    }
}
