//! Plans for simulated machines whose capacity and growth are known.

// Counts and times stay far below 2⁵², so they are exact as floats.
#![allow(clippy::cast_precision_loss)]

use samovar_plan::{
    Collector, Forecast, History, Input, Machine, Options, Peak, Plan, Random, Record, Resource,
    STEP, Scenario, SpeedupSource, plan, text,
};
use std::collections::BTreeSet;

const DAY: i64 = 86_400;
/// A Thursday.
const START: i64 = 20_524 * DAY;

/// Requests that arrive at random and share the CPUs. One in ten costs nine times as much CPU as
/// the others. `cost` is the mean.
struct Server {
    machine: Machine,
    cost: f64,
    light: f64,
    heavy: f64,
    random: Random,
}

impl Server {
    fn new(machine: Machine, cost: f64, seed: u64) -> Server {
        Server { machine, cost, light: 0.0, heavy: 0.0, random: Random::new(seed) }
    }

    /// Runs a number of events at a rate; returns the mean number of busy threads and the rate of
    /// arrivals.
    fn run(&mut self, rate: f64, events: usize) -> (f64, f64) {
        let (cheap, dear) = (self.cost / 1.8, 9.0 * self.cost / 1.8);
        let (mut time, mut busy, mut arrived) = (0.0, 0.0, 0.0);
        for _ in 0..events {
            let all = self.light + self.heavy;
            let speed = if all > 0.0 { self.machine.work(all) / all } else { 0.0 };
            let (end_light, end_heavy) = (self.light * speed / cheap, self.heavy * speed / dear);
            let sum = rate + end_light + end_heavy;
            let step = -(1.0 - self.random.unit()).ln() / sum;
            time += step;
            busy += step * all.min(self.machine.threads());
            let draw = self.random.unit() * sum;
            if draw < rate {
                arrived += 1.0;
                if self.random.unit() < 0.1 { self.heavy += 1.0 } else { self.light += 1.0 }
            } else if draw < rate + end_light {
                self.light -= 1.0;
            } else {
                self.heavy -= 1.0;
            }
        }
        (busy / time, arrived / time)
    }
}

/// Load over the day and the week: from 0.2 to 1.
fn season(at: i64) -> f64 {
    let hour = (at.rem_euclid(DAY) as f64) / 3600.0;
    let weekend = if matches!(at.div_euclid(DAY).rem_euclid(7), 2 | 3) { 0.7 } else { 1.0 };
    weekend * (0.6 - 0.4 * (std::f64::consts::TAU * (hour - 2.0) / 24.0).cos())
}

fn machine_of(seed: u64) -> Machine {
    let mut machine = match seed % 4 {
        0 => Machine::new("web", 2.0, 2.0),
        1 => Machine::new("web", 8.0, 2.0),
        2 => Machine::new("web", 4.0, 1.0),
        _ => Machine::new("web", 64.0, 2.0),
    };
    if machine.has_smt() {
        machine.speedup = 1.2 + 0.02 * (seed % 10) as f64;
        machine.speedup_source = SpeedupSource::Measured;
    }
    machine
}

/// History of two weeks, with a displayed use of at most 50 %. Other work uses `background` CPUs.
/// On day 5 the cost falls to the true one, if there is a step.
fn history(server: &mut Server, top: f64, background: f64, has_step: bool) -> History {
    let mut all = Collector::default();
    let cost = server.cost;
    for bin in 0..14 * 288 {
        let at = START + bin * STEP;
        server.cost = if has_step && bin < 5 * 288 { 1.3 * cost } else { cost };
        let (busy, rate) = server.run(top * season(at), 1_500);
        let noise = 1.0 + 0.02 * server.random.normal();
        all.add(&Record {
            at,
            seconds: STEP,
            requests: Some(rate * STEP as f64),
            cpu: Some((busy + background) * noise * STEP as f64),
            in_workers: Some((busy + 2.0 * rate * cost) * STEP as f64),
            ..Record::default()
        });
    }
    server.cost = cost;
    all.finish()
}

fn options(history: &History) -> Options {
    Options { horizon: 365, now: history.end(), ..Options::default() }
}

fn planned(input: Input, options: &Options) -> Plan {
    plan(&[input], options).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn capacity_from_low_load_is_within_a_tenth() {
    let (mut wrong, mut errors) = (Vec::new(), Vec::new());
    for seed in 0..20 {
        let machine = machine_of(seed);
        let cost = 0.002 + 0.001 * (seed % 7) as f64;
        let mut server = Server::new(machine.clone(), cost, seed);
        // On cores of their own, this many threads would be busy at the peak.
        let top = (0.3 + 0.02 * (seed % 8) as f64) * machine.threads() / cost;
        let history = history(&mut server, top, 0.05, seed % 5 == 0);
        let options = options(&history);
        let found = planned(Input { machine: machine.clone(), history, others: 0.0 }, &options);
        let ceiling = 0.99 * machine.work(machine.threads()) / cost;
        errors.push(found.machines[0].ceiling / ceiling - 1.0);
        let is_near = (found.machines[0].ceiling / ceiling - 1.0).abs() < 0.1;
        // The display at a rate 10 % below and above the planned one.
        let limit = machine.busy_limit(None, machine.threads());
        let display = |factor: f64| {
            let mut server = Server::new(machine.clone(), cost, seed + 1_000);
            server.run(factor * found.today.capacity, 300_000).0
        };
        if !is_near || display(0.9) > limit || display(1.1) < limit {
            wrong.push((seed, found.machines[0].ceiling / ceiling, display(1.0) / limit));
        }
    }
    errors.sort_by(f64::total_cmp);
    println!("relative errors of the ceiling: {errors:.3?}");
    assert!(wrong.len() <= 2, "{wrong:?}");
}

/// Daily peaks with a known course, and noise with this autocorrelation.
fn peaks(seed: u64, days: i64, step: f64, correlation: f64) -> Vec<Peak> {
    let mut random = Random::new(seed);
    random.unit();
    let noise = 0.04 + 0.03 * random.unit();
    let first = START / DAY;
    let mut now = 0.0;
    let all = (first..first + days).map(|day| {
        // One day in forty is an outlier.
        let outlier = if random.unit() < 0.025 { 0.5 } else { 0.0 };
        now = correlation * now + (1.0_f64 - correlation * correlation).sqrt() * random.normal();
        let factor = (1.0 + noise * now - outlier).max(0.1);
        Peak { day, rate: true_peak(seed, days, step, day) * factor }
    });
    all.collect()
}

/// The expected peak of a day. The step is in the middle of the days.
fn true_peak(seed: u64, days: i64, step: f64, day: i64) -> f64 {
    let slope = 0.2 + 0.6 * Random::new(seed).unit();
    let factors = [1.0, 0.97, 0.72, 0.7, 1.1, 1.06, 1.02];
    let mean: f64 = factors.iter().sum::<f64>() / 7.0;
    let past = day - START / DAY;
    let jump = if past >= days / 2 { step } else { 0.0 };
    (100.0 + jump + slope * past as f64) * factors[day.rem_euclid(7) as usize] / mean
}

#[test]
fn bands_cover_as_often_as_they_claim() {
    const HORIZONS: [i64; 5] = [1, 14, 30, 90, 365];
    for (days, step, correlation) in [
        (28, 0.0, 0.0),
        (60, 0.0, 0.0),
        (120, 0.0, 0.0),
        (60, 60.0, 0.0),
        (120, 60.0, 0.0),
        (120, -40.0, 0.0),
        (120, 20.0, 0.0),
        (120, 0.0, 0.5),
        (120, 60.0, 0.5),
    ] {
        let (mut dates, mut of_date, mut of_horizon) = (0, 0, [0; HORIZONS.len()]);
        // The same growth with and without a step.
        let rate = 260.0 + f64::max(step, 0.0);
        for seed in 0..200 {
            let true_peak = |day| true_peak(seed, days, step, day);
            let all = peaks(seed, days, step, correlation);
            let found = Forecast::fit(&all, &BTreeSet::new()).expect("enough days");
            let begin = found.last + 1;
            let reached =
                (begin..begin + 3_000).find(|day| true_peak(*day) >= rate).expect("it grows");
            let crossing = found.crossing(rate, 0.0, 1.0, begin, begin + 3_000);
            let from = crossing.earliest.unwrap_or(i64::MAX);
            dates += i32::from((from..=crossing.latest.unwrap_or(i64::MAX)).contains(&reached));
            let covers = |day: i64| {
                let (low, high) = found.band(day);
                i32::from((low..=high).contains(&true_peak(day)))
            };
            of_date += covers(reached);
            for (sum, ahead) in of_horizon.iter_mut().zip(HORIZONS) {
                *sum += covers(found.last + ahead);
            }
        }
        let case = format!("{days} days, step {step}, correlation {correlation}");
        println!("{case}: dates {dates}, peaks {of_date}, at {HORIZONS:?} {of_horizon:?} of 200");
        for count in [dates, of_date].into_iter().chain(of_horizon) {
            assert!(
                (140..=180).contains(&count),
                "{case}: {dates} {of_date} {of_horizon:?} of 200"
            );
        }
    }
}

/// History with an exact load: `rate(day)` at the peak, 5 ms of CPU per request.
fn exact(days: i64, rate: impl Fn(i64) -> f64) -> History {
    let mut all = Collector::default();
    for bin in 0..days * 288 {
        let at = START + bin * STEP;
        let requests = rate(bin / 288) * season(at) * STEP as f64;
        all.add(&Record {
            at,
            seconds: STEP,
            requests: Some(requests),
            cpu: Some(0.005 * requests),
            in_workers: Some(0.05 * requests),
            ..Record::default()
        });
    }
    all.finish()
}

fn input(machine: Machine, history: History) -> Input {
    Input { machine, history, others: 0.0 }
}

#[test]
fn growing_load_has_a_date_and_falling_or_constant_load_has_none() {
    for (slope, expected) in [(2.0, "is reached on "), (0.0, "is not reached"), (-1.0, "is not")] {
        let history = exact(60, |day| 300.0 + slope * day as f64);
        let options = options(&history);
        let found = planned(input(Machine::new("web", 4.0, 1.0), history), &options);
        let shown = text(&found);
        assert!(shown.lines().next().is_some_and(|line| line.contains(expected)), "{shown}");
        if slope > 0.0 {
            let truth = START / DAY + (found.today.capacity - 300.0) as i64 / 2;
            let day = found.today.reached.and_then(|reached| reached.day).expect("a date");
            assert!((day - truth).abs() <= 7, "{day} {truth}");
        }
    }
}

#[test]
fn constant_load_without_season_still_has_a_capacity() {
    let mut all = Collector::default();
    for bin in 0..20 * 288 {
        let at = START + bin * STEP;
        let (requests, cpu) = (Some(30_000.0), Some(150.0));
        all.add(&Record { at, seconds: STEP, requests, cpu, ..Record::default() });
    }
    let history = all.finish();
    let options = options(&history);
    let found = planned(input(Machine::new("web", 64.0, 2.0), history), &options);
    assert!((found.machines[0].cost.seconds / 0.005 - 1.0).abs() < 0.02, "{found:?}");
    assert!(found.machines[0].notes.iter().any(|note| note.contains("nearly constant")));
    assert!(text(&found).contains("is not reached within 12 months"), "{}", text(&found));
}

#[test]
fn little_data_is_named() {
    let history = exact(4, |_| 100.0);
    let options = options(&history);
    let shown = text(&planned(input(Machine::new("web", 4.0, 2.0), history), &options));
    assert!(shown.contains("4 days of data: a trend needs 14"), "{shown}");
    assert!(shown.contains("has no date yet"), "{shown}");
    for (history, expected) in [
        (History::default(), "the history is empty"),
        (exact(1, |_| 0.0), "0 minutes of history with requests"),
    ] {
        let error = plan(&[input(Machine::new("web", 4.0, 2.0), history)], &options);
        let error = error.expect_err("no data").to_string();
        assert!(error.contains(expected) && error.contains("\nhint: "), "{error}");
    }
    let mut silent = exact(2, |_| 100.0);
    silent.samples.iter_mut().for_each(|sample| sample.busy = None);
    let error = plan(&[input(Machine::new("web", 4.0, 2.0), silent)], &options);
    assert!(error.expect_err("no CPU").to_string().contains("has no CPU use"));
}

#[test]
fn gaps_and_a_restart_do_not_change_the_answer() {
    let whole = exact(40, |day| 300.0 + day as f64);
    let mut broken = whole.clone();
    broken.samples.retain(|sample| {
        let bin = (sample.at - START) / STEP;
        bin % 977 > 20 && !(3_000..3_900).contains(&bin)
    });
    let options = options(&whole);
    let machine = || Machine::new("web", 4.0, 1.0);
    let (a, b) =
        (planned(input(machine(), whole), &options), planned(input(machine(), broken), &options));
    assert!((a.today.capacity / b.today.capacity - 1.0).abs() < 0.01);
    let day = |plan: &Plan| plan.today.reached.and_then(|reached| reached.day).expect("a date");
    assert!((day(&a) - day(&b)).abs() <= 7, "{} {}", day(&a), day(&b));
}

#[test]
fn workers_memory_and_latency_can_be_the_limit() {
    let history = exact(20, |_| 200.0);
    let base = Machine::new("web", 16.0, 1.0);
    let of = |machine: Machine, goal: Option<f64>| {
        let options = Options { goal, ..options(&history) };
        planned(input(machine, history.clone()), &options).today
    };
    assert_eq!(of(base.clone(), None).limit.resource, Resource::Cpu);
    let few = of(Machine { workers_max: Some(20.0), ..base.clone() }, None);
    assert_eq!(few.limit.resource, Resource::Workers);
    // 18 busy workers, 50 ms each.
    assert!((few.capacity / 360.0 - 1.0).abs() < 0.02, "{few:?}");
    let narrow =
        Machine { workers_max: Some(100.0), workers_affordable: Some(20.0), ..base.clone() };
    assert_eq!(of(narrow, None).limit.resource, Resource::Memory);
    let slow = of(base, Some(0.0502));
    assert_eq!(slow.limit.resource, Resource::Latency);
}

#[test]
fn scenario_changes_traffic_cost_routes_and_groups() {
    let mut history = exact(20, |_| 200.0);
    history.routes = vec![
        samovar_plan::RouteTotal { name: "shop".into(), requests: 100.0, cpu: Some(0.75) },
        samovar_plan::RouteTotal { name: "blog".into(), requests: 100.0, cpu: Some(0.25) },
    ];
    let machine = |name: &str, group: &str| Machine {
        group: group.to_owned(),
        price_per_month: Some(100.0),
        ..Machine::new(name, 16.0, 1.0)
    };
    let inputs = [
        input(machine("a", "fra"), history.clone()),
        input(machine("b", "fra"), history.clone()),
        input(machine("c", "ber"), history.clone()),
    ];
    let of = |scenario: Scenario| {
        let options = Options { scenario, ..options(&history) };
        plan(&inputs, &options).map_err(|problem| problem.to_string())
    };
    let plain = of(Scenario::default()).expect("a plan");
    assert!(plain.what_if.is_none() && plain.price.is_some());
    let carries = plain.today.carries;
    for (scenario, expected) in [
        (Scenario { traffic: 2.0, ..Scenario::default() }, carries / 2.0),
        (Scenario { cpu: 0.8, ..Scenario::default() }, carries / 0.8),
        (Scenario { lose: Some("fra".into()), ..Scenario::default() }, carries / 3.0),
        (Scenario { lose: Some("ber".into()), ..Scenario::default() }, carries / 1.5),
        // 1.5 × the requests, 1.75 × the CPU.
        (Scenario { routes: vec![("shop".into(), 2.0)], ..Scenario::default() }, carries / 1.75),
    ] {
        let found = of(scenario.clone()).expect("a plan").what_if.expect("an answer");
        assert!((found.carries / expected - 1.0).abs() < 0.01, "{scenario:?} {found:?} {expected}");
    }
    for (scenario, expected) in [
        (Scenario { lose: Some("ams".into()), ..Scenario::default() }, "the groups are: ber, fra"),
        (
            Scenario { routes: vec![("cart".into(), 2.0)], ..Scenario::default() },
            "the busiest routes are: blog, shop",
        ),
    ] {
        assert!(of(scenario).expect_err("unknown").contains(expected));
    }
}

#[test]
fn output_for_a_terminal_matches_the_golden_file() {
    let history = exact(56, |day| 300.0 + 2.0 * day as f64);
    let options =
        Options { scenario: Scenario { traffic: 1.5, ..Scenario::default() }, ..options(&history) };
    let machine = Machine {
        price_per_month: Some(120.0),
        workers_max: Some(64.0),
        ..Machine::new("web1", 4.0, 2.0)
    };
    let shown = text(&planned(input(machine, history), &options));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &shown).expect("the golden file");
    }
    assert_eq!(shown, std::fs::read_to_string(file).expect("the golden file"));
}

#[test]
fn page_is_complete_and_loads_nothing() {
    let history = exact(56, |day| 300.0 + 2.0 * day as f64);
    let options = options(&history);
    let machine = Machine::new("<web&1>", 4.0, 2.0);
    let page = samovar_plan::page(&planned(input(machine, history), &options));
    assert!(
        page.contains("&lt;web&amp;1&gt;") && page.contains("<svg") && page.ends_with("</html>\n")
    );
    for loaded in ["<script", "http://", "https://", "src=", "@import", "NaN"] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}
