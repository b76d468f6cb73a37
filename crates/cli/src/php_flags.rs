//! Flags of commands that run PHP without a server: its versions, its settings, and the number of
//! processes.

use anyhow::{Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use samovar_config::{PhpBinary, locate_worker};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of processes.
const JOBS_MAX: i64 = 256;
/// Maximum number of versions of PHP.
const VERSIONS_MAX: usize = 8;

/// `--jobs`.
pub(crate) fn jobs(help: &'static str) -> Arg {
    text("jobs", "N", help).short('j').value_parser(value_parser!(i64).range(1..=JOBS_MAX))
}

/// `--php`.
pub(crate) fn versions(help: &'static str) -> Arg {
    text("php", "VERSIONS", help).value_parser(parse_versions)
}

/// `--php-ini` and `--define`.
pub(crate) fn settings() -> [Arg; 2] {
    [
        text("php-ini", "FILE", "php.ini to use instead of the command line's")
            .value_parser(value_parser!(PathBuf)),
        Arg::new("define")
            .long("define")
            .short('d')
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .value_parser(directive)
            .help("Directive that overrides php.ini"),
    ]
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).overrides_with(name).help(help)
}

/// Returns the hint for a wrong value of these flags.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "--jobs <N>" => Some("it takes a number from 1 to 256"),
        "--php <VERSIONS>" => Some("it takes versions such as `8.2`, separated by commas"),
        "--define <KEY=VALUE>" => Some("it takes a directive, such as `memory_limit=1G`"),
        _ => None,
    }
}

/// Returns the number of processes; the default is that of the processors.
pub(crate) fn jobs_of(matches: &ArgMatches) -> usize {
    let max = usize::try_from(JOBS_MAX).unwrap_or(1);
    let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    matches
        .get_one::<i64>("jobs")
        .map_or_else(|| processors().min(max), |jobs| usize::try_from(*jobs).unwrap_or(1))
}

/// Returns the php.ini to use.
pub(crate) fn php_ini(matches: &ArgMatches, folder: &Path) -> Result<Option<PathBuf>> {
    matches.get_one::<PathBuf>("php-ini").map(|file| existing_file(folder, file)).transpose()
}

/// Returns the directives that override it.
pub(crate) fn define(matches: &ArgMatches) -> BTreeMap<String, String> {
    matches.get_many("define").into_iter().flatten().cloned().collect()
}

/// Returns the worker binaries of the versions that `--php` names; empty: it names none.
pub(crate) fn selected(matches: &ArgMatches) -> Result<Vec<PathBuf>> {
    let versions = matches.get_one::<Vec<String>>("php").cloned().unwrap_or_default();
    let worker = |version| {
        // Here the flag for a version is --php.
        locate_worker(Some(&PhpBinary::Version(version)))
            .map_err(|error| anyhow!(error.to_string().replace("--php-binary", "--php")))
    };
    versions.into_iter().map(worker).collect()
}

/// Returns the path of a file that exists, below `folder` if it is relative.
pub(crate) fn existing_file(folder: &Path, file: &Path) -> Result<PathBuf> {
    let file = folder.join(file);
    if !file.is_file() {
        bail!(
            "cannot read `{}`: there is no such file\nhint: name a file that exists",
            file.display()
        );
    }
    Ok(file)
}

fn parse_versions(text: &str) -> Result<Vec<String>, String> {
    let all: Vec<_> = text.split(',').map(|version| version.trim().to_owned()).collect();
    let is_version = |text: &String| {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    if all.len() > VERSIONS_MAX || !all.iter().all(is_version) {
        return Err("no versions".to_owned());
    }
    Ok(all)
}

fn directive(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, "1"));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) || value.contains('\n') {
        return Err("no directive".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}
