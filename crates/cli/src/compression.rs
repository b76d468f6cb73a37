//! `samovar compression`: the codings and levels for pages, caches and sessions: bytes saved
//! against CPU time, measured with samples. Prints sizes only.
//!
//! | file | content |
//! |---|---|
//! | `samples.rs` | pages and files to compress |
//! | `coding.rs` | codings, levels and dictionaries |
//! | `measure.rs` | size and time of a level |
//! | `report.rs` | table and advice |

mod coding;
mod measure;
mod report;
mod samples;

use crate::arguments::json_argument;
use crate::subcommand::{Prepared, Run, Subcommand};
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_config::Sources;
use samovar_server::{Predecessor, terminal};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Reads pages from their URLs, or files such as cached values and sessions, and compresses them with
each coding and level. Prints sizes and times, never contents.

Examples:
  samovar compression http://127.0.0.1:8080/ http://127.0.0.1:8080/shop
  samovar compression --files /var/lib/php/sessions
  samovar compression --files var/cache/pools --link 1G

Exit codes: 0 done, 1 no sample can be read, 2 wrong flags.";

/// Speed of a visitor's link, in bits per second.
const LINK: f64 = 50e6;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

#[derive(Debug)]
struct Compression {
    urls: Vec<String>,
    files: Vec<PathBuf>,
    /// Bits per second.
    link: f64,
    json: bool,
}

fn define() -> Command {
    Command::new("compression")
        .about("Compares codings and levels for pages or files: bytes saved against CPU time")
        .after_help(HELP)
        .arg(
            Arg::new("urls")
                .value_name("URL")
                .action(ArgAction::Append)
                .num_args(0..)
                .help("Pages, such as http://127.0.0.1:8080/shop"),
        )
        .arg(
            Arg::new("files")
                .long("files")
                .value_name("PATH")
                .num_args(1..)
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("urls")
                .help("Files, or folders of them: one value each"),
        )
        .arg(
            Arg::new("link")
                .long("link")
                .value_name("SPEED")
                .overrides_with("link")
                .value_parser(speed)
                .help("Speed of the link in bits per second [default: 50M]"),
        )
        .arg(json_argument())
}

fn hint(flag: &str) -> Option<&'static str> {
    (flag == "--link <SPEED>").then_some("it takes bits per second, such as `50M` or `1G`")
}

/// Reads `50M`: bits per second.
fn speed(text: &str) -> Result<f64, String> {
    let units = [('k', 1e3), ('K', 1e3), ('M', 1e6), ('G', 1e9)];
    let unit = units.into_iter().find(|(letter, _)| text.ends_with(*letter));
    let (letter, factor) = unit.unwrap_or((' ', 1.0));
    let number = text.trim_end_matches(letter).parse::<f64>().ok();
    let bits = number.map(|number| number * factor);
    bits.filter(|bits| (1e3..=1e12).contains(bits)).ok_or_else(String::new)
}

#[allow(clippy::unnecessary_wraps, reason = "the signature of all commands")]
fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    Ok(Box::new(Compression {
        urls: matches.get_many("urls").into_iter().flatten().cloned().collect(),
        files: matches.get_many("files").into_iter().flatten().cloned().collect(),
        link: matches.get_one("link").copied().unwrap_or(LINK),
        json: matches.get_flag("json"),
    }))
}

impl Run for Compression {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        let samples = match (&self.urls[..], &self.files[..]) {
            ([], []) => bail!(
                "nothing to compress\nhint: name pages, such as http://127.0.0.1:8080/, or files \
                 with --files"
            ),
            ([], files) => samples::of_files(files)?,
            (urls, _) => samples::of_urls(urls)?,
        };
        let results = measure::all(&samples)?;
        let report = report::Report::new(&samples, results, self.link);
        let text = if self.json { serde_json::to_string(&report)? + "\n" } else { report.text() };
        terminal::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::speed;

    #[test]
    fn speeds_have_units() {
        for (text, bits) in [("50M", 50e6), ("1G", 1e9), ("64k", 64e3), ("2500000", 2.5e6)] {
            assert_eq!(speed(text), Ok(bits), "{text}");
        }
        for wrong in ["", "M", "50 M", "-1M", "0", "nan", "1T", "1e9G"] {
            assert!(speed(wrong).is_err(), "{wrong}");
        }
    }
}
