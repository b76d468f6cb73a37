//! History as CSV: one line per interval.
//!
//! | column | content |
//! |---|---|
//! | `time` | start of the interval: seconds since 1970, or ISO 8601 |
//! | `requests`, `requests_per_second`, `requests_total` | number, rate, or counter |
//! | `cpu_seconds`, `cpu_percent`, `cpu_seconds_total` | CPU time; percent of all CPUs; counter |
//! | `steal_percent` | CPU time that the hypervisor took |
//! | `workers_busy` | mean number of busy workers |
//! | `response_ms` | mean time of a request in a worker |
//! | `memory_mb` | used memory, in units of 10⁶ bytes |
//! | `seconds` | length of the interval; without it, the time up to the next line |
//! | `requests:NAME` | number of requests of a route |

use crate::calendar;
use crate::lines::Lines;
use crate::problem::Problem;
use crate::samples::{Collector, Record};
use std::io::BufRead;

/// Maximum number of columns.
const COLUMNS_MAX: usize = 256;
/// Largest number in a field: sums stay finite.
const NUMBER_MAX: f64 = 1e15;
const HINT: &str = "see samovar plan --help for the columns";
/// An interval longer than this number of the shortest intervals is a gap.
const GAP: i64 = 3;

#[derive(Clone, Debug, PartialEq)]
enum Column {
    Time,
    Requests,
    Rate,
    RequestsTotal,
    CpuSeconds,
    CpuPercent,
    CpuTotal,
    StealPercent,
    WorkersBusy,
    ResponseMs,
    MemoryMb,
    Seconds,
    Route(String),
    Ignored,
}

impl Column {
    fn of(name: &str) -> Column {
        let name = name.trim();
        if let Some(route) = name.strip_prefix("requests:") {
            return Column::Route(route.trim().to_owned());
        }
        match &*name.to_ascii_lowercase() {
            "time" | "timestamp" => Column::Time,
            "requests" => Column::Requests,
            "requests_per_second" => Column::Rate,
            "requests_total" => Column::RequestsTotal,
            "cpu_seconds" => Column::CpuSeconds,
            "cpu_percent" => Column::CpuPercent,
            "cpu_seconds_total" => Column::CpuTotal,
            "steal_percent" => Column::StealPercent,
            "workers_busy" => Column::WorkersBusy,
            "response_ms" => Column::ResponseMs,
            "memory_mb" => Column::MemoryMb,
            "seconds" => Column::Seconds,
            _ => Column::Ignored,
        }
    }
}

/// Options of a CSV file.
#[derive(Clone, Copy, Debug)]
pub struct CsvOptions {
    /// CPUs of the machine, for percentages.
    pub threads: f64,
    /// Offset of times without one, in seconds.
    pub offset: i64,
    /// Whether a column of CPU is required.
    pub needs_cpu: bool,
}

/// One line. `None`: no such column, or an empty field.
#[derive(Clone, Debug, Default)]
struct Row {
    at: i64,
    seconds: Option<i64>,
    requests: Option<f64>,
    rate: Option<f64>,
    requests_total: Option<f64>,
    cpu_seconds: Option<f64>,
    cpu_percent: Option<f64>,
    cpu_total: Option<f64>,
    steal_percent: Option<f64>,
    workers: Option<f64>,
    response_ms: Option<f64>,
    memory: Option<f64>,
    routes: Vec<(usize, f64)>,
}

/// Reads a file into a collector. `name` is part of messages.
pub fn read(
    name: &str,
    input: impl BufRead,
    options: CsvOptions,
    to: &mut Collector,
) -> Result<(), Problem> {
    let mut lines = Lines::new(name, input);
    let Some(header) = lines.next()? else {
        return Err(lines.whole("the file is empty", HINT));
    };
    let separator = [';', '\t'].into_iter().find(|c| header.contains(*c)).unwrap_or(',');
    let columns: Vec<Column> =
        fields(&header, separator).iter().map(|name| Column::of(name)).collect();
    check(&lines, &columns, options)?;
    let mut intervals = Intervals { options, shortest: i64::MAX, before: None };
    while let Some(line) = lines.next()? {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let row = row(&lines, &columns, &fields(&line, separator), options)?;
        intervals.add(row, &columns, to).map_err(|message| {
            let hint = "sort the lines by time; use UTC, because a local hour can occur twice";
            lines.problem(message, hint)
        })?;
    }
    intervals.finish(&columns, to);
    Ok(())
}

fn check<R: BufRead>(
    lines: &Lines<R>,
    columns: &[Column],
    options: CsvOptions,
) -> Result<(), Problem> {
    let has = |wanted: &[Column]| columns.iter().any(|column| wanted.contains(column));
    if columns.len() > COLUMNS_MAX {
        return Err(lines.problem(format!("more than {COLUMNS_MAX} columns"), HINT));
    }
    if !has(&[Column::Time]) {
        return Err(lines.problem("the first line names no column `time`", HINT));
    }
    if !has(&[Column::Requests, Column::Rate, Column::RequestsTotal]) {
        let hint = "add `requests`, `requests_per_second` or `requests_total`";
        return Err(lines.problem("the first line names no column of requests", hint));
    }
    if options.needs_cpu && !has(&[Column::CpuSeconds, Column::CpuPercent, Column::CpuTotal]) {
        let hint = "add `cpu_seconds`, `cpu_percent` or `cpu_seconds_total`";
        return Err(lines.problem("the first line names no column of CPU time", hint));
    }
    Ok(())
}

/// Splits a line; a field can be in double quotes.
fn fields(line: &str, separator: char) -> Vec<String> {
    let (mut all, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c == separator && !is_quoted => all.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    all.push(field);
    all
}

fn row<R: BufRead>(
    lines: &Lines<R>,
    columns: &[Column],
    fields: &[String],
    options: CsvOptions,
) -> Result<Row, Problem> {
    if fields.len() != columns.len() {
        let (found, expected) = (fields.len(), columns.len());
        let hint = "each line needs a field for each column of the first line";
        return Err(lines.problem(format!("{found} fields instead of {expected}"), hint));
    }
    let mut row = Row::default();
    for (place, (column, text)) in columns.iter().zip(fields).enumerate() {
        let text = text.trim();
        if *column == Column::Time {
            row.at = calendar::time_of(text, options.offset).ok_or_else(|| {
                let hint = "write 2026-11-28T12:00:00Z, or seconds since 1970";
                lines.problem(format!("`{text}` is not a time"), hint)
            })?;
            continue;
        }
        if text.is_empty() || *column == Column::Ignored {
            continue;
        }
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        let number = number.ok_or_else(|| {
            let hint = "write a number of 0 or more, or leave the field empty";
            lines.problem(format!("`{text}` in column {} is not a number", place + 1), hint)
        })?;
        if number > NUMBER_MAX {
            let hint = "check the column's unit; counters and sums are at most 10^15";
            return Err(
                lines.problem(format!("`{text}` in column {} is too large", place + 1), hint)
            );
        }
        if matches!(column, Column::CpuPercent | Column::StealPercent) && number > 101.0 {
            let hint = "percentages are shares of all CPUs, at most 100; use `cpu_seconds`";
            return Err(lines.problem(format!("{number} % of the CPUs are busy"), hint));
        }
        match column {
            Column::Requests => row.requests = Some(number),
            Column::Rate => row.rate = Some(number),
            Column::RequestsTotal => row.requests_total = Some(number),
            Column::CpuSeconds => row.cpu_seconds = Some(number),
            Column::CpuPercent => row.cpu_percent = Some(number),
            Column::CpuTotal => row.cpu_total = Some(number),
            Column::StealPercent => row.steal_percent = Some(number),
            Column::WorkersBusy => row.workers = Some(number),
            Column::ResponseMs => row.response_ms = Some(number),
            Column::MemoryMb => row.memory = Some(number * 1e6),
            Column::Seconds => row.seconds = Some(number as i64),
            Column::Route(_) => row.routes.push((place, number)),
            Column::Time | Column::Ignored => {}
        }
    }
    Ok(row)
}

/// Converts lines to intervals: the length of one is known only with the next line.
struct Intervals {
    options: CsvOptions,
    shortest: i64,
    before: Option<Row>,
}

impl Intervals {
    fn add(&mut self, row: Row, columns: &[Column], to: &mut Collector) -> Result<(), String> {
        if let Some(before) = self.before.take() {
            let length = row.at - before.at;
            if length <= 0 {
                return Err("the time is not after that of the line before".to_owned());
            }
            self.shortest = self.shortest.min(length);
            self.emit(&before, Some(&row), columns, to);
        }
        self.before = Some(row);
        Ok(())
    }

    fn finish(mut self, columns: &[Column], to: &mut Collector) {
        if let Some(last) = self.before.take()
            && (self.shortest < i64::MAX || last.seconds.is_some())
        {
            self.emit(&last, None, columns, to);
        }
    }

    fn emit(&self, row: &Row, next: Option<&Row>, columns: &[Column], to: &mut Collector) {
        let span = next.map_or(self.shortest, |next| next.at - row.at);
        let is_gap = span > self.shortest.saturating_mul(GAP);
        let seconds = row.seconds.unwrap_or(if is_gap { self.shortest } else { span });
        let length = seconds as f64;
        // A counter that falls was reset; the interval is left out.
        let mut is_reset = false;
        let mut difference = |of: fn(&Row) -> Option<f64>| {
            let (from, until) = (of(row)?, next.and_then(of)?);
            is_reset |= until < from;
            (until >= from && !is_gap).then_some((until - from) * length / span as f64)
        };
        let from_counter = difference(|row| row.requests_total);
        let cpu_from_counter = difference(|row| row.cpu_total);
        if is_reset {
            to.skip();
        }
        let requests = row.requests.or(row.rate.map(|rate| rate * length)).or(from_counter);
        let of_percent = |percent: f64| percent / 100.0 * self.options.threads * length;
        let by_response = row.response_ms.zip(requests).map(|(ms, requests)| ms / 1e3 * requests);
        to.add(&Record {
            at: row.at,
            seconds,
            requests,
            cpu: row.cpu_seconds.or(row.cpu_percent.map(of_percent)).or(cpu_from_counter),
            stolen: row.steal_percent.map(of_percent),
            in_workers: row.workers.map(|workers| workers * length).or(by_response),
            memory: row.memory,
        });
        for (place, requests) in &row.routes {
            if let Some(Column::Route(name)) = columns.get(*place) {
                to.add_route(row.at, seconds, name, *requests, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::History;

    fn parse(text: &str) -> Result<History, String> {
        let mut to = Collector::default();
        let options = CsvOptions { threads: 4.0, offset: 0, needs_cpu: true };
        match read("web.csv", text.as_bytes(), options, &mut to) {
            Ok(()) => Ok(to.finish()),
            Err(problem) => Err(problem.to_string()),
        }
    }

    #[test]
    fn numbers_rates_and_counters_give_the_same_history() {
        for (header, rows) in [
            ("time,requests,cpu_percent", ["600,50", "600,50", "600,50"]),
            ("time,requests_per_second,cpu_seconds", ["2,600", "2,600", "2,600"]),
            ("time;requests_total;cpu_seconds_total", ["0;0", "600;600", "1200;1200"]),
        ] {
            let separator = if header.contains(';') { ';' } else { ',' };
            let rows = rows.iter().enumerate();
            let lines = rows.map(|(n, row)| format!("{}{separator}{row}\n", 300 * n));
            let text = format!("{header}\n{}", lines.collect::<String>());
            let found = parse(&text).expect(header);
            let expected = if header.contains("total") { 2 } else { 3 };
            assert_eq!(found.samples.len(), expected, "{header}");
            for sample in found.samples {
                assert!((sample.rate - 2.0).abs() < 1e-9, "{header} {sample:?}");
                assert!(sample.busy.is_some_and(|busy| (busy - 2.0).abs() < 1e-9), "{header}");
            }
        }
    }

    #[test]
    fn counter_reset_and_gap_are_left_out() {
        let text = "time,requests_total,cpu_seconds_total\n0,100,10\n300,400,40\n600,50,5\n\
                    900,350,35\n9000,650,65\n9300,950,95\n";
        let found = parse(text).expect("a history");
        let times: Vec<_> = found.samples.iter().map(|sample| sample.at).collect();
        assert_eq!(times, [0, 600, 9000]);
        assert!(found.notes[0].contains("counters were reset"), "{:?}", found.notes);
    }

    #[test]
    fn columns_of_routes_and_optional_fields_are_read() {
        let text = "time,requests,cpu_seconds,requests:shop,workers_busy,memory_mb,note\n\
                    2026-01-01T00:00:00Z,30,3,10,1.5,100,\"a,b\"\n2026-01-01T00:05:00Z,30,,20,,,\n";
        let found = parse(text).expect("a history");
        assert_eq!(found.routes[0].name, "shop");
        assert_eq!(found.samples[0].workers, Some(1.5));
        assert_eq!(found.samples[0].memory, Some(1e8));
        assert_eq!(found.samples[1].busy, None);
        assert!((f64::from(found.samples[1].routes[0]) - 20.0 / 300.0).abs() < 1e-6);
    }

    #[test]
    fn wrong_files_are_errors_with_line_and_hint() {
        for (text, expected) in [
            ("", "web.csv: the file is empty"),
            ("when,requests,cpu_seconds\n", "web.csv:1: the first line names no column `time`"),
            ("time,cpu_seconds\n", "web.csv:1: the first line names no column of requests"),
            ("time,requests\n", "web.csv:1: the first line names no column of CPU time"),
            ("time,requests,cpu_seconds\n1,2\n", "web.csv:2: 2 fields instead of 3"),
            (
                "time,requests,cpu_seconds\n1,2,NaN\n",
                "web.csv:2: `NaN` in column 3 is not a number",
            ),
            ("time,requests,cpu_seconds\n1,-2,1\n", "web.csv:2: `-2` in column 2"),
            ("time,requests,cpu_seconds\n1,inf,1\n", "web.csv:2: `inf` in column 2"),
            (
                "time,requests,cpu_seconds\n1,1e300,1\n",
                "web.csv:2: `1e300` in column 2 is too large",
            ),
            ("time,requests,cpu_seconds\nnow,2,1\n", "web.csv:2: `now` is not a time"),
            ("time,requests,cpu_percent\n1,2,400\n", "web.csv:2: 400 % of the CPUs"),
            ("time,requests,cpu_seconds\n5,2,1\n5,2,1\n", "web.csv:3: the time is not after"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
        }
        let long = format!("time,requests,cpu_seconds\n{}\n", "9".repeat(100_000));
        assert!(parse(&long).expect_err("too long").contains("longer than 65536 bytes"));
    }
}
