//! Results → a verdict, a table, or JSON.

use super::diff::Difference;
use super::page::{Page, Side};
use crate::control_client::printable;
use samovar_wire::ImageStatus;
use serde::Serialize;
use std::fmt::Write as _;

/// Maximum number of differences per URL in the table; JSON has more.
const SHOWN_MAX: usize = 3;

/// Final report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    verdict: String,
    /// `checkpoint` or `resident`.
    model: String,
    rounds: u32,
    alike: usize,
    /// CPU time of the model as a fraction of the scripts', over all URLs.
    cpu_ratio: Option<f64>,
    /// Interval of that fraction (95 %); `null` with too few rounds.
    cpu_ratio_interval: Option<[f64; 2]>,
    urls: Vec<PageLine>,
    image: Option<ImageLine>,
}

/// Results of one URL.
#[derive(Debug, Serialize)]
struct PageLine {
    url: String,
    alike: bool,
    script: SideLine,
    booted: SideLine,
    cpu_ratio: Option<f64>,
    cpu_ratio_interval: Option<[f64; 2]>,
    differences: Vec<DifferenceLine>,
}

#[derive(Debug, Serialize)]
struct SideLine {
    status: Option<u16>,
    cpu_us: Option<f64>,
    /// Standard error of `cpu_us`; `null` with too few rounds.
    cpu_error_us: Option<f64>,
    errors: u32,
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct DifferenceLine {
    /// `head` or `body`.
    part: &'static str,
    /// `differs`, or `constant`.
    kind: &'static str,
    script: String,
    booted: String,
}

/// State of the image after all rounds.
#[derive(Debug, Serialize)]
struct ImageLine {
    mode: String,
    rollback_us_p50: f64,
    /// Workers that were replaced after a request.
    reforks: u64,
    refork_reasons: std::collections::BTreeMap<String, u64>,
    findings: Vec<String>,
}

impl Report {
    pub(super) fn of(
        pages: &[Page],
        model: &str,
        rounds: u32,
        image: Option<ImageStatus>,
    ) -> Report {
        let urls: Vec<_> = pages.iter().map(PageLine::of).collect();
        let alike = urls.iter().filter(|line| line.alike).count();
        let ratio = total_ratio(&urls);
        let verdict = verdict(model, alike, urls.len(), ratio);
        let cpu_ratio = ratio.map(|ratio| rounded(ratio.value));
        let cpu_ratio_interval = ratio.and_then(Ratio::interval);
        let (model, image) = (model.to_owned(), image.map(ImageLine::of));
        Report { verdict, model, rounds, alike, cpu_ratio, cpu_ratio_interval, urls, image }
    }

    pub(super) fn are_alike(&self) -> bool {
        self.alike == self.urls.len()
    }

    pub(super) fn json(&self) -> String {
        // Numbers, strings, and maps with string keys always serialize.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    pub(super) fn text(&self) -> String {
        let booted = format!("{} µs", self.model);
        let width = booted.chars().count();
        let mut out = format!("{}\n\n", self.verdict);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{:>10}  {booted:>width$}  {:>5}  {:<12}  {:<14} URL",
            "script µs", "ratio", "interval", "response"
        );
        for line in &self.urls {
            let (script, own) = (micros(line.script.cpu_us), micros(line.booted.cpu_us));
            let ratio = line.cpu_ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
            let interval = line.cpu_ratio_interval.map_or_else(String::new, in_words);
            let response = line.respond();
            let _ = writeln!(
                out,
                "{script:>10}  {own:>width$}  {ratio:>5}  {interval:<12}  {response:<14} {}",
                line.url
            );
            line.explain(&self.model, &mut out);
        }
        if let Some(image) = &self.image {
            image.explain(&mut out);
        }
        // The text comes from applications, and a terminal must not interpret it.
        printable(&out)
    }
}

fn verdict(model: &str, alike: usize, of: usize, ratio: Option<Ratio>) -> String {
    let interval = ratio.and_then(Ratio::interval);
    let is_chance = interval.is_some_and(|[low, high]| low <= 1.0 && high >= 1.0);
    let interval = interval.map_or_else(String::new, |of| format!(" ({})", in_words(of)));
    let chance = if is_chance { " (the difference may be chance)" } else { "" };
    let cpu = ratio.map_or(String::new(), |Ratio { value, .. }| {
        format!(", with {value:.2}{interval} of the CPU time of scripts{chance}")
    });
    match (alike, of) {
        (1, 1) => format!("{model}: the response of the URL is the same as a script's{cpu}"),
        (alike, of) if alike == of => {
            format!("{model}: the responses of all {of} URLs are the same as a script's{cpu}")
        }
        (alike, of) => {
            format!(
                "{model}: the responses of {} of {of} URLs differ from a script's{cpu}",
                of - alike
            )
        }
    }
}

/// Number of standard errors on each side of a ratio within which the true one is with a
/// probability of 95 %.
const ERRORS_OF_95: f64 = 1.96;

/// A quotient of two CPU times.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    value: f64,
    /// Standard error; `None`: unknown.
    error: Option<f64>,
}

impl Ratio {
    /// Divides sums of CPU times. Each has its standard error.
    fn of(booted: (f64, Option<f64>), script: (f64, Option<f64>)) -> Option<Ratio> {
        let value = (script.0 > 0.0 && booted.0 > 0.0).then(|| booted.0 / script.0)?;
        let relative = |(mean, error): (f64, Option<f64>)| Some(error? / mean);
        let error = relative(booted)
            .zip(relative(script))
            .map(|(a, b)| value * (a.powi(2) + b.powi(2)).sqrt());
        Some(Ratio { value, error })
    }

    /// Returns the interval that contains the true ratio with a probability of 95 %.
    fn interval(self) -> Option<[f64; 2]> {
        let half = ERRORS_OF_95 * self.error?;
        Some([(self.value - half).max(0.0), self.value + half].map(rounded))
    }
}

/// Formats an interval.
fn in_words([low, high]: [f64; 2]) -> String {
    format!("{low:.2} to {high:.2}")
}

/// Uses only the URLs with results of both models.
fn total_ratio(urls: &[PageLine]) -> Option<Ratio> {
    let both = urls.iter().filter(|line| line.script.cpu_us.and(line.booted.cpu_us).is_some());
    let both: Vec<_> = both.collect();
    let sum = |side: fn(&PageLine) -> &SideLine| {
        let sides = both.iter().map(|line| side(line));
        let errors: Option<Vec<f64>> = sides.clone().map(|side| side.cpu_error_us).collect();
        let squares = errors.map(|all| all.into_iter().map(|error| error.powi(2)).sum::<f64>());
        let error = squares.map(f64::sqrt);
        (sides.filter_map(|side| side.cpu_us).sum::<f64>(), error)
    };
    Ratio::of(sum(|line| &line.booted), sum(|line| &line.script))
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

fn micros(us: Option<f64>) -> String {
    us.map_or("–".to_owned(), |us| format!("{us:.0}"))
}

impl PageLine {
    fn of(page: &Page) -> PageLine {
        let differences: Vec<_> = page.differences().iter().map(DifferenceLine::of).collect();
        let (script, booted) = (SideLine::of(&page.script), SideLine::of(&page.booted));
        let cost = |side: &SideLine| Some((side.cpu_us?, side.cpu_error_us));
        let costs = cost(&booted).zip(cost(&script));
        let ratio = costs.and_then(|(booted, script)| Ratio::of(booted, script));
        let target = &page.target;
        PageLine {
            url: if target.is_local() { target.path.clone() } else { target.to_string() },
            alike: differences.is_empty() && script.errors == 0 && booted.errors == 0,
            script,
            booted,
            cpu_ratio: ratio.map(|ratio| rounded(ratio.value)),
            cpu_ratio_interval: ratio.and_then(Ratio::interval),
            differences,
        }
    }

    fn respond(&self) -> String {
        let status = |side: &SideLine| side.status.map_or("none".to_owned(), |s| s.to_string());
        let (script, booted) = (status(&self.script), status(&self.booted));
        match self.alike {
            true => format!("{script} alike"),
            false if script == booted => format!("{script} DIFFERS"),
            false => format!("{script} / {booted}"),
        }
    }

    fn explain(&self, model: &str, out: &mut String) {
        for (name, side) in [("script", &self.script), (model, &self.booted)] {
            if let Some(error) = &side.error {
                let _ = writeln!(out, "    {name}: {} requests failed: {error}", side.errors);
            }
        }
        let width = model.len().max("script".len());
        for found in self.differences.iter().take(SHOWN_MAX) {
            let what = match found.kind {
                "differs" => "differs",
                _ => "constant, but different in each script's response",
            };
            let _ = writeln!(out, "    {}, {what}:", found.part);
            let _ = writeln!(out, "      {:<width$}  {}", "script", found.script);
            let _ = writeln!(out, "      {model:<width$}  {}", found.booted);
        }
        let more = self.differences.len().saturating_sub(SHOWN_MAX);
        if more > 0 {
            let _ = writeln!(out, "    and {more} more (--json)");
        }
    }
}

impl SideLine {
    fn of(side: &Side) -> SideLine {
        let (cost, tenths) = (side.cost(), |us: f64| (us * 10.0).round() / 10.0);
        SideLine {
            status: side.status,
            cpu_us: cost.map(|(us, _)| tenths(us)),
            cpu_error_us: cost.and_then(|(_, error)| error),
            errors: side.errors,
            error: side.error.clone(),
        }
    }
}

impl DifferenceLine {
    fn of((part, found): &(&'static str, Difference)) -> DifferenceLine {
        DifferenceLine {
            part,
            kind: if found.stands_still { "constant" } else { "differs" },
            script: found.script.clone(),
            booted: found.booted.clone(),
        }
    }
}

impl ImageLine {
    fn of(image: ImageStatus) -> ImageLine {
        let findings = image.findings.iter().map(|f| {
            let place = if f.place.is_empty() { String::new() } else { format!(" ({})", f.place) };
            format!("{}: {}{place}: {}", f.kind, f.what, f.advice)
        });
        ImageLine {
            findings: findings.collect(),
            mode: image.mode,
            rollback_us_p50: image.rollback_us_p50,
            reforks: image.refork_total,
            refork_reasons: image.refork_reasons,
        }
    }

    fn explain(&self, out: &mut String) {
        let reasons: Vec<_> =
            self.refork_reasons.iter().filter(|(why, _)| *why != "checkpoint").collect();
        if self.reforks > 0 && !reasons.is_empty() {
            let each: Vec<_> = reasons.iter().map(|(why, n)| format!("{why} {n}")).collect();
            let _ = writeln!(out, "\nworkers that exited after a request: {}", each.join(", "));
        }
        if !self.findings.is_empty() {
            let _ = writeln!(out, "\nfindings at the checkpoint:");
        }
        for finding in &self.findings {
            let _ = writeln!(out, "  {finding}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_has_interval_if_both_errors_are_known() {
        let of = |booted, script| Ratio::of(booted, script).map(Ratio::interval);
        assert_eq!(of((30.0, Some(3.0)), (100.0, Some(0.0))), Some(Some([0.241, 0.359])));
        assert_eq!(of((30.0, None), (100.0, Some(1.0))), Some(None));
        assert_eq!(of((30.0, None), (0.0, None)), None);
    }

    #[test]
    fn verdict_is_one_line() {
        let check = |alike, of, ratio, expected: &str| {
            assert_eq!(verdict("checkpoint", alike, of, ratio), expected);
        };
        check(
            12,
            12,
            Some(Ratio { value: 0.412, error: None }),
            "checkpoint: the responses of all 12 URLs are the same as a script's, with 0.41 of \
             the CPU time of scripts",
        );
        check(
            1,
            1,
            Some(Ratio { value: 0.98, error: Some(0.02) }),
            "checkpoint: the response of the URL is the same as a script's, with 0.98 (0.94 to \
             1.02) of the CPU time of scripts (the difference may be chance)",
        );
        check(1, 1, None, "checkpoint: the response of the URL is the same as a script's");
        check(11, 12, None, "checkpoint: the responses of 1 of 12 URLs differ from a script's");
    }
}
