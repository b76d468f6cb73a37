//! Flags of `samovar calls`.

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_profile::calls::table::Order;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HELP: &str = "\
Shows the functions that traced requests of a running server called: number of calls, time without
and with callees, CPU time, memory, and growth compared with the week before.
Tracing workers record the call graphs of a sample of requests (profile.trace), and of requests with
a signature (profile.trace_key).

Examples:
  samovar calls                                      the most traced route, today
  samovar calls --route 'index.php /cart' --by growth
  samovar calls --pool export                        another pool
  samovar calls --function 'App\\Cart::total'         its callers and callees
  samovar calls --memory                             the functions that allocate most
  samovar calls --memory -o memory.svg               their flame graph
  samovar calls -o cart.callgrind                    a file for KCachegrind
  samovar calls -o run.xhprof                        a file for XHProf's pages
  curl -H \"X-Samovar-Trace: $(samovar calls --sign 10m)\" http://127.0.0.1:8080/

Exit codes: 0 done, 1 nothing to show, 2 wrong flags.";

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Callgrind,
    Xhprof,
    XhprofSerialized,
    /// Flame graph of the allocated memory.
    Svg,
    /// Stacks with the allocated bytes.
    Collapsed,
}

impl Format {
    const ALL: [(&'static str, Format); 5] = [
        ("callgrind", Format::Callgrind),
        ("xhprof", Format::Xhprof),
        ("xhprof-serialized", Format::XhprofSerialized),
        ("svg", Format::Svg),
        ("collapsed", Format::Collapsed),
    ];

    fn is_of_memory(self) -> bool {
        matches!(self, Format::Svg | Format::Collapsed)
    }
}

/// Options of the command.
#[derive(Debug)]
pub(crate) struct CallsOptions {
    /// Socket of the server; `None`: discover it.
    pub(crate) control: Option<PathBuf>,
    pub(super) pool: Option<String>,
    pub(super) route: Option<String>,
    pub(super) day: Option<u64>,
    pub(super) order: Order,
    pub(super) function: Option<String>,
    pub(super) memory: bool,
    pub(super) sign: Option<Duration>,
    pub(super) format: Option<Format>,
    pub(super) output: Option<PathBuf>,
    pub(super) json: bool,
}

/// Returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--day <DATE>" => "it takes a date such as `2026-11-22`",
        "--sign <TIME>" => "it takes a time, such as `10m` or `1h`",
        _ => return None,
    })
}

/// Returns the command's definition.
pub(crate) fn command() -> Command {
    Command::new("calls")
        .about("Shows the functions and call graphs of traced requests of the running server")
        .after_help(HELP)
        .arg(value("route", "ROUTE", "Name of the route [default: the most traced one]"))
        .arg(value("day", "DATE", "Day to show [default: the latest]").value_parser(day))
        .arg(
            value("by", "ORDER", "Sort order [default: own]")
                .value_parser(Order::ALL.map(|(_, name)| name)),
        )
        .arg(value("function", "NAME", "Show only this function, with its callers and callees"))
        .arg(
            Arg::new("memory")
                .long("memory")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["by", "function", "sign"])
                .help("Show the memory that functions allocate, freed or not"),
        )
        .arg(
            value(
                "sign",
                "TIME",
                "Print a signature that lets a client request traces for this time",
            )
            .value_parser(sign),
        )
        .arg(
            value(
                "format",
                "FORMAT",
                "Output format: callgrind, xhprof (JSON) or xhprof-serialized; with --memory: svg \
                 (a flame graph) or collapsed",
            )
            .value_parser(Format::ALL.map(|(name, _)| name)),
        )
        .arg(
            value("output", "FILE", "Output file; its extension selects the format")
                .short('o')
                .value_parser(value_parser!(PathBuf)),
        )
}

fn value(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
}

fn sign(text: &str) -> Result<Duration, String> {
    let span = samovar_config::duration(text).filter(|span| !span.is_zero());
    span.ok_or_else(String::new)
}

/// Converts a date to days since 1970. The algorithm is Howard Hinnant's `days_from_civil`.
fn day(text: &str) -> Result<u64, String> {
    let mut parts = text.splitn(3, '-').map(str::parse::<u64>);
    let mut next = || parts.next().and_then(Result::ok).ok_or_else(String::new);
    let (year, month, day) = (next()?, next()?, next()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(String::new());
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    (era * 146_097 + day_of_era).checked_sub(719_468).ok_or_else(String::new)
}

fn format_of(file: &Path) -> Result<Format> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name.contains("callgrind") {
        return Ok(Format::Callgrind);
    }
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("xhprof") => Ok(Format::XhprofSerialized),
        Some("json") => Ok(Format::Xhprof),
        Some("svg") => Ok(Format::Svg),
        Some("collapsed") => Ok(Format::Collapsed),
        _ => bail!(
            "cannot infer the format from the file name `{name}`\nhint: use a name with \
             `callgrind`, .xhprof or .json, with --memory .svg or .collapsed, or pass --format"
        ),
    }
}

/// Converts the flags to options.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> Result<CallsOptions> {
    let output: Option<PathBuf> = matches.get_one("output").cloned();
    let named = matches.get_one::<String>("format");
    let named = named.and_then(|name| Format::ALL.iter().find(|(known, _)| known == name));
    let format = match (named, &output) {
        (Some((_, format)), _) => Some(*format),
        (None, Some(file)) => Some(format_of(file)?),
        (None, None) => None,
    };
    let memory = matches.get_flag("memory");
    match format {
        Some(format) if format.is_of_memory() && !memory => bail!(
            "call graphs have no format `svg` or `collapsed`\nhint: pass --memory for the \
             allocated memory, or use `samovar profile -o flames.svg` for the time"
        ),
        Some(format) if memory && !format.is_of_memory() => bail!(
            "allocated memory has no format `callgrind` or `xhprof`\nhint: use svg or collapsed"
        ),
        _ => {}
    }
    let order = matches.get_one::<String>("by").and_then(|name| Order::of(name));
    Ok(CallsOptions {
        control,
        pool: matches.get_one("pool").cloned(),
        route: matches.get_one("route").cloned(),
        day: matches.get_one("day").copied(),
        order: order.unwrap_or_default(),
        function: matches.get_one("function").cloned(),
        memory,
        sign: matches.get_one("sign").copied(),
        format,
        output,
        json: matches.get_flag("json"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_is_converted_to_days_since_1970() {
        for (text, expected) in [
            ("1970-01-01", Ok(0)),
            ("2000-03-01", Ok(11_017)),
            ("2026-11-22", Ok(20_779)),
            ("2026-13-22", Err(())),
            ("1969-12-31", Err(())),
            ("today", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(day(text).map_err(|_| ()), expected, "{text}");
        }
    }

    #[test]
    fn format_follows_from_file_name() {
        for (name, expected) in [
            ("a.callgrind", Some(Format::Callgrind)),
            ("callgrind.out.7", Some(Format::Callgrind)),
            ("/tmp/1.run.xhprof", Some(Format::XhprofSerialized)),
            ("a.json", Some(Format::Xhprof)),
            ("a.svg", Some(Format::Svg)),
            ("a.collapsed", Some(Format::Collapsed)),
            ("a.txt", None),
            ("a", None),
        ] {
            assert_eq!(format_of(Path::new(name)).ok(), expected, "{name}");
        }
    }
}
