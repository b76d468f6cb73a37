//! A fleet in TOML: a `[[machine]]` for each machine, with its cores and its history.

use crate::machine::{Machine, SpeedupSource};
use crate::problem::Problem;
use std::net::{Ipv4Addr, Ipv6Addr};
use toml_edit::{Document, Item, Table};

/// Maximum number of machines.
const MACHINES_MAX: usize = 1_000;
/// Maximum length of a host name, bytes (RFC 1035).
const HOST_BYTES_MAX: usize = 253;
/// Keys of a machine.
const KEYS: [&str; 16] = [
    "name",
    "address",
    "group",
    "cores",
    "threads_per_core",
    "smt_speedup",
    "quota",
    "workers",
    "memory_mb",
    "price_per_month",
    "history",
    "csv",
    "sar",
    "requests",
    "prometheus",
    "instance",
];

/// Source of a machine's history. Paths are relative to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// History of a Samovar server.
    History(String),
    /// CSV file.
    Csv(String),
    /// Output of sar or sadf, and a CSV file of requests.
    Sar {
        /// Output of sar.
        sar: String,
        /// CSV file with `time` and `requests`.
        requests: String,
    },
    /// Prometheus server.
    Prometheus {
        /// Address.
        url: String,
        /// Value that replaces `$instance` in queries.
        instance: String,
    },
}

/// Parses a fleet. `name` is part of messages.
pub fn parse(name: &str, text: &str) -> Result<Vec<(Machine, Source)>, Problem> {
    let document = Document::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        let message = error.message().replace('\n', ", ");
        let hint = "put strings in quotes, and write [[machine]] before each machine";
        Problem::new(format!("invalid TOML: {message}"), hint).at(name, line)
    })?;
    let place = |item: &Item| line_of(text, item.span().map_or(0, |span| span.start));
    let mut found: Vec<(Machine, Source)> = Vec::new();
    for (key, item) in document.as_table() {
        let tables = item.as_array_of_tables().filter(|_| key == "machine").ok_or_else(|| {
            let hint = "a fleet file consists of [[machine]] tables";
            Problem::new(format!("unknown key `{key}`"), hint).at(name, place(item))
        })?;
        for table in tables {
            let line = line_of(text, table.span().map_or(0, |span| span.start));
            let reader = Reader { name, text, line, table };
            let machine = reader.machine()?;
            if found.iter().any(|(known, _)| known.name == machine.0.name) {
                let message = format!("two machines have the name `{}`", machine.0.name);
                return Err(Problem::new(message, "give each machine its own name").at(name, line));
            }
            let own = machine.0.address.as_deref().and_then(endpoint);
            let address = |(known, _): &&(Machine, Source)| {
                known.address.as_deref().and_then(endpoint) == own
            };
            if let (Some(_), Some((known, _))) = (&own, found.iter().find(address)) {
                let (a, b) = (&known.name, &machine.0.name);
                let message = format!("the machines `{a}` and `{b}` have the same address");
                return Err(reader.problem("address", message, "give each machine its own"));
            }
            if found.len() == MACHINES_MAX {
                let message = format!("more than {MACHINES_MAX} machines");
                return Err(Problem::new(message, "split the file").at(name, line));
            }
            found.push(machine);
        }
    }
    if found.is_empty() {
        let hint = "write [[machine]] with name, cores and history";
        return Err(Problem::new("the file names no machines", hint).at(name, 0));
    }
    Ok(found)
}

/// Host and port of an address, as in configurations of load balancers, in the form in which equal
/// ones are the same text.
fn endpoint(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let is_number = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| is_number && *port > 0)?;
    if let Some(host) = host.strip_prefix('[') {
        let host: Ipv6Addr = host.strip_suffix(']')?.parse().ok()?;
        return Some((host.to_string(), port));
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        !label.is_empty() && label.bytes().all(is_plain)
    };
    if host.len() > HOST_BYTES_MAX || !host.split('.').all(is_label) {
        return None;
    }
    // A name that ends in a number is an IPv4 address, or a mistake.
    let last = host.rsplit('.').next()?;
    if last.bytes().all(|byte| byte.is_ascii_digit()) {
        host.parse::<Ipv4Addr>().ok()?;
    }
    Some((host.to_ascii_lowercase(), port))
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.get(..offset).unwrap_or(text).matches('\n').count()
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    line: usize,
    table: &'a Table,
}

impl Reader<'_> {
    fn problem(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        let span = self.table.key(key).and_then(toml_edit::Key::span);
        let line = span.map_or(self.line, |span| line_of(self.text, span.start));
        Problem::new(message, hint).at(self.name, line)
    }

    fn string(&self, key: &str) -> Result<Option<String>, Problem> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let text = item.as_str().filter(|text| !text.is_empty());
        let wrong = || self.problem(key, format!("`{key}` is not a text"), "put it in quotes");
        text.map(|text| Some(text.to_owned())).ok_or_else(wrong)
    }

    fn number(&self, key: &str, min: f64, max: f64) -> Result<Option<f64>, Problem> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let number = item.as_float().or_else(|| item.as_integer().map(|n| n as f64));
        let number = number.filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| {
            let hint = format!("write a number from {min} to {max}");
            self.problem(key, format!("`{key}` has no valid value"), hint)
        })
    }

    fn machine(&self) -> Result<(Machine, Source), Problem> {
        for (key, _) in self.table {
            if !KEYS.contains(&key) {
                let hint = format!("the keys are: {}", KEYS.join(", "));
                return Err(self.problem(key, format!("unknown key `{key}`"), hint));
            }
        }
        let missing = |key: &str| {
            let message = format!("the machine has no `{key}`");
            self.problem("name", message, format!("add `{key} = …`"))
        };
        let name = self.string("name")?.ok_or_else(|| missing("name"))?;
        let cores = self.number("cores", 0.1, 4096.0)?.ok_or_else(|| missing("cores"))?;
        let threads = self.number("threads_per_core", 1.0, 8.0)?.unwrap_or(1.0);
        let mut machine = Machine::new(&name, cores, threads);
        if let Some(speedup) = self.number("smt_speedup", 1.0, threads.max(1.0))? {
            machine.speedup = speedup;
            if threads > 1.0 {
                machine.speedup_source = SpeedupSource::Measured;
            }
        }
        machine.group = self.string("group")?.unwrap_or_default();
        machine.address = self.address()?;
        machine.quota = self.number("quota", 0.01, 65_536.0)?;
        machine.workers_max = self.number("workers", 1.0, 1e6)?;
        machine.memory_bytes = self.number("memory_mb", 1.0, 1e9)?.map(|mb| mb * 1e6);
        machine.price_per_month = self.number("price_per_month", 0.0, 1e9)?;
        Ok((machine, self.source()?))
    }

    fn address(&self) -> Result<Option<String>, Problem> {
        let Some(address) = self.string("address")? else { return Ok(None) };
        if endpoint(&address).is_none() {
            let hint = "write host and port, such as `10.0.0.1:8080` or `[fd00::1]:8080`";
            return Err(self.problem("address", format!("`{address}` is no address"), hint));
        }
        Ok(Some(address))
    }

    fn source(&self) -> Result<Source, Problem> {
        let kinds = ["history", "csv", "sar", "prometheus"];
        let given: Vec<_> = kinds.iter().filter(|key| self.table.contains_key(key)).collect();
        let hint = "give one of history, csv, sar (with requests) and prometheus";
        let [kind] = given[..] else {
            let message = format!("the machine has {} sources of history", given.len());
            return Err(self.problem("name", message, hint));
        };
        let value = self.string(kind)?.unwrap_or_default();
        let (requests, instance) = (self.string("requests")?, self.string("instance")?);
        if requests.is_some() != (*kind == "sar") {
            let message = "`requests` belongs to `sar`: sar does not count requests";
            return Err(self.problem("requests", message, "give both, or neither"));
        }
        Ok(match *kind {
            "history" => Source::History(value),
            "csv" => Source::Csv(value),
            "sar" => Source::Sar { sar: value, requests: requests.unwrap_or_default() },
            _ => Source::Prometheus { url: value, instance: instance.unwrap_or_default() },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_with_all_sources_are_read() {
        let text = "[[machine]]\nname = \"a\"\ncores = 16\nthreads_per_core = 2\n\
            smt_speedup = 1.25\ngroup = \"fra\"\nhistory = \"a.sqlite\"\nworkers = 64\n\
            price_per_month = 99.5\n\
            [[machine]]\nname = \"b\"\ncores = 8\nquota = 4.5\ncsv = \"b.csv\"\n\
            [[machine]]\nname = \"c\"\ncores = 8\nsar = \"c.sar\"\nrequests = \"c.csv\"\n\
            [[machine]]\nname = \"d\"\ncores = 8\nprometheus = \"http://p\"\ninstance = \"d:1\"\n";
        let found = parse("fleet.toml", text).expect("a fleet");
        assert_eq!(found.len(), 4);
        let (machine, source) = &found[0];
        assert_eq!((machine.speedup, machine.workers_max), (1.25, Some(64.0)));
        assert_eq!(machine.speedup_source, SpeedupSource::Measured);
        assert_eq!(*source, Source::History("a.sqlite".into()));
        assert_eq!(found[1].0.quota, Some(4.5));
        let expected = Source::Sar { sar: "c.sar".into(), requests: "c.csv".into() };
        assert_eq!(found[2].1, expected);
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (address, expected) in [
            ("10.0.0.1:8080", Some(("10.0.0.1", 8080))),
            ("Web-1.example.com:80", Some(("web-1.example.com", 80))),
            ("web_1:65535", Some(("web_1", 65535))),
            ("[fd00:0::1]:80", Some(("fd00::1", 80))),
            ("10.0.0.1", None),
            ("10.0.0.1:", None),
            ("10.0.0.1:0", None),
            ("10.0.0.1:+80", None),
            ("10.0.0.1:65536", None),
            ("10.0.0.1:000080", None),
            ("10.0.0.300:80", None),
            ("1:80", None),
            (":80", None),
            (".:80", None),
            ("a..b:80", None),
            ("[]:80", None),
            ("a]:80", None),
            ("[a:80", None),
            ("[fd00::1:80", None),
            ("[zz::1]:80", None),
            ("[10.0.0.1]:80", None),
            ("[fe80::1%eth0]:80", None),
            ("fd00::1:80", None),
            ("a b:80", None),
            ("é:80", None),
        ] {
            let found = endpoint(address);
            let found = found.as_ref().map(|(host, port)| (host.as_str(), *port));
            assert_eq!(found, expected, "{address}");
        }
    }

    #[test]
    fn wrong_files_are_errors_with_line_and_hint() {
        for (text, expected) in [
            ("", "f: the file names no machines"),
            ("a = ", "f:1: invalid TOML"),
            ("\n[server]\nx = 1\n", "f:2: unknown key `server`"),
            ("[[machine]]\ncores = 1\n", "f:1: the machine has no `name`"),
            ("[[machine]]\nname = \"a\"\n", "f:2: the machine has no `cores`"),
            ("[[machine]]\nname = \"a\"\ncores = nan\n", "f:3: `cores` has no valid value"),
            ("[[machine]]\nname = \"a\"\ncores = -1\n", "f:3: `cores` has no valid value"),
            ("[[machine]]\nname = \"a\"\ncores = 1\nspeed = 2\n", "f:4: unknown key `speed`"),
            ("[[machine]]\nname = \"a\"\ncores = 1\n", "f:2: the machine has 0 sources"),
            (
                "[[machine]]\nname = \"a\"\ncores = 1\naddress = \"a; b:80\"\n",
                "f:4: `a; b:80` is no address",
            ),
            (
                "[[machine]]\nname = \"a\"\ncores = 1\naddress = \"10.0.0.1\"\n",
                "f:4: `10.0.0.1` is no address",
            ),
            (
                "[[machine]]\nname = \"a\"\ncores = 1\nsar = \"s\"\n",
                "f:1: `requests` belongs to `sar`",
            ),
            (
                "[[machine]]\nname = \"a\"\ncores = 1\ncsv = \"s\"\n[[machine]]\nname = \"a\"\n\
                 cores = 1\ncsv = \"s\"\n",
                "f:5: two machines have the name `a`",
            ),
            (
                "[[machine]]\nname = \"a\"\ncores = 1\ncsv = \"s\"\naddress = \"A:80\"\n\
                 [[machine]]\nname = \"b\"\ncores = 1\ncsv = \"s\"\naddress = \"a:080\"\n",
                "f:10: the machines `a` and `b` have the same address",
            ),
        ] {
            let error = parse("f", text).expect_err(text).to_string();
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
        }
    }
}
