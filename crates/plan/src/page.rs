//! Output as one HTML page with charts. It loads nothing from elsewhere.

use crate::calendar::{DAY, date, iso};
use crate::plan::Plan;
use crate::text::{answer, details, rate};
use std::fmt::Write as _;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 76.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 22.0;
/// Number of horizontal lines above 0.
const LINES: f64 = 4.0;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#667;--line:#d5d8de;--data:#2563a8;\
--limit:#b3261e;--band:#2563a833}
@media(prefers-color-scheme:dark){:root{--ink:#eaeaea;--soft:#a3a9b3;--line:#3a3f47;--data:#7db4ee;\
--limit:#ff8a80;--band:#7db4ee33}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);max-width:860px;margin:0 auto;padding:16px}
h1{font-size:1.35rem;line-height:1.35}h2{font-size:1.05rem;margin:2rem 0 .4rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;min-width:100%}
th,td{text-align:left;padding:4px 0 4px 14px;border-bottom:1px solid var(--line);vertical-align:top}
th:first-child,td:first-child{padding-left:0;overflow-wrap:anywhere;min-width:7em}
td.n,th.n{text-align:right}td.n{white-space:nowrap}svg{width:100%;height:auto;display:block}
svg text{fill:var(--soft);font-size:13px}.soft{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px}dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
@media(max-width:600px){svg text{font-size:24px}table{font-size:13px}th,td{padding-left:7px}\
td.n:last-child{white-space:normal}\
dl{display:block}dd{margin-bottom:8px}}";

/// Returns the page.
pub fn page(plan: &Plan) -> String {
    let answer = escape(&answer(plan));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Capacity plan</title><style>{STYLE}</style></head><body>\n<h1>{answer}</h1>\n"
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<h2>Daily peaks in requests/s</h2>\n{}<h2>Machines</h2>\n{}\n<h2>Details</h2>\n<dl>",
        peaks(plan),
        machines(plan)
    );
    for (name, text) in details(plan) {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(&name), escape(&text));
    }
    out.push_str("</dl>\n</body></html>\n");
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Places of days and rates.
struct Scale {
    from: f64,
    to: f64,
    top: f64,
}

impl Scale {
    fn x(&self, day: i64) -> f64 {
        LEFT + (WIDTH - LEFT - 8.0) * (day as f64 - self.from) / (self.to - self.from).max(1.0)
    }

    fn y(&self, rate: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (rate / self.top).clamp(0.0, 1.0)
    }
}

fn peaks(plan: &Plan) -> String {
    let future = plan.trend.as_ref().map_or(&[][..], |trend| &trend.future);
    let today = (plan.peak_at + plan.offset).div_euclid(DAY);
    let days = || plan.peaks.iter().map(|peak| peak.day).chain(future.iter().map(|one| one.day));
    let from = days().min().unwrap_or(today);
    let to = days().max().unwrap_or(today).max(from + 1);
    let rates = plan.peaks.iter().map(|peak| peak.rate).chain(future.iter().map(|one| one.high));
    let highest = rates.fold(plan.today.peak, f64::max);
    // A capacity far above the load would flatten everything.
    let top = if plan.today.capacity < 4.0 * highest {
        highest.max(plan.today.capacity)
    } else {
        highest
    };
    let step = tick(1.02 * top.max(1e-9) / LINES);
    let scale = Scale { from: from as f64, to: to as f64, top: LINES * step };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Daily peaks and forecast\">\n"
    );
    let mut value = 0.0;
    while value <= scale.top {
        let y = scale.y(value);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"var(--line)\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - 8.0,
            LEFT - 6.0,
            y + 4.0,
            (value * 1e6).round() / 1e6
        );
        value += step;
    }
    for (day, anchor) in [(from, "start"), (i64::midpoint(from, to), "middle"), (to, "end")] {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>",
            scale.x(day),
            HEIGHT - 8.0,
            iso(day)
        );
    }
    if !future.is_empty() {
        let point = |day: i64, rate: f64| format!("{:.1},{:.1}", scale.x(day), scale.y(rate));
        let high = future.iter().map(|one| point(one.day, one.high));
        let low = future.iter().rev().map(|one| point(one.day, one.low));
        let band: Vec<_> = high.chain(low).collect();
        let line: Vec<_> = future.iter().map(|one| point(one.day, one.rate)).collect();
        let _ = writeln!(
            out,
            "<polygon points=\"{}\" fill=\"var(--band)\"/>\n<polyline points=\"{}\" fill=\"none\" \
             stroke=\"var(--data)\" stroke-width=\"2\"/>",
            band.join(" "),
            line.join(" ")
        );
    }
    for peak in &plan.peaks {
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"var(--data)\"><title>{}: {}</title>\
             </circle>",
            scale.x(peak.day),
            scale.y(peak.rate),
            date(peak.day),
            rate(peak.rate)
        );
    }
    let mut legend = "Points: past days.".to_owned();
    if !future.is_empty() {
        let percent = 100.0 * plan.band;
        let _ = write!(legend, " Line: weekly peak, with the band of {percent:.0} of 100 cases.");
    }
    let capacity = rate(plan.today.capacity);
    if plan.today.capacity > scale.top {
        let _ = write!(legend, " The capacity, {capacity} requests/s, is above the chart.");
    } else {
        let _ = write!(legend, " Red: capacity at the limit, {capacity} requests/s.");
        let y = scale.y(plan.today.capacity);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"var(--limit)\" \
             stroke-width=\"2\" stroke-dasharray=\"6 4\"/>",
            WIDTH - 8.0
        );
    }
    let _ = writeln!(out, "</svg>\n<p class=\"soft\">{legend}</p>");
    out
}

/// Returns the smallest round number that is not below a distance of lines.
fn tick(distance: f64) -> f64 {
    let power = 10_f64.powf(distance.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0].into_iter().map(|factor| factor * power);
    round.into_iter().find(|one| *one >= distance).unwrap_or(10.0 * power)
}

fn machines(plan: &Plan) -> String {
    let mut out = "<div class=\"scroll\"><table><tr><th>machine</th><th class=\"n\">peak</th>\
                   <th class=\"n\">displayed</th><th class=\"n\">of capacity</th>\
                   <th class=\"n\">at the limit</th></tr>\n"
        .to_owned();
    for machine in &plan.machines {
        let limit = machine.limits.first().map_or("", |limit| limit.resource.name());
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.0} %</td>\
             <td class=\"n\">{:.0} %</td><td class=\"n\">{} ({limit})</td></tr>",
            escape(&machine.machine.name),
            rate(machine.peak),
            100.0 * machine.peak_displayed,
            100.0 * machine.peak_share,
            rate(machine.capacity)
        );
    }
    out.push_str("</table></div>");
    out
}
