//! Result of an experiment, as text and as JSON.

use super::estimate::{Change, Difference, Figure, Subject};
use super::round::Pair;
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum number of routes in the first line.
const NAMES_MAX: usize = 3;
/// Maximum number of different responses that are shown.
const ANSWERS_SHOWN_MAX: usize = 20;
/// Maximum number of routes in the table.
const ROWS_MAX: usize = 30;
/// Half of an interval from which on it says little.
const HALF_WIDE: f64 = 0.05;
/// Half of an interval from which on its width is not shown.
const HALF_SHOWN_MAX: f64 = 1.0;
const MIB: f64 = 1_048_576.0;

/// Conclusion of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// No interval excludes 0.
    NoDifference,
    /// Some figures are lower, none is higher.
    Better,
    /// Some figures are higher, or responses differ.
    Worse,
    /// There were too few rounds.
    TooFewRounds,
}

/// A response that differs in a way in which responses without the change do not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TargetDifference {
    /// Name of the route.
    pub route: String,
    /// Method and path.
    pub target: String,
    /// Head, body, or the failure.
    pub part: String,
    /// Text without the change.
    pub before: String,
    /// Text with the change.
    pub after: String,
    /// With the change the text is always the same, and without it never.
    pub is_constant: bool,
}

/// Comparison of the responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answers {
    /// Number of different requests whose responses were compared.
    pub compared: u64,
    /// Number of those that differ.
    pub different: u64,
    /// Requests without a complete response: without and with the change.
    pub failed: [u64; 2],
    /// The differences.
    pub differences: Vec<TargetDifference>,
}

/// Result of an experiment.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The change, as typed.
    pub change: String,
    /// Conclusion.
    pub outcome: Outcome,
    /// All requests, then each route.
    pub subjects: Vec<Subject>,
    /// Time of the boot, ms.
    pub boot_ms: Figure,
    /// Memory of a worker that it shares with no process, bytes.
    pub worker_bytes: Figure,
    /// Number of rounds.
    pub rounds: usize,
    /// Duration, s.
    pub seconds: f64,
    /// Reason of the end.
    pub ended: &'static str,
    /// Source of the requests.
    pub source: String,
    /// Requests that are not sent: number and reason.
    pub left_out: Vec<(u64, String)>,
    /// Comparison of the responses.
    pub answers: Answers,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Found {
    /// Sets the conclusion.
    #[must_use]
    pub fn concluded(mut self) -> Found {
        let changes: Vec<Change> = self
            .subjects
            .iter()
            .flat_map(|one| [one.cpu_us.difference, one.p50_us.difference])
            .map(|found| found.map_or(Change::None, |found| found.change))
            .collect();
        let is_known = self.subjects.first().is_some_and(|all| all.p50_us.difference.is_some());
        let has_failed = self.answers.failed[1] > self.answers.failed[0];
        self.outcome = if has_failed || self.answers.different > 0 {
            Outcome::Worse
        } else if !is_known {
            Outcome::TooFewRounds
        } else if changes.contains(&Change::More) {
            Outcome::Worse
        } else if changes.contains(&Change::Less) {
            Outcome::Better
        } else {
            Outcome::NoDifference
        };
        self
    }

    /// Returns the text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}: {}\n\n", self.change, self.headline());
        self.table(&mut text);
        text.push('\n');
        let boot = self.boot_ms;
        let _ = writeln!(
            text,
            "  boot       {:.0} ms → {:.0} ms{}",
            boot.value.before,
            boot.value.after,
            in_brackets(boot.difference)
        );
        let memory = self.worker_bytes;
        if memory.value.before > 0.0 {
            let _ = writeln!(
                text,
                "  memory     {:.1} MiB → {:.1} MiB{} of one worker, not shared",
                memory.value.before / MIB,
                memory.value.after / MIB,
                in_brackets(memory.difference)
            );
        }
        self.answers_text(&mut text);
        let _ = writeln!(text, "  requests   {}", self.source);
        for (count, reason) in &self.left_out {
            let _ = writeln!(text, "             {count} not sent: {reason}");
        }
        let sent = self.subjects.first().map_or(0, |all| all.requests);
        let _ = writeln!(
            text,
            "  measured   {sent} pairs of requests in {} rounds, {:.0} s; ended by {}",
            self.rounds, self.seconds, self.ended
        );
        for note in &self.notes {
            let _ = writeln!(text, "  note       {note}");
        }
        text
    }

    /// The result in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let answers = match (self.answers.different, self.answers.failed[1]) {
            (0, failed) if failed > self.answers.failed[0] => {
                format!("{failed} requests fail; ")
            }
            (0, _) => String::new(),
            (1, _) => "1 response differs; ".to_owned(),
            (count, _) => format!("{count} responses differ; "),
        };
        let all = self.subjects.first();
        let Some(all) = all.filter(|all| all.p50_us.difference.is_some()) else {
            return answers + "too few rounds for a result";
        };
        let cpu = claim(&self.subjects, |one| one.cpu_us.difference)
            .map(|text| format!("CPU time {text}"));
        let wall = claim(&self.subjects, |one| one.p50_us.difference)
            .map(|text| format!("response time {text}"));
        let claims: Vec<String> = cpu.into_iter().chain(wall).collect();
        if !claims.is_empty() {
            return answers + &claims.join("; ");
        }
        let half = all.cpu_us.difference.or(all.p50_us.difference).map_or(0.0, |it| it.half());
        if half > HALF_WIDE {
            return format!(
                "{answers}no difference found, but the interval is wide (± {:.0} %): use a longer \
                 --time, or a machine without other work",
                100.0 * half
            );
        }
        format!("{answers}no difference in CPU and response time (± {:.1} %)", 100.0 * half)
    }

    fn table(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "  {:>8}  {:>17}  {:<23}  {:>17}  {:<23}  {:>17}  route",
            "requests", "CPU µs", "difference", "p50 ms", "difference", "p99 ms"
        );
        for one in self.subjects.iter().take(ROWS_MAX + 1) {
            let ms =
                |pair: Pair| values(Pair { before: pair.before / 1e3, after: pair.after / 1e3 });
            let name = if one.route.is_empty() { "(all)" } else { &one.route };
            let _ = writeln!(
                text,
                "  {:>8}  {:>17}  {:<23}  {:>17}  {:<23}  {:>17}  {name}",
                one.requests,
                values(one.cpu_us.value),
                verdict(one.cpu_us.difference),
                ms(one.p50_us.value),
                verdict(one.p50_us.difference),
                ms(one.p99_us),
            );
        }
        if self.subjects.len() > ROWS_MAX + 1 {
            let more = self.subjects.len() - ROWS_MAX - 1;
            let _ = writeln!(text, "  … {more} more routes; --json has all");
        }
    }

    fn answers_text(&self, text: &mut String) {
        let Answers { compared, different, failed, differences } = &self.answers;
        let _ = match different {
            0 => writeln!(text, "  responses  the same, compared for {compared} of the requests"),
            _ => writeln!(text, "  responses  DIFFER for {different} of {compared} requests"),
        };
        if failed[0] + failed[1] > 0 {
            let _ = writeln!(
                text,
                "             without a complete response: {} before, {} with the change",
                failed[0], failed[1]
            );
        }
        for one in differences.iter().take(ANSWERS_SHOWN_MAX) {
            let constant = if one.is_constant { ", always the same with the change" } else { "" };
            let _ = writeln!(
                text,
                "    {} ({}), {}{constant}\n      - {}\n      + {}",
                one.target, one.route, one.part, one.before, one.after
            );
        }
        if differences.len() > ANSWERS_SHOWN_MAX {
            let more = differences.len() - ANSWERS_SHOWN_MAX;
            let _ = writeln!(text, "    … {more} more differences; --json has all");
        }
    }
}

/// Names the routes whose figure has changed; `None`: none has.
fn claim(subjects: &[Subject], of: fn(&Subject) -> Option<Difference>) -> Option<String> {
    let clear = |one: &Subject| of(one).filter(|found| found.change != Change::None);
    let (all, routes) = subjects.split_first()?;
    let found: Vec<(&str, Difference)> =
        routes.iter().filter_map(|one| Some((&*one.route, clear(one)?))).collect();
    if found.is_empty() {
        let found = clear(all)?;
        return Some(format!("{} over all requests, no route alone", signed(found)));
    }
    let mut named: Vec<String> = found
        .iter()
        .take(NAMES_MAX)
        .map(|(route, found)| format!("{} on {route}", signed(*found)))
        .collect();
    if found.len() > NAMES_MAX {
        named.push(format!("and on {} more routes", found.len() - NAMES_MAX));
    }
    let rest = if found.len() < routes.len() { ", nothing elsewhere" } else { "" };
    Some(named.join(", ") + rest)
}

/// A difference such as `+4.1 % ± 0.6`.
fn signed(found: Difference) -> String {
    let percent = 100.0 * found.fraction;
    if found.half() > HALF_SHOWN_MAX {
        return format!("{percent:+.1} % ± over 100");
    }
    format!("{percent:+.1} % ± {:.1}", 100.0 * found.half())
}

fn verdict(found: Option<Difference>) -> String {
    let Some(found) = found else { return "unknown".to_owned() };
    let word = match found.change {
        Change::None => "",
        Change::Less => " faster",
        Change::More => " slower",
    };
    signed(found) + word
}

fn in_brackets(found: Option<Difference>) -> String {
    match found.filter(|found| found.change != Change::None) {
        Some(found) => format!(" ({})", signed(found)),
        None => String::new(),
    }
}

fn values(pair: Pair) -> String {
    let one = |value: f64| match value {
        0.0 => "unknown".to_owned(),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    };
    format!("{} → {}", one(pair.before), one(pair.after))
}

#[cfg(test)]
mod tests {
    use super::super::{Experiment, Measured, Request, Side};
    use super::*;

    /// Result of rounds in which the server with the change takes `factors` times as long.
    fn found(factors: &[f64], answers: Answers) -> Found {
        let mut experiment = Experiment::default();
        for factor in factors {
            let mut requests = Vec::new();
            for (route, factor) in [("/a", *factor), ("/b", 1.0)] {
                for (side, factor) in [(Side::Before, 1.0), (Side::After, factor)] {
                    let us = 1_000.0 * factor;
                    let route = route.to_owned();
                    requests.push(Request { route, side, block: 0, cpu_us: Some(us), wall_us: us });
                }
            }
            experiment.add(&Measured { requests, ..Measured::default() });
        }
        let (boot_ms, worker_bytes) = experiment.boot_and_memory();
        Found {
            change: "a=b".to_owned(),
            outcome: Outcome::TooFewRounds,
            subjects: experiment.subjects(),
            boot_ms,
            worker_bytes,
            rounds: experiment.rounds(),
            seconds: 1.0,
            ended: "--time",
            source: "2 URLs".to_owned(),
            left_out: vec![(1, "POST".to_owned())],
            answers,
            notes: Vec::new(),
        }
        .concluded()
    }

    #[test]
    fn headline_names_the_changed_route() {
        let slower = found(&[1.1, 1.1, 1.1], Answers::default());
        assert_eq!(slower.outcome, Outcome::Worse);
        let headline = slower.headline();
        assert!(
            headline.starts_with("CPU time +10.0 % ± 0.2 on /a, nothing elsewhere"),
            "{headline}"
        );
        let text = slower.text();
        assert!(text.contains("slower") && text.contains("1 not sent: POST"), "{text}");
        let faster = found(&[0.9, 0.9, 0.9], Answers::default());
        assert_eq!(faster.outcome, Outcome::Better);
        assert!(faster.headline().starts_with("CPU time -10.0 %"), "{}", faster.headline());
    }

    #[test]
    fn headline_without_a_change_has_the_width() {
        let equal = found(&[1.0, 1.001, 1.0, 0.999], Answers::default());
        assert_eq!(equal.outcome, Outcome::NoDifference);
        assert!(equal.headline().starts_with("no difference in CPU and response time (± 0."));
        let wide = found(&[1.0, 3.0, 0.4], Answers::default());
        assert!(wide.headline().contains("the interval is wide"), "{}", wide.headline());
        assert!(wide.text().contains("± over 100"), "{}", wide.text());
        let short = found(&[1.5], Answers::default());
        assert_eq!(short.outcome, Outcome::TooFewRounds);
        assert_eq!(short.headline(), "too few rounds for a result");
    }

    #[test]
    fn different_or_failed_responses_are_worse() {
        let differences = vec![TargetDifference {
            route: "/a".to_owned(),
            target: "GET /a".to_owned(),
            part: "body".to_owned(),
            before: "[x]".to_owned(),
            after: "[y]".to_owned(),
            is_constant: true,
        }];
        let answers = Answers { compared: 2, different: 1, differences, ..Answers::default() };
        let shown = found(&[0.9, 0.9, 0.9], answers);
        assert_eq!(shown.outcome, Outcome::Worse);
        assert!(shown.headline().starts_with("1 response differs; CPU time -10.0 %"));
        assert!(shown.text().contains("always the same with the change"), "{}", shown.text());
        let failed = found(&[1.0], Answers { failed: [0, 3], ..Answers::default() });
        assert_eq!(failed.outcome, Outcome::Worse);
        assert!(failed.headline().starts_with("3 requests fail; "), "{}", failed.headline());
    }
}
