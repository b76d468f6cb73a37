//! The flags of `samovar calls`.

use anyhow::{Result, bail};
use clap::{Arg, ArgMatches, Command, value_parser};
use samovar_profile::calls::table::Order;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HELP: &str = "\
Says what the traced requests of a running server have called: each function with its calls, its time
without and with its callees, CPU time, memory, and what has grown since the week before.
The server takes down the call graphs of some requests (profile.trace), or of those that ask for it with
a signature (profile.trace_key), by workers of their own.

Examples:
  samovar calls                                      the route that was traced most, today
  samovar calls --route 'index.php /cart' --by growth
  samovar calls --pool export                        of another pool
  samovar calls --function 'App\\Cart::total'         who calls it, and what it calls
  samovar calls -o cart.callgrind                    for KCachegrind
  samovar calls -o run.xhprof                        for XHProf's pages
  curl -H \"X-Samovar-Trace: $(samovar calls --sign 10m)\" http://127.0.0.1:8080/

Exit codes: 0 done, 1 there is nothing to be shown, 2 wrong flags.";

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Callgrind,
    Xhprof,
    XhprofSerialized,
}

/// What the user asked for.
#[derive(Debug)]
pub(crate) struct CallsOptions {
    /// The server's socket; `None`: discover it.
    pub(crate) control: Option<PathBuf>,
    pub(super) pool: Option<String>,
    pub(super) route: Option<String>,
    pub(super) day: Option<u64>,
    pub(super) order: Order,
    pub(super) function: Option<String>,
    pub(super) sign: Option<Duration>,
    pub(super) format: Option<Format>,
    pub(super) output: Option<PathBuf>,
    pub(super) json: bool,
}

/// What a flag takes, by the name that clap has for it.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--day <DATE>" => "it takes a date such as `2026-11-22`",
        "--sign <TIME>" => "it takes a time, such as `10m` or `1h`",
        _ => return None,
    })
}

/// The command.
pub(crate) fn command() -> Command {
    Command::new("calls")
        .about(
            "Says what traced requests of the running server have called: functions, call graphs",
        )
        .after_help(HELP)
        .arg(value("route", "ROUTE", "Of this route; else of the one that was traced most"))
        .arg(value("day", "DATE", "Of that day [default: the latest]").value_parser(day))
        .arg(
            value("by", "ORDER", "What comes first [default: own]")
                .value_parser(Order::ALL.map(|(_, name)| name)),
        )
        .arg(value("function", "NAME", "Only this function, with its callers and callees"))
        .arg(
            value(
                "sign",
                "TIME",
                "Print the signature by which a request is traced, for that long",
            )
            .value_parser(sign),
        )
        .arg(
            value("format", "FORMAT", "Write callgrind, xhprof (JSON) or xhprof-serialized")
                .value_parser(["callgrind", "xhprof", "xhprof-serialized"]),
        )
        .arg(
            value("output", "FILE", "Where to; its end tells the format")
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

/// Days since 1970, after Howard Hinnant's `days_from_civil`.
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
        _ => bail!(
            "`{name}` does not tell the format\nhint: callgrind in its name, .xhprof or .json; or --format"
        ),
    }
}

/// What flags mean together.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> Result<CallsOptions> {
    let output: Option<PathBuf> = matches.get_one("output").cloned();
    let format = match (matches.get_one::<String>("format").map(String::as_str), &output) {
        (Some("callgrind"), _) => Some(Format::Callgrind),
        (Some("xhprof"), _) => Some(Format::Xhprof),
        (Some(_), _) => Some(Format::XhprofSerialized),
        (None, Some(file)) => Some(format_of(file)?),
        (None, None) => None,
    };
    let order = matches.get_one::<String>("by").and_then(|name| Order::of(name));
    Ok(CallsOptions {
        control,
        pool: matches.get_one("pool").cloned(),
        route: matches.get_one("route").cloned(),
        day: matches.get_one("day").copied(),
        order: order.unwrap_or_default(),
        function: matches.get_one("function").cloned(),
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
    fn dates_are_days_since_1970() {
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
    fn a_files_name_tells_the_format() {
        for (name, expected) in [
            ("a.callgrind", Some(Format::Callgrind)),
            ("callgrind.out.7", Some(Format::Callgrind)),
            ("/tmp/1.run.xhprof", Some(Format::XhprofSerialized)),
            ("a.json", Some(Format::Xhprof)),
            ("a.txt", None),
            ("a", None),
        ] {
            assert_eq!(format_of(Path::new(name)).ok(), expected, "{name}");
        }
    }
}
