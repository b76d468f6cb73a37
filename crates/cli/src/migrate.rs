//! `samovar migrate`: checks PHP code before an upgrade of PHP, and converts the configuration of
//! other servers. Both are in crates/migrate.

mod check;
mod convert;
mod range;
mod table;

use crate::subcommand::{Prepared, Run, Subcommand};
use crate::usage_error::Early;
use anyhow::Result;
use check::{Check, Fixes};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use convert::Conversion;
use samovar_config::Sources;
use samovar_migrate::{Format, Severity, Version};
use samovar_server::Predecessor;
use std::path::PathBuf;
use std::process::ExitCode;

/// Default of `--max-files`.
const FILES_MAX: u64 = 200_000;
/// Maximum of `--max-files`.
const FILES_LIMIT: u64 = 5_000_000;

const HELP: &str = "\
Examples:
  samovar migrate check                      from the version in composer.json to the newest one
  samovar migrate check src --from 7.4 --to 8.4
  samovar migrate check . --fix --diff       show the safe changes, write nothing
  samovar migrate check . --fix              write them
  samovar migrate check . --write-baseline known.json
  samovar migrate check . --baseline known.json --format github
  samovar migrate check . --vendor           also check vendor/, and count per package
  samovar migrate rules --from 8.1 --to 8.4  list the changes between two versions
  samovar migrate from nginx.conf www.conf   convert nginx and a pool of php-fpm to samovar.toml
  samovar migrate from Caddyfile --output samovar.toml
  samovar migrate from .rr.yaml --json

check reads PHP files, php.ini, .user.ini, .htaccess and composer.json; it runs nothing.
See docs/guide/php-upgrades.md.
from reads nginx.conf, pools of php-fpm, .rr.yaml, Caddyfile, config/octane.php and .htaccess. It
writes a commented samovar.toml, and lists on stderr the lines without a counterpart.
See docs/start/convert-configuration.md.

Exit codes: check: 0 no finding, 1 findings, 2 wrong flags or a path that cannot be read.
from: 0 converted, 1 a file that cannot be converted or written, 2 wrong flags.";
/// Flags of `from`.
const FLAGS_OF_FROM: [&str; 3] = ["output", "force", "json"];
/// Flags of `check` and `rules`.
const FLAGS_OF_CHECK: [&str; 11] = [
    "from",
    "to",
    "format",
    "severity",
    "exclude",
    "vendor",
    "max-files",
    "baseline",
    "write-baseline",
    "fix",
    "diff",
];

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint };

#[derive(Debug)]
enum Migrate {
    Check(Box<Check>),
    Convert(Conversion),
    Rules { from: Option<Version>, to: Version, is_json: bool },
}

fn define() -> Command {
    let flag = |name: &'static str| Arg::new(name).long(name);
    let switch = |name: &'static str| flag(name).action(ArgAction::SetTrue);
    Command::new("migrate")
        .about("Checks PHP code before an upgrade of PHP, converts configuration of other servers")
        .after_help(HELP)
        .arg(
            Arg::new("action")
                .value_name("ACTION")
                .required(true)
                .value_parser(["check", "rules", "from"])
                .help("Action"),
        )
        .arg(
            Arg::new("path")
                .value_name("PATH")
                .num_args(0..)
                .value_parser(value_parser!(PathBuf))
                .help("Files and folders [default: . for check]"),
        )
        .arg(
            flag("from")
                .value_name("VERSION")
                .help("PHP version of the code now [default: that of composer.json, else of php]"),
        )
        .arg(flag("to").value_name("VERSION").help("PHP version to upgrade to [default: newest]"))
        .arg(
            flag("format")
                .value_name("FORMAT")
                .default_value("text")
                .value_parser(Format::NAMES)
                .help("Form of the report"),
        )
        .arg(
            flag("severity")
                .value_name("SEVERITY")
                .default_value("notice")
                .value_parser(["notice", "warning", "error"])
                .help("Report only findings of at least this severity"),
        )
        .arg(
            flag("exclude")
                .value_name("PATTERN")
                .action(ArgAction::Append)
                .help("Skip paths that match, as a line of .gitignore does"),
        )
        .arg(switch("vendor").help("Also check folders named vendor"))
        .arg(
            flag("max-files")
                .value_name("NUMBER")
                .value_parser(value_parser!(u64).range(1..=FILES_LIMIT))
                .help(format!("Maximum number of files [default: {FILES_MAX}]")),
        )
        .arg(
            flag("baseline")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Do not report the findings in this file"),
        )
        .arg(
            flag("write-baseline")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("baseline")
                .help("Write the findings to this file"),
        )
        .arg(switch("fix").help("Change the code where that is safe"))
        .arg(switch("diff").help("Show the changes of --fix, write nothing"))
        .arg(
            flag("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the converted settings to this file [default: standard output]"),
        )
        .arg(switch("force").help("Overwrite the file of --output"))
        .arg(switch("json").help("Print the converted settings and the notes as JSON"))
}

fn hint(flag: &str) -> Option<&'static str> {
    match flag {
        "action" => Some("pass check, rules or from"),
        "format" => Some("pass text, json, sarif or github"),
        "severity" => Some("pass notice, warning or error"),
        _ => None,
    }
}

fn prepare(matches: &ArgMatches, _: Sources) -> Prepared {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let is_from = text("action") == "from";
    let misplaced = if is_from { &FLAGS_OF_CHECK[..] } else { &FLAGS_OF_FROM };
    let is_given = |flag: &&&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    if let Some(flag) = misplaced.iter().find(is_given) {
        let action = text("action");
        let actions = if is_from { "check and rules" } else { "from" };
        return Err(Early::Wrong(format!(
            "samovar: --{flag} has no effect on migrate {action}\n\
             hint: it is a flag of migrate {actions}"
        )));
    }
    if is_from {
        let files: Vec<PathBuf> = matches.get_many("path").into_iter().flatten().cloned().collect();
        if files.is_empty() {
            let hint =
                "pass nginx.conf, a pool of php-fpm, .rr.yaml, Caddyfile, octane.php or .htaccess";
            return Err(Early::Wrong(format!("samovar: migrate from needs a file\nhint: {hint}")));
        }
        return Ok(Box::new(Migrate::Convert(Conversion {
            files,
            output: matches.get_one("output").cloned(),
            is_forced: matches.get_flag("force"),
            is_json: matches.get_flag("json"),
        })));
    }
    let version = |name: &str| range::version(matches.get_one::<String>(name), name);
    let (from, to) = (version("from")?, version("to")?.unwrap_or(Version::newest()));
    if matches.get_flag("diff") && !matches.get_flag("fix") {
        let hint = "pass --fix --diff to show the changes, --fix to write them";
        return Err(Early::Wrong(format!("samovar: --diff without --fix\nhint: {hint}")));
    }
    let format = Format::named(text("format")).unwrap_or(Format::Text);
    if text("action") == "rules" {
        let is_json = format == Format::Json;
        return Ok(Box::new(Migrate::Rules { from, to, is_json }));
    }
    let mut paths: Vec<PathBuf> = matches.get_many("path").into_iter().flatten().cloned().collect();
    if paths.is_empty() {
        paths.push(PathBuf::from("."));
    }
    Ok(Box::new(Migrate::Check(Box::new(Check {
        from,
        to,
        format,
        severity: match text("severity") {
            "error" => Severity::Error,
            "warning" => Severity::Warning,
            _ => Severity::Notice,
        },
        paths,
        exclude: matches.get_many("exclude").into_iter().flatten().cloned().collect(),
        has_vendor: matches.get_flag("vendor"),
        files_max: *matches.get_one("max-files").unwrap_or(&FILES_MAX) as usize,
        baseline: matches.get_one("baseline").cloned(),
        new_baseline: matches.get_one("write-baseline").cloned(),
        fixes: match (matches.get_flag("fix"), matches.get_flag("diff")) {
            (true, true) => Fixes::Show,
            (true, false) => Fixes::Write,
            _ => Fixes::Keep,
        },
    }))))
}

impl Run for Migrate {
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        match self {
            Self::Check(check) => check.run(),
            Self::Convert(conversion) => conversion.run(),
            Self::Rules { from, to, is_json } => table::print(*from, *to, *is_json),
        }
    }
}
