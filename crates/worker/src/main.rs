//! `samovar-php`: the worker side. A template process starts PHP once and forks the workers.
//!
//! Started by `samovar serve`, which hands over the ring and a channel; nobody starts it by hand but
//! to ask for its version.
#![allow(unsafe_code)] // Fork, signals and the C boundary; each block says why it is sound.

mod boundary;
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
mod sealed;
mod shared;
mod template;
mod tracing;
mod warmup;

use std::process::ExitCode;

fn main() -> ExitCode {
    let inherited = match options::parse() {
        Ok(options::Invocation::Template(inherited)) => *inherited,
        Ok(options::Invocation::Print(text)) => {
            println!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            log::write(
                &format!("samovar-php: {error}\nhint: it is started by `samovar serve`"),
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
