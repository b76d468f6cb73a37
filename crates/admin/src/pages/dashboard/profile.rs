//! `/profile`: time of requests by function, of all routes or one: a flame graph, a table, and both
//! compared with another time.

use super::pools::Pools;
use super::view::{Shown, View};
use crate::chart::{Flames, flames};
use crate::format::{self, short};
use crate::frame::{nothing, part};
use maud::{Markup, html};
use samovar_profile::{ProfileResult, Side};
use samovar_spy::profile::boxes::of;
use samovar_spy::profile::difference::{self, Change, changes, factor};
use samovar_spy::profile::svg::Measure;
use samovar_spy::profile::{Part, Profile, Share};
use samovar_wire::{Against, ProfileQuestion};

/// Selectable spans: minutes, name.
const SPANS: [(u64, &str); 5] =
    [(1, "1 minute"), (10, "10 minutes"), (60, "1 hour"), (360, "6 hours"), (1_440, "1 day")];
const SPAN_AT_FIRST: u64 = 10;
const PARTS: [(&str, &str); 3] = [("", "all time"), ("cpu", "on CPU"), ("waiting", "waiting")];
const OTHERS: [(&str, &str); 4] = [
    ("", "nothing"),
    ("reload", "before the last reload"),
    ("hour", "an hour earlier"),
    ("day", "a day earlier"),
];
/// Maximum number of functions in the table.
const ROWS_MAX: usize = 40;
const HOUR_S: u64 = 3_600;

/// Selection of the page.
struct Asked {
    pools: Pools,
    route: String,
    minutes: u64,
    part: String,
    than: String,
    generation: Option<u64>,
}

impl Asked {
    fn of(view: &View, pools: Pools) -> Asked {
        let text = |name| view.query.get(name).unwrap_or_default();
        let number = |name| view.query.get(name).and_then(|n| n.parse::<u64>().ok());
        let minutes = number("minutes").filter(|n| SPANS.iter().any(|(known, _)| known == n));
        let has_changed = pools.has_changed(true);
        let (route, than) = (if has_changed { String::new() } else { text("route") }, text("than"));
        let generation = number("generation").filter(|n| *n > 0);
        // Each pool counts its own generations. Without a pool or a route in the query, the default
        // pool is meant.
        let is_of_one = route.is_empty() && (generation.is_some() || than == "reload");
        let shown = pools.shown().to_owned();
        let pools = if is_of_one { pools.showing(&shown) } else { pools };
        Asked {
            pools,
            route,
            minutes: minutes.unwrap_or(SPAN_AT_FIRST),
            part: text("part"),
            than,
            generation,
        }
    }

    fn question(&self, now: u64) -> ProfileQuestion {
        ProfileQuestion {
            route: Some(self.route.clone()).filter(|route| !route.is_empty()),
            from: (now + 1).saturating_sub(self.minutes * 60),
            to: now + 1,
            pool: self.pools.chosen().map(str::to_owned),
            generation: self.generation,
            against: match &*self.than {
                "reload" => Some(Against::Reload),
                "hour" => Some(Against::Earlier { seconds: HOUR_S }),
                "day" => Some(Against::Earlier { seconds: 24 * HOUR_S }),
                _ => None,
            },
        }
    }

    fn part(&self) -> (Part, Measure) {
        match &*self.part {
            "cpu" => (Part::OnCpu, Measure::Cpu),
            "waiting" => (Part::Waiting, Measure::Wall),
            _ => (Part::All, Measure::Wall),
        }
    }
}

pub(super) fn show(view: &View) -> Shown {
    let title = "Profile";
    let pools = match Pools::of(view, &view.sources.host.status(), title) {
        Ok(pools) => pools,
        Err(unknown) => return unknown,
    };
    let asked = Asked::of(view, pools);
    let Some(profiles) = view.sources.host.profiles() else {
        let why = "Workers are not sampled: profile.hertz is 0 in the settings.";
        return Shown::new(title, html! { h1 { (title) } (nothing(why)) });
    };
    let response = profiles.respond(asked.question(view.now));
    let main = html! {
        h1 {
            (title)
            @if !asked.route.is_empty() { " of " span.name { (asked.route) } }
            @else if asked.pools.chosen().is_some() { (asked.pools.title()) }
        }
        (choice(&asked, &response))
        @if let Some(why) = &response.error {
            p.empty { @for line in why.lines() { (line) br; } }
        } @else {
            (found(&asked, &response))
        }
        script src="/assets/flame.js" defer {}
        script src="/assets/flame_page.js" defer {}
    };
    Shown::new(title, main)
}

fn choice(asked: &Asked, response: &ProfileResult) -> Markup {
    let option = |value: &str, name: &str, is_chosen: bool| {
        html! { option value=(value) selected[is_chosen] { (name) } }
    };
    let is_listed = response.routes.iter().any(|(name, _)| *name == asked.route);
    html! {
        form.ask action="/profile" {
            (asked.pools.control(Some("all")))
            label { "Route " select name="route" {
                (option("", "all", asked.route.is_empty()))
                @if !is_listed && !asked.route.is_empty() {
                    (option(&asked.route, &asked.route, true))
                }
                @for (name, _) in &response.routes { (option(name, name, *name == asked.route)) }
            } }
            label { "The last " select name="minutes" {
                @for (minutes, name) in SPANS {
                    (option(&minutes.to_string(), name, minutes == asked.minutes))
                }
            } }
            label { "Show " select name="part" {
                @for (value, name) in PARTS { (option(value, name, value == asked.part)) }
            } }
            label { "Compare with " select name="than" {
                @for (value, name) in OTHERS { (option(value, name, value == asked.than)) }
            } }
            label { "Generation " input type="number" name="generation" min="1" placeholder="all"
                value=[asked.generation.map(|n| n.to_string())]; }
            button { "Show" }
        }
    }
}

/// A side of the comparison, limited to the selected stacks.
struct Shares<'a> {
    side: &'a Side,
    profile: Profile,
}

impl Shares<'_> {
    fn compared(&self) -> difference::Side<'_> {
        difference::Side { profile: &self.profile, requests: self.side.requests }
    }
}

fn found(asked: &Asked, response: &ProfileResult) -> Markup {
    let (part_of, measure) = asked.part();
    let of_part = |side| Shares { side, profile: side.profile.part(part_of) };
    let now = of_part(&response.now);
    let before = response.before.as_ref().map(of_part);
    if now.profile.is_empty() {
        return nothing("No samples for this selection in this period.");
    }
    let factor = before.as_ref().map(|b| factor(b.compared(), now.compared(), measure));
    let title = said(&now, measure);
    let drawn = Flames {
        profile: &now.profile,
        before: before.as_ref().map(|b| &b.profile).zip(factor),
        measure,
        title: &title,
    };
    html! {
        @if let Some(before) = &before {
            p {
                "Before: " (said(before, measure))
                ". Red boxes take more time than before, blue ones less. The difference of grey "
                "ones may be chance."
            }
        }
        (flames(&drawn))
        @if response.now.is_cut {
            p.faint { "Too much data for one page: the oldest samples are left out." }
        }
        @match &before {
            None => (part("functions", "Functions", &functions(&now, measure))),
            Some(before) => {
                @let differences = differences(before, &now, measure);
                (part("functions", "Functions by change", &differences))
            },
        }
        p.faint.small {
            "Busy workers are sampled " (response.hertz) " times a second, from outside. Shares "
            "are estimates: with 1000 samples, a share is within three percentage points."
        }
    }
}

fn said(of_side: &Shares, measure: Measure) -> String {
    let total = of_side.profile.total();
    let measured = if measure == Measure::Cpu { "CPU time" } else { "worker time" };
    let generations: Vec<_> = of_side.side.generations.iter().map(ToString::to_string).collect();
    let generations = match &generations[..] {
        [] => String::new(),
        [one] => format!(", generation {one}"),
        some => format!(", generations {}", some.join(", ")),
    };
    let requests = match of_side.side.requests {
        0 => String::new(),
        n => format!(", {} requests", format::count(n)),
    };
    format!(
        "{} of {measured}, {} to {}{generations}{requests}, {} samples",
        format::time(of(total, measure)),
        format::clock(of_side.side.from),
        format::clock(of_side.side.to),
        format::count(total.samples),
    )
}

fn functions(now: &Shares, measure: Measure) -> Markup {
    let all = of(now.profile.total(), measure).max(1) as f64;
    let requests = now.side.requests;
    let mut shares = now.profile.shares();
    shares.sort_by_key(|share| std::cmp::Reverse(of(share.own, measure)));
    let percent = |weight| format::percent(of(weight, measure) as f64, all);
    let per = |weight| format::time(of(weight, measure) / requests.max(1));
    let row = |share: &Share| {
        html! {
            tr {
                th.name scope="row" { (short(&share.function.full_name())) }
                td.number { (percent(share.own)) }
                td.number { (percent(share.total)) }
                @if requests > 0 { td.number { (per(share.own)) } td.number { (per(share.total)) } }
                td.name.faint {
                    @if !share.function.is_internal() {
                        (short(&share.function.file)) ":" (share.function.line)
                    }
                }
            }
        }
    };
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Self" }
                th.number scope="col" { "Total" }
                @if requests > 0 {
                    th.number scope="col" { "Self per request" }
                    th.number scope="col" { "… with callees" }
                }
                th scope="col" { "Location" }
            } }
            tbody { @for share in shares.iter().take(ROWS_MAX) { (row(share)) } }
        } }
    }
}

fn differences(before: &Shares, now: &Shares, measure: Measure) -> Markup {
    let (was, is) = (before.compared(), now.compared());
    let is_per_request = was.requests > 0 && is.requests > 0;
    let value = |value: f64| {
        if is_per_request { format::time(value as u64) } else { format::percent(value, 1e6) }
    };
    let signed = |difference: f64| {
        let sign = if difference < 0.0 { "−" } else { "+" };
        format!("{sign}{}", value(difference.abs()))
    };
    let class = |change: &Change| match change.own_difference() {
        _ if !change.is_significant() => "",
        growth if growth > 0.0 => "bad",
        _ => "good",
    };
    let all = changes(was, is, measure);
    let dearer = all.iter().filter(|change| change.own_difference() > 0.0).take(ROWS_MAX / 2);
    let cheaper = all.iter().rev().filter(|change| change.own_difference() < 0.0);
    let mut cheaper: Vec<_> = cheaper.take(ROWS_MAX / 2).collect();
    cheaper.reverse();
    let row = |change: &Change| {
        let (own, total) = (change.own_difference(), change.total_difference());
        let error = |error: f64| format!(" ± {}", value(error));
        html! {
            tr {
                th.name scope="row" { (short(&change.label)) }
                td.number { (value(change.own.0)) }
                td.number { (value(change.own.1)) }
                td.number {
                    span class=(class(change)) { (signed(own)) }
                    span.faint.small { (error(change.own_error)) }
                }
                td.number { (signed(total)) span.faint.small { (error(change.total_error)) } }
            }
        }
    };
    html! {
        p.faint {
            @if is_per_request { "Self time per request." }
            @else { "Shares of the time: the number of these requests is not known." }
            " The interval (±) contains the true change with a probability of 99.7 %, if samples "
            "are independent. Only a change outside it has a colour."
        }
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Before" }
                th.number scope="col" { "Now" }
                th.number scope="col" { "Change" }
                th.number scope="col" { "… with callees" }
            } }
            tbody {
                @for change in dearer { (row(change)) }
                @for change in cheaper { (row(change)) }
            }
        } }
    }
}
