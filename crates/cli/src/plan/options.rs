//! Flags of `samovar plan`.

use super::text_file::text_of;
use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use samovar_plan::calendar::offset_of;
use samovar_plan::{Balancer, Options, Scenario};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Days to look ahead.
const HORIZON: i64 = 365;
/// Days that are read from Prometheus.
const DAYS: i64 = 90;
/// Maximum factor of a scenario.
const FACTOR_MAX: f64 = 1e6;

const HELP: &str = "\
Reads the history of the running server (insight.store), or another source. The first line of the
output is the answer; the guide explains the model: docs/guide/planning.md.

Columns of --csv: time, and one of requests, requests_per_second and requests_total; one of
cpu_seconds, cpu_percent and cpu_seconds_total. Optional: steal_percent, workers_busy, response_ms,
memory_mb, seconds, requests:ROUTE.

Examples:
  samovar plan                                   the running server, from its history
  samovar plan --store /var/lib/samovar/history.sqlite
  samovar plan --csv web1.csv --cores 16 --threads-per-core 2
  samovar plan --sar sar.txt --requests requests.csv --cores 16 --threads-per-core 2
  samovar plan --prometheus http://127.0.0.1:9090 --cores 8
  samovar plan --fleet fleet.toml --lose frankfurt --traffic x1.5
  samovar plan --fleet fleet.toml --weights nginx
  samovar plan --route 'shop=x2' --html plan.html
  samovar plan calibrate                         measure hyper-threading on this machine, 20 s
  samovar plan verify --against http://127.0.0.1:9000   compare with a measurement

Exit codes: 0 done, 1 not enough data or a source cannot be read, 2 wrong flags.";

/// Options of the command.
#[derive(Debug, Default)]
pub(crate) struct PlanOptions {
    /// Socket of the server; `None`: discover it.
    pub(super) control: Option<PathBuf>,
    pub(super) store: Option<PathBuf>,
    pub(super) csv: Option<PathBuf>,
    pub(super) sar: Option<PathBuf>,
    pub(super) requests: Option<PathBuf>,
    pub(super) prometheus: Option<String>,
    pub(super) instance: String,
    pub(super) queries: Vec<(String, String)>,
    pub(super) days: i64,
    pub(super) fleet: Option<PathBuf>,
    pub(super) cores: Option<f64>,
    pub(super) threads_per_core: Option<f64>,
    pub(super) smt_speedup: Option<f64>,
    pub(super) workers: Option<f64>,
    pub(super) memory_mb: Option<f64>,
    /// Cores that other processes use; `None`: those that they use now.
    pub(super) others: Option<f64>,
    pub(super) price_per_month: Option<f64>,
    pub(super) model: Options,
    pub(super) html: Option<PathBuf>,
    pub(super) weights: Option<Balancer>,
    pub(super) json: bool,
}

/// Returns the values that a flag takes, by clap's name of the flag.
pub(crate) fn hint(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "--limit <PERCENT>" => "it takes a percentage from 1 to 100, such as `55`",
        "--traffic <FACTOR>" | "--cpu-per-request <FACTOR>" => {
            "it takes a factor, such as `x1.5` or `x0.85`"
        }
        "--route <NAME=FACTOR>" => "it takes a route and a factor, such as `shop=x2`",
        "--goal <TIME>" => "it takes a time, such as `200ms`",
        "--horizon <DAYS>" => "it takes a number of days from 1 to 3650",
        "--utc-offset <OFFSET>" => "it takes an offset, such as `+02:00`",
        "--query <NAME=QUERY>" => {
            "it takes `requests`, `cpu` or `workers` and a query, such as `cpu=sum(my_cpu)`"
        }
        "--weights <BALANCER>" => "it takes `nginx`, `haproxy` or `envoy`",
        "--seconds <N>" => "it takes a whole number from 2 to 600",
        "--others <N>" => "it takes a number of cores, such as `0` or `1.5`",
        "--cores <N>"
        | "--threads-per-core <N>"
        | "--smt-speedup <N>"
        | "--workers <N>"
        | "--memory-mb <N>"
        | "--price-per-month <N>" => "it takes a number above 0",
        _ => return None,
    })
}

/// Returns the command's definition.
pub(crate) fn command() -> Command {
    let kinds = ["store", "csv", "sar", "prometheus", "fleet"];
    let source = |name: &'static str, kind, help| {
        value(name, kind, help).conflicts_with_all(kinds.into_iter().filter(|one| *one != name))
    };
    let number = |name, help| value(name, "N", help).value_parser(positive);
    Command::new("plan")
        .about("Shows how many times today's peak machines carry, and until when that is enough")
        .after_help(HELP)
        .arg(path(source("store", "FILE", "History of a server (insight.store)")))
        .arg(path(source("csv", "FILE", "History as CSV")))
        .arg(path(source("sar", "FILE", "Output of sar -u or sadf -d").requires("requests")))
        .arg(path(
            value("requests", "FILE", "CSV with time and requests, for --sar").requires("sar"),
        ))
        .arg(source("prometheus", "URL", "Address of a Prometheus server"))
        .arg(value("instance", "NAME", "Value of $instance in queries").requires("prometheus"))
        .arg(
            Arg::new("query")
                .long("query")
                .value_name("NAME=QUERY")
                .action(ArgAction::Append)
                .value_parser(query)
                .help("Replace a query to Prometheus: requests, cpu or workers"),
        )
        .arg(
            value("days", "N", "Days to read from Prometheus [default: 90]")
                .value_parser(value_parser!(i64).range(1..=400)),
        )
        .arg(path(source("fleet", "FILE", "Machines and their histories, as TOML")))
        .arg(number("cores", "Number of cores, for --csv, --sar, --prometheus"))
        .arg(number("threads-per-core", "Threads per core [default: 1]"))
        .arg(number("smt-speedup", "Work of a core with all threads busy, compared with one"))
        .arg(number("workers", "Maximum number of workers"))
        .arg(number("memory-mb", "Memory of the machine, in units of 10⁶ bytes"))
        .arg(
            value("others", "N", "Cores that other processes use [default: as now]")
                .value_parser(zero_or_more),
        )
        .arg(number("price-per-month", "Price of a machine per month"))
        .arg(
            value(
                "limit",
                "PERCENT",
                "CPU use to plan for, as displayed [default: 55 with \
                   hyper-threading, else 79]",
            )
            .value_parser(percent),
        )
        .arg(value("goal", "TIME", "Maximum mean time in a worker").value_parser(time))
        .arg(
            value("horizon", "DAYS", "Days to look ahead [default: 365]")
                .value_parser(value_parser!(i64).range(1..=3650)),
        )
        .arg(path(value("holidays", "FILE", "Dates of unusual days, one in each line")))
        .arg(
            value(
                "utc-offset",
                "OFFSET",
                "Time zone of days, and of times without one [default: \
                   UTC]",
            )
            .allow_hyphen_values(true)
            .value_parser(offset),
        )
        .arg(value("lose", "GROUP", "What if the machines of this group are lost?"))
        .arg(
            Arg::new("route")
                .long("route")
                .value_name("NAME=FACTOR")
                .action(ArgAction::Append)
                .value_parser(route)
                .help("What if this route has FACTOR times the requests?"),
        )
        .arg(value("traffic", "FACTOR", "What if traffic grows?").value_parser(factor))
        .arg(
            value("cpu-per-request", "FACTOR", "What if requests need more or less CPU?")
                .value_parser(factor),
        )
        .arg(path(value("html", "FILE", "Also write a page with charts")))
        .arg(
            value("weights", "BALANCER", "Print the machines with weights, as configuration")
                .value_parser(Balancer::NAMES)
                .requires("fleet")
                .conflicts_with_all(["json", "traffic", "cpu-per-request", "route", "lose"]),
        )
}

pub(super) fn value(name: &'static str, kind: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(kind).overrides_with(name).help(help)
}

pub(super) fn path(argument: Arg) -> Arg {
    argument.value_parser(value_parser!(PathBuf))
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| (1e-3..=1e9).contains(number)).ok_or_else(String::new)
}

pub(super) fn zero_or_more(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|number| (0.0..=1e9).contains(number)).ok_or_else(String::new)
}

pub(super) fn percent(text: &str) -> Result<f64, String> {
    percent_from(text, 1.0..=100.0)
}

/// Parses a number in a range, with or without one percent sign.
pub(super) fn percent_from(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = text.trim_end().strip_suffix('%').unwrap_or(text).trim_end().parse().ok();
    number.filter(|number| range.contains(number)).ok_or_else(String::new)
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix(['x', '×']).unwrap_or(text).parse::<f64>().ok();
    number.filter(|number| (1e-6..=FACTOR_MAX).contains(number)).ok_or_else(String::new)
}

fn route(text: &str) -> Result<(String, f64), String> {
    let (name, text) = text.rsplit_once('=').ok_or_else(String::new)?;
    Ok((name.to_owned(), factor(text)?))
}

fn query(text: &str) -> Result<(String, String), String> {
    let (name, query) = text.split_once('=').ok_or_else(String::new)?;
    let is_known = matches!(name, "requests" | "cpu" | "workers") && !query.is_empty();
    if is_known { Ok((name.to_owned(), query.to_owned())) } else { Err(String::new()) }
}

fn time(text: &str) -> Result<f64, String> {
    let span = samovar_config::duration(text).filter(|span| !span.is_zero());
    span.map(|span| span.as_secs_f64()).ok_or_else(String::new)
}

fn offset(text: &str) -> Result<i64, String> {
    offset_of(text).ok_or_else(String::new)
}

/// Converts the flags to options.
pub(crate) fn parse(matches: &ArgMatches, control: Option<PathBuf>) -> Result<PlanOptions> {
    let number = |name: &str| matches.get_one::<f64>(name).copied();
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let scenario = Scenario {
        traffic: number("traffic").unwrap_or(1.0),
        cpu: number("cpu-per-request").unwrap_or(1.0),
        routes: matches.get_many("route").into_iter().flatten().cloned().collect(),
        lose: text("lose"),
    };
    let threads = number("threads-per-core");
    if let Some(speedup) = number("smt-speedup")
        && !(1.0..=threads.unwrap_or(8.0)).contains(&speedup)
    {
        bail!(
            "a speed-up of {speedup} is not possible\nhint: it is from 1 to the number of threads \
             per core; samovar plan calibrate measures it"
        );
    }
    let holidays = match file("holidays") {
        None => std::collections::BTreeSet::new(),
        Some(path) => {
            let text = text_of(&path)?;
            samovar_plan::holidays(&path.display().to_string(), &text)?
        }
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(PlanOptions {
        control,
        store: file("store"),
        csv: file("csv"),
        sar: file("sar"),
        requests: file("requests"),
        prometheus: text("prometheus"),
        instance: text("instance").unwrap_or_default(),
        queries: matches.get_many("query").into_iter().flatten().cloned().collect(),
        days: matches.get_one("days").copied().unwrap_or(DAYS),
        fleet: file("fleet"),
        cores: number("cores"),
        threads_per_core: threads,
        smt_speedup: number("smt-speedup"),
        workers: number("workers"),
        memory_mb: number("memory-mb"),
        others: number("others"),
        price_per_month: number("price-per-month"),
        model: Options {
            limit: number("limit").map(|percent| percent / 100.0),
            goal: number("goal"),
            horizon: matches.get_one("horizon").copied().unwrap_or(HORIZON),
            offset: matches.get_one("utc-offset").copied().unwrap_or(0),
            now: i64::try_from(now).unwrap_or(0),
            holidays,
            scenario,
        },
        html: file("html"),
        weights: text("weights").as_deref().and_then(Balancer::named),
        json: matches.get_flag("json"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_at_most_one_sign() {
        for (text, expected) in [
            ("55", Some(55.0)),
            ("55%", Some(55.0)),
            ("0.5 % ", Some(0.5)),
            ("101", None),
            ("5%%", None),
            ("5% %", None),
            ("%", None),
            ("", None),
            ("NaN%", None),
        ] {
            assert_eq!(percent_from(text, 0.0..=100.0).ok(), expected, "{text}");
        }
    }
}
