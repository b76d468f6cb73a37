//! Results → a verdict with its reasons, or JSON.

use super::judge::{Verdict, verdict};
use super::series::Series;
use super::trend::{Trend, trends};
use crate::control_client::printable;
use crate::trial::targets::Target;
use serde::Serialize;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;

/// Maximum number of lines per section for people; JSON has more.
const SHOWN_MAX: usize = 20;
/// Maximum number of findings in a report.
const FINDINGS_MAX: usize = 5000;
/// Maximum number of URLs per finding for people; JSON has more.
const URLS_SHOWN_MAX: usize = 3;
/// Maximum number of URLs per finding.
const URLS_MAX: usize = 100;
/// Probability that a leak of the reported rarity is seen.
const CONFIDENCE: f64 = 0.95;
const BYTES: [&str; 2] = ["byte", "bytes"];

/// Final report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    verdict: String,
    /// `checkpoint` or `resident`.
    model: &'static str,
    requests: usize,
    problems: usize,
    findings: Vec<Finding>,
    warmup: Vec<Warmup>,
    /// Requests without a valid response or without a heap walk.
    failures: Vec<String>,
    /// Smallest number of repeated requests of a URL.
    repeats: usize,
    /// A leak in fewer than 1 of this number of requests of a URL can be unseen, with a probability
    /// of 5 %.
    rarest_leak_seen: usize,
    /// Whether a limit was reached, so that data is missing.
    incomplete: bool,
}

/// Finding about one name.
#[derive(Debug, Serialize)]
struct Finding {
    verdict: Verdict,
    /// Kind as text: `static property` and others.
    kind: &'static str,
    name: String,
    /// Class and property of the object that holds it.
    owner: Option<String>,
    /// Number of further findings with the same owner or name, which are not listed.
    more: usize,
    before: Option<String>,
    after: Option<String>,
    /// Number of heap walks that show a change.
    changes: usize,
    /// URLs whose repetition grows it or changes it; the URL that does so most is first.
    urls: Vec<UrlShare>,
    /// Elements, bytes of a string, objects or descriptors, per request that changed it.
    grown_per_request: f64,
    bytes_per_request: f64,
    /// `file:line` of the declaration, or of the call that changed it.
    place: Option<String>,
}

/// Share of a URL in a finding.
#[derive(Debug, Serialize)]
struct UrlShare {
    url: String,
    /// Number of its repeated requests that grew or changed the value, of those that were compared
    /// with the request before.
    requests: usize,
    of: usize,
    /// Number of all its repeated requests.
    up_to: usize,
    grown_per_request: f64,
}

/// A target for the setting `warmup`.
#[derive(Debug, Serialize)]
struct Warmup {
    target: String,
    /// Number of classes and functions that it loads and that the targets before it do not.
    loads: usize,
}

impl Report {
    pub(super) fn of(series: &Series, targets: &[Target], failures: Vec<String>) -> Report {
        let mut findings: Vec<_> = findings(series, targets);
        let names_growth = |f: &Finding| f.verdict == Verdict::Grows && f.kind != "memory";
        if findings.iter().any(names_growth) {
            // The memory growth is the content of these findings.
            findings.retain(|finding| finding.kind != "memory");
        }
        findings.sort_by(|a, b| {
            let bytes = b.bytes_per_request.total_cmp(&a.bytes_per_request);
            a.verdict.cmp(&b.verdict).then(bytes).then(a.name.cmp(&b.name))
        });
        let mut findings = merged(findings);
        let incomplete = series.cut || findings.len() > FINDINGS_MAX;
        findings.truncate(FINDINGS_MAX);
        let problems = findings.iter().filter(|finding| finding.verdict.is_problem()).count();
        let warmup = series.warmup(targets);
        let repeats = (0..targets.len()).map(|url| series.steps.repeats(url)).min().unwrap_or(0);
        Report {
            verdict: sentence(&findings, series.resident),
            model: if series.resident { "resident" } else { "checkpoint" },
            requests: series.steps.requests(),
            problems,
            findings,
            warmup: warmup.into_iter().map(|(target, loads)| Warmup { target, loads }).collect(),
            failures,
            repeats,
            rarest_leak_seen: rarest_seen(repeats),
            incomplete,
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.problems == 0 && self.failures.is_empty()
    }

    pub(super) fn json(&self) -> String {
        // Numbers, strings, and maps with string keys always serialize.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    pub(super) fn text(&self) -> String {
        let mut out = format!("{} ({} requests)\n", self.verdict, self.requests);
        if self.model == "resident" {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "Each URL was repeated {} times or more: a leak in 1 of {} of its requests is \
                 seen with a probability of {:.0} %, a rarer one may be unseen (--times)",
                self.repeats,
                self.rarest_leak_seen,
                CONFIDENCE * 100.0
            );
        }
        for verdict in PARTS {
            self.part(verdict, &mut out);
        }
        self.tell_warmup(&mut out);
        for failure in self.failures.iter().take(SHOWN_MAX) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "\nfailed: {failure}");
        }
        if self.incomplete {
            out += "\nA limit was reached: the report is incomplete.\n";
        }
        // The text comes from applications, and a terminal must not interpret it.
        printable(&out)
    }

    fn part(&self, verdict: Verdict, out: &mut String) {
        let of_it: Vec<_> = self.findings.iter().filter(|f| f.verdict == verdict).collect();
        if of_it.is_empty() || verdict == Verdict::Lazy {
            return;
        }
        let _ = writeln!(out, "\n{}", heading(verdict, self.model == "resident"));
        for finding in of_it.iter().take(SHOWN_MAX) {
            finding.tell(out);
        }
        if of_it.len() > SHOWN_MAX {
            let _ = writeln!(out, "  and {} more (--json)", of_it.len() - SHOWN_MAX);
        }
        if verdict == Verdict::Grows {
            *out += "  A cache with room for more than was added here looks the same: raise \
                     --times-max to distinguish them\n";
        }
    }

    fn tell_warmup(&self, out: &mut String) {
        let Some(most) = self.warmup.first() else { return };
        let total: usize = self.warmup.iter().map(|line| line.loads).sum();
        let targets: Vec<_> = self.warmup.iter().map(|w| format!("{:?}", w.target)).collect();
        let _ = writeln!(
            out,
            "\nRequests load {total} classes and functions that the boot does not load ({} of \
             them {}). Add to samovar.toml:\n  warmup = [{}]",
            most.loads,
            most.target,
            targets.join(", ")
        );
    }
}

const PARTS: [Verdict; 7] = [
    Verdict::Grows,
    Verdict::Carries,
    Verdict::Stays,
    Verdict::Declares,
    Verdict::PutBack,
    Verdict::GrowsByUrl,
    Verdict::Kept,
];

fn heading(verdict: Verdict, resident: bool) -> &'static str {
    match verdict {
        Verdict::Grows => "Grows as long as a URL is repeated: a leak",
        Verdict::Carries => "Different after each request: carried over to the next request",
        Verdict::Stays => "Process settings that a request changes and does not restore",
        Verdict::Declares => {
            "Declared by a request, in code loaded by the boot: an error at the second request, \
             unless guarded"
        }
        Verdict::PutBack => {
            "Changed by requests; Samovar restores it after each request, other servers do not"
        }
        Verdict::GrowsByUrl => "Grows with each new URL: bounded only if the URLs are",
        Verdict::Kept if resident => "Changed by the first request and kept: caches",
        Verdict::Kept => {
            "The same after each request: a cache, or a growing value (each request here begins \
             with the image)"
        }
        Verdict::Lazy => "Loaded by requests",
    }
}

fn findings(series: &Series, targets: &[Target]) -> Vec<Finding> {
    let mut found = Vec::new();
    for ((kind, name), noted) in &series.changes {
        let changes: Vec<_> = noted.iter().map(|(step, change)| (*step, change)).collect();
        let Some(verdict) = verdict(&series.steps, &changes, &series.boot) else { continue };
        let Some((_, last)) = noted.last() else { continue };
        let mean = |of: &dyn Fn(usize) -> i64| {
            let step = |n: &usize| series.steps.at(noted[*n].0);
            // Data built by the first request is not growth.
            let repeated = (0..noted.len()).filter(|n| step(n).repeat > 0 && step(n).span == 1);
            let counted: Vec<_> = match repeated.collect::<Vec<_>>() {
                none if none.is_empty() => (0..noted.len()).collect(),
                some => some,
            };
            mean(counted.iter().map(|n| of(*n)).sum(), counted.len())
        };
        found.push(Finding {
            verdict,
            kind: word(*kind),
            name: name.clone(),
            owner: last.owner.as_ref().map(|(class, property)| format!("{class}->{property}")),
            more: 0,
            before: noted[0].1.before.clone(),
            after: noted.iter().rev().find_map(|(_, change)| change.after.clone()),
            changes: noted.len(),
            urls: urls(verdict, trends(&series.steps, &changes), targets),
            grown_per_request: mean(&|n| noted[n].1.grown),
            bytes_per_request: mean(&|n| noted[n].1.bytes),
            place: series.places.of(last),
        });
    }
    found
}

/// Returns the URLs that cause a finding. Only those that leak are named for a leak.
fn urls(verdict: Verdict, mut trends: Vec<Trend>, targets: &[Target]) -> Vec<UrlShare> {
    let grows = verdict == Verdict::Grows;
    if grows {
        // The growth by one of them is proven; the others were repeated less often.
        trends.retain(|trend| trend.is_leak() || (trend.is_open() && trend.grew > 1));
    }
    let count = |trend: &Trend| if grows { trend.grew_singly } else { trend.changed_singly };
    // Compares fractions of the URLs' requests.
    let share = |trend: &Trend| count(trend) * 1_000_000 / trend.singles.max(1);
    trends.sort_by_key(|trend| (std::cmp::Reverse(share(trend)), trend.url));
    let share = |trend: &Trend| UrlShare {
        url: shown(&targets[trend.url]),
        requests: count(trend),
        of: trend.singles,
        up_to: trend.requests,
        grown_per_request: mean(trend.grown, trend.requests),
    };
    trends.iter().take(URLS_MAX).map(share).collect()
}

fn shown(target: &Target) -> String {
    if target.is_local() { target.path.clone() } else { target.to_string() }
}

fn mean(total: i64, n: usize) -> f64 {
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    let mean = total as f64 / n.max(1) as f64;
    (mean * 10.0).round() / 10.0
}

/// Returns the number n of a leak in 1 of n requests that this number of requests makes visible.
fn rarest_seen(repeats: usize) -> usize {
    #[allow(clippy::cast_precision_loss)] // Far below 2^52.
    let rate = 1.0 - (1.0 - CONFIDENCE).powf(1.0 / repeats.max(1) as f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive and small.
    let n = (1.0 / rate).floor() as usize;
    n.max(1)
}

/// Merges findings with the same owner: they are parts of the same data.
fn merged(findings: Vec<Finding>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut places = HashMap::<_, usize>::new();
    for finding in findings {
        let root = finding.name.split(['[', '>']).next().unwrap_or_default().to_owned();
        let owner = finding.owner.clone().unwrap_or(root);
        match places.entry((finding.verdict, finding.kind, owner)) {
            Entry::Occupied(at) => found[*at.get()].more += 1,
            Entry::Vacant(at) => {
                at.insert(found.len());
                found.push(finding);
            }
        }
    }
    found
}

/// Returns the name of a kind, a letter of walk.h.
fn word(kind: u8) -> &'static str {
    match kind {
        b's' => "static property",
        b'v' => "static variable",
        b'g' => "global",
        b'l' => "variable of a waiting function",
        b'c' => "constant",
        b'h' | b'H' => "handler",
        b'i' => "ini setting",
        b'x' => "setting",
        b'e' => "environment",
        b'C' => "class",
        b'F' => "function",
        b'I' => "file",
        b'w' => "stream wrapper or filter",
        b'r' => "resources",
        b'o' => "unreachable objects",
        b'b' => "memory",
        b'd' => "descriptor",
        b'm' => "mapping",
        b'p' => "process",
        _ => "other",
    }
}

fn sentence(findings: &[Finding], resident: bool) -> String {
    let count = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    let said = [
        (count(Verdict::Grows), "grows", "grow"),
        (count(Verdict::Carries), "is carried over", "are carried over"),
        (count(Verdict::Stays), "stays set", "stay set"),
        (count(Verdict::Declares), "is declared again", "are declared again"),
    ];
    let parts: Vec<_> = said
        .iter()
        .filter(|(n, ..)| *n > 0)
        .map(|(n, one, more)| format!("{n} {}", if *n == 1 { one } else { more }))
        .collect();
    match (parts.is_empty(), resident) {
        (true, true) => "nothing leaks: this application can be resident".to_owned(),
        (true, false) => "no state would be carried over between requests".to_owned(),
        (false, true) => format!("not ready to be resident: {}", parts.join(", ")),
        (false, false) => {
            format!("would not be ready to be resident: {}", parts.join(", "))
        }
    }
}

impl Finding {
    fn tell(&self, out: &mut String) {
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let _ = writeln!(out, "  {}{more} ({}): {}", self.name, self.kind, self.what());
        match (&self.owner, &self.place) {
            (Some(owner), Some(place)) => writeln!(out, "      {owner}, {place}"),
            (None, Some(place)) => writeln!(out, "      {place}"),
            (Some(owner), None) => writeln!(out, "      {owner}"),
            (None, None) => Ok(()),
        }
        .unwrap_or_default();
        if self.verdict.is_problem() && !self.urls.is_empty() {
            let _ = writeln!(out, "      {}", self.places_in_urls());
        }
    }

    /// Returns the URLs that cause it: `by 15 of 44 requests of /leak`.
    fn places_in_urls(&self) -> String {
        let up_to = |of: &UrlShare| match self.verdict {
            Verdict::Grows if of.up_to > of.of => {
                format!(", and on until the last of {}", of.up_to)
            }
            _ => String::new(),
        };
        let share = |of: &UrlShare| {
            format!("{} of {} requests of {}{}", of.requests, of.of, of.url, up_to(of))
        };
        let shares: Vec<_> = self.urls.iter().take(URLS_SHOWN_MAX).map(share).collect();
        let more = match self.urls.len().saturating_sub(URLS_SHOWN_MAX) {
            0 => String::new(),
            n => format!("; and by {n} more URLs (--json)"),
        };
        format!("by {}{more}", shares.join("; by "))
    }

    /// Returns the unit of the growth, singular and plural.
    fn unit(&self) -> [&'static str; 2] {
        let after = self.after.as_deref().unwrap_or_default();
        match self.kind {
            "memory" => BYTES,
            "descriptor" | "mapping" => ["open", "open"],
            "process" => ["process", "processes"],
            "handler" => ["handler", "handlers"],
            "resources" => ["resource", "resources"],
            "unreachable objects" => ["object", "objects"],
            _ if after.starts_with('\'') => BYTES,
            _ if after.starts_with("array") => ["element", "elements"],
            _ => ["member", "members"],
        }
    }

    fn growth(&self) -> String {
        let (bytes, unit) = (self.bytes_per_request, self.unit());
        let (grown, each) = match unit {
            BYTES => (bytes.max(self.grown_per_request), String::new()),
            _ if bytes > 0.0 => (self.grown_per_request, format!(", {bytes:.0} B each")),
            _ => (self.grown_per_request, String::new()),
        };
        let unit = unit[usize::from((grown - 1.0).abs() > f64::EPSILON)];
        format!("+{grown} {unit} per request{each}")
    }

    fn what(&self) -> String {
        let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "not there".to_owned());
        if matches!(self.verdict, Verdict::Grows | Verdict::GrowsByUrl) {
            return self.growth();
        }
        format!("{} → {}", shown(&self.before), shown(&self.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rarest_leak_is_one_third_of_the_requests() {
        for (repeats, rarest) in [(0, 1), (2, 1), (9, 3), (44, 15), (299, 100)] {
            assert_eq!(rarest_seen(repeats), rarest, "{repeats} requests");
        }
    }

    #[test]
    fn verdict_is_one_sentence() {
        let finding = |verdict| Finding {
            verdict,
            kind: "global",
            name: "$a".to_owned(),
            owner: None,
            more: 0,
            before: None,
            after: None,
            changes: 1,
            urls: Vec::new(),
            grown_per_request: 0.0,
            bytes_per_request: 0.0,
            place: None,
        };
        assert!(sentence(&[finding(Verdict::Kept)], true).starts_with("nothing leaks"));
        let all = [finding(Verdict::Grows), finding(Verdict::Grows), finding(Verdict::Stays)];
        assert_eq!(sentence(&all, true), "not ready to be resident: 2 grow, 1 stays set");
    }
}
