//! CPU use of a machine as `sar -u` prints it, or `sadf -d`.

use crate::calendar::{self, DAY};
use crate::lines::Lines;
use crate::problem::Problem;
use crate::samples::{Collector, Record};
use std::io::BufRead;

const HINT: &str = "create the file with `sadf -d -- -u` or `sar -u`, in the locale C";

/// Options of a file of sar.
#[derive(Clone, Copy, Debug)]
pub struct SarOptions {
    /// CPUs of the machine.
    pub threads: f64,
    /// Offset of times without one, in seconds.
    pub offset: i64,
}

/// Reads a file into a collector. `name` is part of messages.
pub fn read(
    name: &str,
    input: impl BufRead,
    options: SarOptions,
    to: &mut Collector,
) -> Result<(), Problem> {
    let mut lines = Lines::new(name, input);
    let mut reader = Reader { options, columns: Vec::new(), day: None, last: None, lines: 0 };
    while let Some(line) = lines.next()? {
        let line = line.trim();
        let done = if line.is_empty() {
            Ok(())
        } else if line.contains(';') {
            reader.sadf(line, to)
        } else {
            reader.sar(line, to)
        };
        done.map_err(|message| lines.problem(message, HINT))?;
    }
    if reader.lines == 0 {
        return Err(lines.whole("no line with the use of all CPUs", HINT));
    }
    Ok(())
}

struct Reader {
    options: SarOptions,
    /// Names of the columns from the CPU's on.
    columns: Vec<String>,
    /// Day of the next line of `sar`.
    day: Option<i64>,
    /// Time of the last line.
    last: Option<i64>,
    lines: u64,
}

impl Reader {
    /// `host;600;2026-11-28 00:10:01 UTC;-1;1.20;0.00;0.40;0.01;0.00;98.39`
    fn sadf(&mut self, line: &str, to: &mut Collector) -> Result<(), String> {
        let fields: Vec<_> = line.split(';').map(str::trim).collect();
        if line.starts_with('#') {
            self.columns = fields.iter().map(|field| (*field).to_owned()).collect();
            return Ok(());
        }
        if fields.get(3).is_some_and(|field| field.starts_with("LINUX-RESTART")) {
            return Ok(());
        }
        if self.columns.is_empty() {
            return Err("no line with the names of columns before it".to_owned());
        }
        let cpu = self.columns.iter().position(|name| name == "CPU").and_then(|at| fields.get(at));
        if cpu.is_some_and(|cpu| !matches!(*cpu, "-1" | "all")) {
            return Ok(());
        }
        let interval = fields.get(1).and_then(|text| text.parse::<i64>().ok());
        let interval = interval.filter(|seconds| *seconds > 0).ok_or("no interval in seconds")?;
        let time = fields.get(2).copied().unwrap_or_default();
        let end = calendar::time_of(time, self.options.offset)
            .ok_or_else(|| format!("`{time}` is not a time"))?;
        self.emit(&fields, end - interval, interval, to)
    }

    /// `12:10:01 AM     all      1.20      0.00      0.40      0.01      0.00     98.39`
    fn sar(&mut self, line: &str, to: &mut Collector) -> Result<(), String> {
        let words: Vec<_> = line.split_whitespace().collect();
        if words[0] == "Linux" {
            let day = words.iter().find_map(|word| sar_date(word));
            self.day = Some(day.ok_or("no date such as 2026-11-28 or 11/28/26")?);
            self.last = None;
            return Ok(());
        }
        if words[0].starts_with("Average") || line.contains("LINUX RESTART") {
            return Ok(());
        }
        let (clock, skip) = twelve_hours(&words)?;
        let rest = &words[skip..];
        if rest.contains(&"%idle") {
            self.columns = rest.iter().map(|word| (*word).to_owned()).collect();
            return Ok(());
        }
        if rest.first() != Some(&"all") {
            return Ok(());
        }
        let day = self.day.ok_or("no line `Linux … DATE …` before it")?;
        let mut end = day * DAY + clock - self.options.offset;
        if self.last.is_some_and(|last| end <= last) {
            self.day = Some(day + 1);
            end += DAY;
        }
        // The first line of a file has no interval of its own.
        let before = self.last.replace(end);
        let interval = before.map_or(0, |before| end - before);
        if interval == 0 {
            self.lines += 1;
            return Ok(());
        }
        self.emit(rest, end - interval, interval, to)
    }

    fn emit(
        &mut self,
        fields: &[&str],
        at: i64,
        seconds: i64,
        to: &mut Collector,
    ) -> Result<(), String> {
        let value = |wanted: &str| -> Result<Option<f64>, String> {
            let place = self.columns.iter().position(|name| name == wanted);
            let Some(text) = place.and_then(|place| fields.get(place)) else { return Ok(None) };
            // Some locales print a comma.
            let number = text.replace(',', ".").parse::<f64>().ok();
            let number = number.filter(|number| (0.0..=100.5).contains(number));
            number.map(Some).ok_or_else(|| format!("`{text}` is not a percentage"))
        };
        let idle = value("%idle")?.ok_or("no column %idle")?;
        let (waiting, stolen) = (value("%iowait")?.unwrap_or(0.0), value("%steal")?.unwrap_or(0.0));
        let cpu = |percent: f64| percent.max(0.0) / 100.0 * self.options.threads * seconds as f64;
        to.add(&Record {
            at,
            seconds,
            cpu: Some(cpu(100.0 - idle - waiting - stolen)),
            stolen: Some(cpu(stolen)),
            ..Record::default()
        });
        self.lines += 1;
        Ok(())
    }
}

/// Returns the seconds of `12:10:01`, or of `12:10:01 AM`, and the number of words.
fn twelve_hours(words: &[&str]) -> Result<(i64, usize), String> {
    let clock =
        calendar::clock_of(words[0]).ok_or_else(|| format!("`{}` is not a time", words[0]))?;
    Ok(match words.get(1) {
        Some(&"AM") => (clock % 43_200, 2),
        Some(&"PM") => (clock % 43_200 + 43_200, 2),
        _ => (clock, 1),
    })
}

fn sar_date(word: &str) -> Option<i64> {
    if let Some(day) = calendar::day_of(word) {
        return Some(day);
    }
    let parts: Vec<i64> = word.split('/').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [month, day, year] = parts[..] else { return None };
    calendar::checked(if year < 100 { 2000 + year } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::History;

    fn parse(text: &str) -> Result<History, String> {
        let mut to = Collector::default();
        // sar knows no requests.
        to.add(&Record { at: 0, seconds: 600, requests: Some(1.0), ..Record::default() });
        for n in 0..300 {
            let at = 20_785 * DAY + n * 600;
            to.add(&Record { at, seconds: 600, requests: Some(600.0), ..Record::default() });
        }
        let done =
            read("sar.txt", text.as_bytes(), SarOptions { threads: 4.0, offset: 0 }, &mut to);
        done.map(|()| to.finish()).map_err(|problem| problem.to_string())
    }

    fn busy(history: &History) -> Vec<f64> {
        history.samples.iter().filter_map(|sample| sample.busy).collect()
    }

    #[test]
    fn text_of_sar_is_read_over_midnight_and_restarts() {
        let text = "Linux 6.1.0 (web1) \t11/28/26 \t_x86_64_\t(4 CPU)\n\n\
            11:30:01 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n\
            11:40:01 PM     all     20.00      0.00      5.00      5.00      1.00     69.00\n\
            11:50:01 PM     all     20.00      0.00      5.00      5.00      1.00     69.00\n\
            11:50:01 PM       0     20.00      0.00      5.00      5.00      1.00     69.00\n\
            11:55:00 PM  LINUX RESTART\t(4 CPU)\n\
            12:00:01 AM     all     20.00      0.00      5.00      5.00      1.00     69.00\n\
            12:10:01 AM     all     20.00      0.00      5.00      5.00      1.00     69.00\n\
            Average:        all     20.00      0.00      5.00      5.00      1.00     69.00\n";
        let found = busy(&parse(text).expect("a history"));
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found.iter().all(|busy| (busy - 1.0).abs() < 1e-3), "{found:?}");
    }

    #[test]
    fn output_of_sadf_is_read() {
        let text = "# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle\n\
            web1;600;2026-11-28 00:10:00 UTC;-1;40.00;0.00;10.00;0.00;0.00;50.00\n\
            web1;-1;2026-11-28 00:15:00 UTC;LINUX-RESTART\t(4 CPU)\n\
            web1;600;2026-11-28 00:20:00 UTC;0;40.00;0.00;10.00;0.00;0.00;50.00\n\
            web1;600;2026-11-28 00:20:00 UTC;-1;40,00;0,00;10,00;0,00;0,00;50,00\n";
        let found = busy(&parse(text).expect("a history"));
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|busy| (busy - 2.0).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn wrong_files_are_errors_with_line_and_hint() {
        for (text, expected) in [
            ("", "sar.txt: no line with the use of all CPUs"),
            ("hello world\n", "sar.txt:1: `hello` is not a time"),
            ("Linux 6.1 (a) yesterday\n", "sar.txt:1: no date"),
            ("12:00:01 all 1 2 3\n", "sar.txt:1: no line `Linux"),
            ("web1;600;2026-11-28 00:10:00 UTC;-1;1\n", "sar.txt:1: no line with the names"),
            (
                "# hostname;interval;timestamp;CPU;%idle\nw;x;2026-11-28;-1;1\n",
                "sar.txt:2: no inter",
            ),
            (
                "# hostname;interval;timestamp;CPU;%idle\nw;600;2026-11-28 00:00:00;-1;NaN\n",
                "sar.txt:2: `NaN` is not a percentage",
            ),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(expected) && error.contains("\nhint: "), "{error}");
        }
    }
}
