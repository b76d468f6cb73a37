//! The load generator of `bench/`: one run of the command line, all in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    samovar_load::program()
}
