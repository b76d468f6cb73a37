//! Output for a terminal. The first line is the answer.

use crate::calendar::{DAY, clock, date, short_date, year};
use crate::machine::SpeedupSource;
use crate::plan::{MachinePlan, Outlook, Plan, is_cpu};
use crate::trend::Crossing;
use std::fmt::Write as _;

/// Maximum number of lines for machines and for routes.
const LINES_MAX: usize = 12;
/// A machine whose peak is below this share of its capacity is idle.
const IDLE_SHARE: f64 = 0.1;
/// Largest multiple of a peak that is printed.
const TIMES_MAX: f64 = 1000.0;
/// Length of the horizon up to which it is called by days.
const DAYS_NAMED: i64 = 60;

/// Returns the plan for people.
pub fn text(plan: &Plan) -> String {
    let mut out = answer(plan);
    out.push_str("\n\n");
    for (name, text) in details(plan) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{name:<10} {text}");
    }
    out
}

/// Returns the lines after the answer: a name, empty if it is that of the line before, and a text.
pub fn details(plan: &Plan) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut line = |name: &str, text: &str| found.push((name.to_owned(), text.to_owned()));
    let peak_day = (plan.peak_at + plan.offset).div_euclid(DAY);
    line(
        "peak",
        &format!(
            "{} requests/s, the busiest five minutes of the last week ({}, {})",
            rate(plan.today.peak),
            short_date(peak_day),
            clock(plan.peak_at, plan.offset)
        ),
    );
    line("capacity", &capacity(plan));
    if let [machine] = &plan.machines[..] {
        machine_lines(machine, &mut line);
    } else {
        for machine in plan.machines.iter().take(LINES_MAX) {
            line("machine", &machine_in_words(machine));
        }
        let more = plan.machines.len().saturating_sub(LINES_MAX);
        if more > 0 {
            line("", &format!("and {more} more; --json has all"));
        }
        if let Some(idle) = idle(&plan.machines) {
            line("idle", &idle);
        }
    }
    line("growth", &growth(plan));
    if plan.trend.is_some() {
        line("forecast", &forecast(plan));
    }
    line("machines", &needed(&plan.today));
    if let Some(price) = &plan.price {
        line(
            "cost",
            &format!(
                "{:.2} per million requests; {:.2} at full use of the capacity",
                price.per_million, price.per_million_full
            ),
        );
        for (name, each) in price.routes.iter().take(LINES_MAX) {
            line("", &format!("{each:.2} per million of {name}"));
        }
    }
    if let Some(outlook) = &plan.what_if {
        line("what if", &format!("{}: {}", scenario(plan), short_answer(outlook, plan)));
        line("", &needed(outlook));
    }
    let own = plan.machines.iter().flat_map(|machine| {
        let prefix = match &plan.machines[..] {
            [_] => String::new(),
            _ => format!("{}: ", machine.machine.name),
        };
        machine.notes.iter().map(move |note| format!("{prefix}{note}"))
    });
    for note in plan.notes.iter().cloned().chain(own).take(2 * LINES_MAX) {
        line("note", &note);
    }
    found
}

/// Names the machines that are almost unused.
fn idle(machines: &[MachinePlan]) -> Option<String> {
    let is_idle = |one: &&MachinePlan| one.peak < IDLE_SHARE * one.capacity;
    let idle: Vec<_> = machines.iter().filter(is_idle).collect();
    let names: Vec<_> = idle.iter().take(LINES_MAX).map(|one| &*one.machine.name).collect();
    let more = match idle.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let free: f64 = idle.iter().map(|one| one.capacity - one.peak).sum();
    (!names.is_empty()).then(|| {
        format!(
            "{}{more}: below {:.0} % of the capacity at the peak; {} requests/s are free there",
            names.join(", "),
            100.0 * IDLE_SHARE,
            rate(free)
        )
    })
}

/// Returns the answer in one sentence.
pub fn answer(plan: &Plan) -> String {
    let subject = if plan.machines.len() == 1 { "This machine" } else { "This fleet" };
    format!("{subject} {}.", short_answer(&plan.today, plan))
}

fn short_answer(outlook: &Outlook, plan: &Plan) -> String {
    let of_machine = match plan.machines.len() {
        1 => String::new(),
        _ => format!(" of {}", outlook.first),
    };
    let name = outlook.limit.resource.name();
    let limit = if is_cpu(&outlook.limit) {
        format!("{name}{of_machine} is the limit")
    } else {
        format!("{name}{of_machine} is the limit ({})", outlook.limit.at)
    };
    let at = if is_cpu(&outlook.limit) { &*outlook.limit.at } else { "it" };
    format!(
        "carries {} × today's peak; {limit}; {at} {}",
        times(outlook.carries),
        reached(outlook, plan)
    )
}

/// Returns the rest of a sentence, such as `is reached on 12 March 2027 (between … and …)`.
fn reached(outlook: &Outlook, plan: &Plan) -> String {
    if outlook.carries < 1.0 {
        return "is exceeded today".to_owned();
    }
    let Some(Crossing { day, earliest, latest }) = outlook.reached else {
        return "has no date yet".to_owned();
    };
    let horizon = horizon(plan.horizon);
    match (day, earliest, latest) {
        (Some(day), Some(from), Some(to)) if from == to => format!("is reached on {}", date(day)),
        (Some(day), Some(from), Some(to)) => {
            // The year of the expected date is not repeated.
            let named =
                |other| if year(other) == year(day) { short_date(other) } else { date(other) };
            format!(
                "is reached on {}, between {} and {}",
                date(day),
                named(from.min(day)),
                named(to.max(day))
            )
        }
        (Some(day), Some(from), None) => format!(
            "is reached on {}, not before {}, perhaps not within {horizon}",
            date(day),
            date(from.min(day))
        ),
        (Some(day), None, _) => format!("is reached on {}", date(day)),
        (None, Some(from), _) => {
            format!("is not reached within {horizon}, at the earliest on {}", date(from))
        }
        (None, None, _) => format!("is not reached within {horizon}"),
    }
}

fn horizon(days: i64) -> String {
    match days {
        days if days <= DAYS_NAMED => format!("{days} days"),
        days => format!("{} months", (days as f64 / 30.44).round()),
    }
}

fn capacity(plan: &Plan) -> String {
    let now = &plan.today;
    let mut text = format!("{} requests/s of today's mix at the limit", rate(now.capacity));
    match &plan.machines[..] {
        [machine] => {
            let _ = write!(text, ", {} with saturated CPUs", rate(machine.ceiling));
            let _ = write!(
                text,
                "; from {} on, requests take twice their CPU time",
                rate(machine.knee)
            );
        }
        _ => {
            let _ = write!(
                text,
                "; {} with weights in proportion to capacity",
                rate(now.capacity_balanced)
            );
        }
    }
    text
}

fn machine_lines(plan: &MachinePlan, line: &mut impl FnMut(&str, &str)) {
    let machine = &plan.machine;
    line(
        "CPU",
        &format!(
            "{} per request; {:.0} % displayed at the peak, {:.0} % of the capacity",
            seconds(plan.cost.seconds),
            100.0 * plan.peak_displayed,
            100.0 * plan.peak_share
        ),
    );
    let mut cores = format!("{} cores", plain(machine.cores));
    if machine.has_smt() {
        let source = match machine.speedup_source {
            SpeedupSource::Measured => "measured",
            _ => "assumed: run samovar plan calibrate",
        };
        let _ = write!(
            cores,
            " with {} threads each; a full core does {:.2} × the work of one thread ({source})",
            plain(machine.threads_per_core),
            machine.speedup
        );
    }
    if plan.usable < machine.threads() - 0.005 {
        let _ = write!(cores, "; {:.2} CPUs are usable: quota or steal", plan.usable);
    }
    line("", &cores);
    let limits: Vec<_> = plan
        .limits
        .iter()
        .map(|limit| format!("{} {} ({})", limit.resource.name(), rate(limit.rate), limit.at))
        .collect();
    line("limits", &format!("requests/s: {}", limits.join(", ")));
    for route in plan.routes.iter().take(LINES_MAX) {
        let (cpu, requests) = (100.0 * route.cpu_share, 100.0 * route.requests_share);
        line(
            "route",
            &format!(
                "{}: {} per request, {cpu:.0} % of CPU, {requests:.0} % of requests",
                route.name,
                seconds(route.seconds)
            ),
        );
    }
}

fn machine_in_words(plan: &MachinePlan) -> String {
    let limit = plan.limits.first();
    format!(
        "{}: {} requests/s at the peak, {} at the limit ({}); {:.0} % of requests",
        plan.machine.name,
        rate(plan.peak),
        rate(plan.capacity),
        limit.map_or("", |limit| limit.resource.name()),
        100.0 * plan.weight
    )
}

fn growth(plan: &Plan) -> String {
    let Some(trend) = &plan.trend else { return format!("unknown: {}", plan.no_trend) };
    // Without a negative zero.
    let signed = |value: f64| format!("{:+.1}", (10.0 * value).round() / 10.0 + 0.0);
    let mut text = format!(
        "{} requests/s per week ({} %) from {} days; {} is the busiest day",
        signed(trend.per_week),
        signed(100.0 * trend.per_week_share),
        trend.days,
        trend.busiest_day.0
    );
    for (day, size) in &trend.steps {
        let _ = write!(text, "; step of {size:+.1} on {day}");
    }
    text
}

fn forecast(plan: &Plan) -> String {
    let Some(last) = plan.trend.as_ref().and_then(|trend| trend.future.last()) else {
        return "none".to_owned();
    };
    format!(
        "{} requests/s at the weekly peak of {} ({} to {} in {:.0} of 100 cases)",
        rate(last.rate),
        date(last.day),
        rate(last.low),
        rate(last.high),
        100.0 * plan.band
    )
}

fn needed(outlook: &Outlook) -> String {
    let peak = rate(outlook.peak_planned);
    match (outlook.buy, outlook.give_back) {
        (0, 0) => format!("enough for {peak} requests/s"),
        (0, 1) => format!("1 machine is not needed for {peak} requests/s"),
        (0, back) => format!("{back} machines are not needed for {peak} requests/s"),
        (1, _) => format!("1 more machine is needed for {peak} requests/s"),
        (buy, _) => format!("{buy} more machines are needed for {peak} requests/s"),
    }
}

fn scenario(plan: &Plan) -> String {
    let Some(scenario) = &plan.scenario else { return String::new() };
    let mut parts = Vec::new();
    if let Some(group) = &scenario.lose {
        parts.push(format!("without {group}"));
    }
    for (route, factor) in &scenario.routes {
        parts.push(format!("{route} × {factor}"));
    }
    if (scenario.traffic - 1.0).abs() > 1e-12 {
        parts.push(format!("traffic × {}", scenario.traffic));
    }
    if (scenario.cpu - 1.0).abs() > 1e-12 {
        parts.push(format!("CPU per request × {}", scenario.cpu));
    }
    parts.join(", ")
}

/// Formats a rate with three significant digits.
pub fn rate(value: f64) -> String {
    match value.abs() {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn times(value: f64) -> String {
    match value {
        value if value > TIMES_MAX => format!("more than {TIMES_MAX}"),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

fn seconds(value: f64) -> String {
    if value < 1e-3 { format!("{:.0} µs", 1e6 * value) } else { format!("{:.1} ms", 1e3 * value) }
}

fn plain(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
