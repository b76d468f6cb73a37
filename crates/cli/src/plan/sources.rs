//! Histories of machines: from a running server, files, or Prometheus.

use super::options::PlanOptions;
use super::text_file::{text_of, unreadable};
use crate::control_client::{self, understand};
use anyhow::{Context, Result, anyhow, bail};
use samovar_plan::csv::CsvOptions;
use samovar_plan::fleet::{self, Source};
use samovar_plan::sar::SarOptions;
use samovar_plan::{
    Collector, Input, Machine, Problem, Record, SpeedupSource, Topology, csv, prometheus, sar,
    server,
};
use samovar_wire::{Request, Status};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOUR: i64 = 3600;
/// Step of queries to Prometheus, in seconds.
const STEP: i64 = 300;
/// Days of one query: fewer points than Prometheus refuses.
const QUERY_DAYS: i64 = 30;
/// Timeout of each step of a query.
const QUERY_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of a response of Prometheus.
const RESPONSE_BYTES_MAX: u64 = 8 << 20;
/// First bytes of each database of `SQLite`.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";
/// Queries to Prometheus, for the metrics of Samovar.
const QUERIES: [(&str, &str); 3] = [
    ("requests", "sum(rate(samovar_requests_total{instance=~\"$instance\"}[5m]))"),
    ("cpu", "sum(samovar_cores_used{instance=~\"$instance\",by!=\"hypervisor\"})"),
    ("workers", "sum(samovar_workers{instance=~\"$instance\",state=\"busy\"})"),
];

/// Returns the machines with their histories.
pub(super) fn inputs(asked: &PlanOptions) -> Result<Vec<Input>> {
    if let Some(path) = &asked.fleet {
        return fleet_inputs(asked, path);
    }
    let given = given(asked);
    let input = match given {
        None => running(asked)?,
        Some(Source::History(path)) if asked.cores.is_none() => {
            let machine = overridden(asked, Topology::read().machine("this machine"));
            read(asked, machine, &Source::History(path), Path::new(""))?
        }
        Some(source) => {
            let cores = asked.cores.ok_or_else(|| {
                anyhow!(
                    "the number of cores of that machine is unknown\nhint: add --cores N, and \
                     --threads-per-core 2 with hyper-threading"
                )
            })?;
            let machine =
                Machine::new("this machine", cores, asked.threads_per_core.unwrap_or(1.0));
            read(asked, overridden(asked, machine), &source, Path::new(""))?
        }
    };
    Ok(vec![input])
}

fn given(asked: &PlanOptions) -> Option<Source> {
    let text = |path: &PathBuf| path.display().to_string();
    if let (Some(sar), Some(requests)) = (&asked.sar, &asked.requests) {
        return Some(Source::Sar { sar: text(sar), requests: text(requests) });
    }
    let url = asked.prometheus.clone();
    let instance = asked.instance.clone();
    (asked.store.as_ref().map(|path| Source::History(text(path))))
        .or_else(|| asked.csv.as_ref().map(|path| Source::Csv(text(path))))
        .or_else(|| url.map(|url| Source::Prometheus { url, instance }))
}

/// Applies the flags about the machine.
fn overridden(asked: &PlanOptions, mut machine: Machine) -> Machine {
    if let Some(speedup) = asked.smt_speedup.filter(|_| machine.has_smt()) {
        machine.speedup = speedup;
        machine.speedup_source = SpeedupSource::Measured;
    }
    machine.workers_max = asked.workers.or(machine.workers_max);
    machine.memory_bytes = asked.memory_mb.map(|mb| mb * 1e6).or(machine.memory_bytes);
    machine.price_per_month = machine.price_per_month.or(asked.price_per_month);
    machine
}

fn fleet_inputs(asked: &PlanOptions, path: &Path) -> Result<Vec<Input>> {
    let text = text_of(path)?;
    let machines = fleet::parse(&path.display().to_string(), &text)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let each = machines.into_iter().map(|(mut machine, source)| {
        machine.price_per_month = machine.price_per_month.or(asked.price_per_month);
        read(asked, machine, &source, folder)
    });
    each.collect()
}

/// The running server: its history, its machine, and its current use of cores.
fn running(asked: &PlanOptions) -> Result<Input> {
    let socket = control_client::path(asked.control.as_ref())?;
    let line = control_client::ask(&socket, &Request::Status, control_client::RESPONSE_LIMIT)?;
    let status: Status = understand(&line)?;
    if status.history_file.is_empty() {
        bail!("{}", server::no_history());
    }
    let machine = overridden(asked, server::machine(&status));
    let mut all = Collector::default();
    let of_server = server::own_cpu(&status);
    history(Path::new(&status.history_file), asked.model.now, of_server, &mut all)?;
    let others = asked.others.unwrap_or(status.capacity.cores_others);
    Ok(Input { machine, history: all.finish(), others })
}

fn read(asked: &PlanOptions, machine: Machine, source: &Source, folder: &Path) -> Result<Input> {
    let mut all = Collector::default();
    let open = |path: &str| {
        let path = folder.join(path);
        File::open(&path).map(BufReader::new).with_context(|| unreadable(&path))
    };
    let (threads, offset) = (machine.threads(), asked.model.offset);
    let mut notes = Vec::new();
    match source {
        Source::History(path) => {
            history(&folder.join(path), asked.model.now, 0.0, &mut all)?;
            notes.push(
                "CPU of the server itself and of other processes is unknown: only that of workers \
                 counts"
                    .to_owned(),
            );
        }
        Source::Csv(path) => {
            csv::read(
                path,
                open(path)?,
                CsvOptions { threads, offset, needs_cpu: true },
                &mut all,
            )?;
        }
        Source::Sar { sar: path, requests } => {
            sar::read(path, open(path)?, SarOptions { threads, offset }, &mut all)?;
            let options = CsvOptions { threads, offset, needs_cpu: false };
            csv::read(requests, open(requests)?, options, &mut all)?;
        }
        Source::Prometheus { url, instance } => from_prometheus(asked, url, instance, &mut all)?,
    }
    let mut history = all.finish();
    history.notes.extend(notes);
    Ok(Input { machine, history, others: asked.others.unwrap_or(0.0) })
}

/// Adds the minutes of a history. `of_server` is the server's own CPU time per request.
fn history(path: &Path, now: i64, of_server: f64, to: &mut Collector) -> Result<()> {
    let no_history = |why: &str| {
        let hint = "name the file of the setting `insight.store`";
        anyhow!("cannot use the history `{}`: {why}\nhint: {hint}", path.display())
    };
    if let Some(why) = not_a_history(path) {
        return Err(no_history(why));
    }
    server::history(path, now, of_server, to).map_err(|error| {
        if error.to_string().contains("no such table") {
            return no_history("it is another database");
        }
        let hint = "run the command as the server's user, or as root; check that the file is not \
                    damaged";
        anyhow!("{error}\nhint: {hint}")
    })
}

/// Returns the reason why a path is no history. `None`: it may be one, or cannot be read.
fn not_a_history(path: &Path) -> Option<&'static str> {
    let about = match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some("there is no such file"),
        found => found.ok()?,
    };
    match about.len() {
        _ if about.is_dir() => return Some("it is a folder"),
        _ if !about.is_file() => return Some("it is not a file"),
        0 => return Some("it is empty"),
        _ => {}
    }
    let mut start = [0; SQLITE.len()];
    let file = File::open(path).ok()?;
    let is_sqlite = BufReader::new(file).read_exact(&mut start).is_ok() && start == *SQLITE;
    (!is_sqlite).then_some("it is not a database of SQLite")
}

fn from_prometheus(asked: &PlanOptions, url: &str, name: &str, to: &mut Collector) -> Result<()> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        bail!("`{url}` is not an address\nhint: write http://127.0.0.1:9090");
    }
    let instance = if name.is_empty() { ".*" } else { name };
    let end = asked.model.now;
    for (kind, default) in QUERIES {
        let own = asked.queries.iter().rev().find(|(name, _)| name == kind).map(|(_, query)| query);
        let query = own.map_or(default, String::as_str).replace("$instance", instance);
        let mut from = end - asked.days * 24 * HOUR;
        while from < end {
            let until = end.min(from + QUERY_DAYS * 24 * HOUR);
            for (at, value) in points(url, &query, from, until)? {
                let mut record = Record { at: at - STEP, seconds: STEP, ..Record::default() };
                let sum = Some(value * Duration::from_secs(STEP.unsigned_abs()).as_secs_f64());
                match kind {
                    "requests" => record.requests = sum,
                    "cpu" => record.cpu = sum,
                    _ => record.in_workers = sum,
                }
                to.add(&record);
            }
            from = until + STEP;
        }
    }
    Ok(())
}

fn points(url: &str, query: &str, from: i64, until: i64) -> Result<Vec<(i64, f64)>> {
    let mut encoded = String::new();
    for byte in query.bytes() {
        // Writing to a string cannot fail.
        let _ = if byte.is_ascii_alphanumeric() {
            write!(encoded, "{}", char::from(byte))
        } else {
            write!(encoded, "%{byte:02X}")
        };
    }
    let base = url.trim_end_matches('/');
    let address =
        format!("{base}/api/v1/query_range?query={encoded}&start={from}&end={until}&step={STEP}");
    let (_, body) =
        samovar_outbound::get(&address, QUERY_LIMIT, RESPONSE_BYTES_MAX).map_err(|error| {
            Problem::new(
                format!("cannot query Prometheus at `{base}`: {error}"),
                "check that it runs, and that this machine reaches it",
            )
        })?;
    Ok(prometheus::points(&body, query)?)
}
