//! Formats a profile as a table of functions, for people and as JSON.

#![allow(clippy::cast_precision_loss)] // Means and shares of samples.

use super::shown::{Shown, Side};
use crate::control_client::printable;
use samovar_spy::profile::Weight;
use samovar_spy::profile::boxes::of;
use samovar_spy::profile::difference::{self, Change, changes};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Maximum number of functions in the table.
const ROWS_MAX: usize = 30;
/// Maximum number of functions in a comparison that became slower, and of those that became faster.
const CHANGES_MAX: usize = 15;
const NS_PER_US: f64 = 1_000.0;

fn head(side: &Side) -> String {
    let generations: Vec<_> = side.generations.iter().map(ToString::to_string).collect();
    let mut text = format!("{} to {} UTC", clock(side.from), clock(side.to));
    // Writing to a string cannot fail.
    let _ = match &generations[..] {
        [] => Ok(()),
        [one] => write!(text, ", generation {one}"),
        some => write!(text, ", generations {}", some.join(", ")),
    };
    if side.requests > 0 {
        let _ = write!(text, ", {} requests", side.requests);
    }
    let _ = write!(text, ", {} samples", side.profile.total().samples);
    text
}

fn clock(unix: u64) -> String {
    let of_day = unix % 86_400;
    format!("{:02}:{:02}", of_day / 3_600, of_day % 3_600 / 60)
}

/// Formats the profile for people.
pub(super) fn text(shown: &Shown) -> String {
    let mut out = match &shown.before {
        None => shares(shown),
        Some(before) => differences(shown, before),
    };
    if shown.is_cut {
        out.push_str(
            "\nThe profile exceeds the size of a response: the oldest part is left out.\n",
        );
    }
    printable(&out)
}

fn shares(shown: &Shown) -> String {
    let total = of(shown.now.profile.total(), shown.measure).max(1) as f64;
    let percent = |weight: Weight| of(weight, shown.measure) as f64 * 100.0 / total;
    let requests = shown.now.requests;
    let per = |weight: Weight| match requests {
        0 => String::new(),
        n => format!("{:>11}", span(of(weight, shown.measure) as f64 / n as f64)),
    };
    let mut all = shown.now.profile.shares();
    all.sort_by(|a, b| {
        let key = |share: &samovar_spy::profile::Share| of(share.own, shown.measure);
        key(b).cmp(&key(a)).then_with(|| a.function.cmp(&b.function))
    });
    let mut out = format!("{}: {}\n\n", shown.what, head(&shown.now));
    let per_head = if requests > 0 { "    PER REQ" } else { "" };
    let _ = writeln!(out, "   SELF   TOTAL{per_head}  FUNCTION");
    for share in all.iter().take(ROWS_MAX) {
        let _ = writeln!(
            out,
            "{:>6.1}% {:>6.1}%{}  {}{}",
            percent(share.own),
            percent(share.total),
            per(share.own),
            share.function.full_name(),
            place(&share.function),
        );
    }
    if all.len() > ROWS_MAX {
        let _ = writeln!(out, "… and {} more functions", all.len() - ROWS_MAX);
    }
    out
}

fn place(function: &samovar_spy::Function) -> String {
    if function.is_internal() {
        return String::new();
    }
    if function.line == 0 {
        return format!("  {}", function.file);
    }
    format!("  {}:{}", function.file, function.line)
}

/// Formats the duration of a request.
fn span(ns: f64) -> String {
    if ns.abs() < 10_000_000.0 {
        format!("{:.1} µs", ns / NS_PER_US)
    } else {
        format!("{:.1} ms", ns / NS_PER_US / 1_000.0)
    }
}

fn sides<'a>(shown: &'a Shown, before: &'a Side) -> [difference::Side<'a>; 2] {
    [before, &shown.now]
        .map(|side| difference::Side { profile: &side.profile, requests: side.requests })
}

fn differences(shown: &Shown, before: &Side) -> String {
    let [was, is] = sides(shown, before);
    let is_per_request = was.requests > 0 && is.requests > 0;
    let value = |value: f64| {
        if is_per_request { span(value) } else { format!("{:.1}%", value / 10_000.0) }
    };
    let signed = |value_of: f64| {
        let text = value(value_of);
        if value_of > 0.0 { format!("+{text}") } else { text }
    };
    let all = changes(was, is, shown.measure);
    let mut out =
        format!("{}\n before: {}\n now:    {}\n", shown.what, head(before), head(&shown.now));
    let unit = if is_per_request {
        "time per request"
    } else {
        "share of the time (for time per request set `admin` or `insight.store`, so that the \
         server counts requests)"
    };
    let _ = writeln!(
        out,
        "\n{unit}\n   BEFORE       NOW    CHANGE           ±   WITH CALLEES  FUNCTION"
    );
    let mut row = |change: &Change| {
        let _ = writeln!(
            out,
            "{:>9} {:>9} {:>9} {:>9} {} {:>12}  {}",
            value(change.own.0),
            value(change.own.1),
            signed(change.own_difference()),
            value(change.own_error),
            if change.is_significant() { "*" } else { " " },
            signed(change.total_difference()),
            change.label
        );
    };
    let dearer = all.iter().filter(|change| change.own_difference() > 0.0);
    dearer.take(CHANGES_MAX).for_each(&mut row);
    let cheaper = all.iter().rev().filter(|change| change.own_difference() < 0.0);
    let cheaper: Vec<_> = cheaper.take(CHANGES_MAX).collect();
    cheaper.into_iter().rev().for_each(row);
    out.push_str("\n* the change is larger than its interval (±, 99.7 %); others may be chance\n");
    out
}

/// Formats the profile as JSON.
pub(super) fn json(shown: &Shown) -> String {
    let side = |side: &Side| {
        let total = side.profile.total();
        json!({
            "from": side.from, "to": side.to, "generations": side.generations,
            "requests": side.requests, "samples": total.samples,
            "wall_ns": total.wall_ns, "cpu_ns": total.cpu_ns,
        })
    };
    let functions: Vec<Value> = match &shown.before {
        None => {
            let shares = shown.now.profile.shares();
            let weight =
                |w: Weight| json!({"samples": w.samples, "wall_ns": w.wall_ns, "cpu_ns": w.cpu_ns});
            let one = |share: samovar_spy::profile::Share| {
                json!({
                    "function": share.function.full_name(), "file": share.function.file,
                    "line": share.function.line, "self": weight(share.own),
                    "total": weight(share.total),
                })
            };
            shares.into_iter().map(one).collect()
        }
        Some(before) => {
            let [was, is] = sides(shown, before);
            let one = |change: Change| {
                json!({
                    "function": change.label,
                    "self_before": change.own.0, "self_now": change.own.1,
                    "total_before": change.total.0, "total_now": change.total.1,
                    "self_error": change.own_error, "total_error": change.total_error,
                    "significant": change.is_significant(),
                })
            };
            changes(was, is, shown.measure).into_iter().map(one).collect()
        }
    };
    let unit = match &shown.before {
        None => "ns",
        Some(before) if before.requests > 0 && shown.now.requests > 0 => "ns per request",
        Some(_) => "parts of a million",
    };
    let document = json!({
        "what": shown.what, "hertz": shown.hertz, "unit": unit, "now": side(&shown.now),
        "before": shown.before.as_ref().map(side), "is_cut": shown.is_cut, "functions": functions,
    });
    format!("{document}\n")
}
