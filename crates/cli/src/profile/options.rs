//! Flags of `samovar profile`.

use crate::spy::options::{Format, format_named, format_of_file};
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_spy::profile::Part;
use samovar_wire::Against;
use std::path::PathBuf;
use std::time::Duration;

const LAST: Duration = Duration::from_mins(10);

const HELP: &str = "\
Shows where the time of requests to a running server went, function by function.
The server samples each busy worker about 49 times a second (profile.hertz). It stores the samples
by minute and route for two days (profile.days_max).

Without -o the command prints a table. With -o it writes a file: a flame graph (.svg), pprof for
go tool pprof (.pb.gz), speedscope (.speedscope.json), or lines for scripts (.collapsed).
Time is wall-clock time, with waits on top of the stack; --on-cpu shows only CPU time.

--memory shows the memory that functions allocated instead, freed or not, in the requests that were
traced today (profile.trace). Samples are taken every 8 KiB on average.

Examples:
  samovar profile                                    the last ten minutes, all routes
  samovar profile --route 'index.php /cart' --last 1h -o cart.svg
  samovar profile --memory -o memory.svg             allocated memory, all traced routes
  samovar profile --lines -o lines.svg               a flame graph by line
  samovar profile --against last-reload              change of cost per request, by function
  samovar profile --generation 5 --against generation-3   two generations, in their last minutes
  samovar profile --pool export --against last-reload  another pool than the default one
  samovar profile --against 24h-ago --on-cpu -o difference.svg

Exit codes: 0 done, 1 nothing to show, 2 wrong flags.";

/// Help of `--pool`: each pool counts its own generations.
pub(crate) const OF_POOL: &str =
    "Only this pool [default: all pools; for comparisons of generations, the default pool]";

/// Options of the command.
#[derive(Debug)]
pub(crate) struct ProfileOptions {
    /// Socket of the server; `None`: discover it.
    pub(crate) control: Option<PathBuf>,
    pub(super) pool: Option<String>,
    pub(super) route: Option<String>,
    pub(super) last: Duration,
    pub(super) generation: Option<u64>,
    pub(super) part: Part,
    /// Whether allocated memory is shown instead of time.
    pub(super) memory: bool,
    /// Whether each executed line counts as a function.
    pub(super) lines: bool,
    pub(super) against: Option<Against>,
    pub(super) format: Option<Format>,
    pub(super) output: Option<PathBuf>,
    pub(super) json: bool,
}

/// Returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--last <TIME>" => "it takes a time, such as `10m`, `90s` or `6h`",
        "--generation <N>" => "it takes a whole number from 1, as samovar status shows it",
        "--against <WHEN>" => {
            "it takes `last-reload`, `yesterday`, a time such as `1h-ago`, or `generation-3`"
        }
        _ => return None,
    })
}

/// Returns the command's definition.
pub(crate) fn command() -> Command {
    Command::new("profile")
        .about(
            "Shows which functions the time of the running server's requests went to; flame graphs",
        )
        .after_help(HELP)
        .arg(value("route", "ROUTE", "Only this route, by its name in samovar top [default: all]"))
        .arg(value("last", "TIME", "Period to show, up to now [default: 10m]").value_parser(last))
        .arg(
            value("generation", "N", "Only workers of this generation")
                .value_parser(value_parser!(u64).range(1..)),
        )
        .arg(flag("on-cpu", "Only samples on CPU, weighted by CPU time").conflicts_with("waiting"))
        .arg(flag("waiting", "Only samples of functions that waited in the kernel"))
        .arg(flag("lines", "Split functions into their executed lines"))
        .arg(
            flag("memory", "Show allocated memory of traced requests instead of time")
                .conflicts_with_all(["on-cpu", "waiting", "lines", "last", "against"])
                .conflicts_with("generation"),
        )
        .arg(
            value(
                "against",
                "WHEN",
                "Compare with `last-reload`, `yesterday`, `1h-ago` or `generation-3`",
            )
            .value_parser(against),
        )
        .arg(
            value(
                "format",
                "FORMAT",
                "Output format: svg, pprof, speedscope, collapsed or callgrind",
            )
            .value_parser(["svg", "pprof", "speedscope", "collapsed", "callgrind"]),
        )
        .arg(
            value("output", "FILE", "Output file; its extension selects the format")
                .short('o')
                .value_parser(value_parser!(PathBuf)),
        )
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(name).help(help)
}

fn value(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
}

fn last(text: &str) -> Result<Duration, String> {
    let span = samovar_config::duration(text).filter(|span| !span.is_zero());
    span.ok_or_else(String::new)
}

fn against(text: &str) -> Result<Against, String> {
    match text {
        "last-reload" => Ok(Against::Reload),
        "yesterday" => Ok(Against::Earlier { seconds: 86_400 }),
        _ if text.starts_with("generation-") => {
            let number = text["generation-".len()..].parse().ok().filter(|number| *number > 0);
            number.map(|number| Against::Generation { number }).ok_or_else(String::new)
        }
        _ => {
            let span = text.strip_suffix("-ago").and_then(samovar_config::duration);
            let seconds = span.map(|span| span.as_secs()).filter(|seconds| *seconds > 0);
            seconds.map(|seconds| Against::Earlier { seconds }).ok_or_else(String::new)
        }
    }
}

/// Converts the flags to options.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> Result<ProfileOptions> {
    let output: Option<PathBuf> = matches.get_one("output").cloned();
    let format = match (matches.get_one::<String>("format"), &output) {
        (Some(name), _) => Some(format_named(name)),
        (None, Some(file)) => Some(format_of_file(file)?),
        (None, None) => None,
    };
    let against = matches.get_one("against").copied();
    if against.is_some() && format.is_some_and(|format| format != Format::Svg) {
        bail!(
            "a comparison can only be a table or a flame graph\nhint: leave out --format, or \
             write an .svg"
        );
    }
    Ok(ProfileOptions {
        control,
        pool: matches.get_one("pool").cloned(),
        route: matches.get_one("route").cloned(),
        last: matches.get_one("last").copied().unwrap_or(LAST),
        generation: matches.get_one("generation").copied(),
        part: match (matches.get_flag("on-cpu"), matches.get_flag("waiting")) {
            (true, _) => Part::OnCpu,
            (_, true) => Part::Waiting,
            _ => Part::All,
        },
        memory: matches.get_flag("memory"),
        lines: matches.get_flag("lines"),
        against,
        format,
        output,
        json: matches.get_flag("json"),
    })
}
