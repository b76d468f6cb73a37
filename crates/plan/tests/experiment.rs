//! Simulated experiments with known truth: equal servers are equal, and a slower route is found.

use samovar_plan::Random;
use samovar_plan::experiment::{Change, Experiment, Measured, Pair, Request, Side, Subject};

/// CPU time of each route, µs.
const ROUTES: [(&str, f64); 4] =
    [("/", 90.0), ("/shop", 800.0), ("/cart", 2_500.0), ("/search", 400.0)];
const ROUNDS_MAX: usize = 20;
const BLOCKS: u32 = 10;
/// Requests of each route, server and block.
const REQUESTS: usize = 4;
/// Half of the interval at which a run ends.
const PRECISION: f64 = 0.012;
const EXPERIMENTS: u64 = 200;

/// Runs an experiment whose server with the change takes `factor` times as long for the second
/// route. Requests vary, some are disturbed, the machine's pace drifts, and each process has its
/// own luck with its memory.
fn run(seed: u64, factor: f64) -> Vec<Subject> {
    let mut random = Random::new(seed);
    let mut experiment = Experiment::default();
    let mut pace = 1.0_f64;
    while experiment.rounds() < ROUNDS_MAX && !experiment.is_precise(PRECISION) {
        // Luck of a process, and of a process with a route.
        let luck: Vec<[f64; 2]> =
            (0..ROUTES.len()).map(|_| [0, 1].map(|_| (0.008 * random.normal()).exp())).collect();
        let of_process = [0, 1].map(|_| (0.008 * random.normal()).exp());
        let mut requests = Vec::new();
        for block in 0..BLOCKS {
            pace *= (0.03 * random.normal()).exp();
            for side in [Side::Before, Side::After] {
                for (n, (route, us)) in ROUTES.iter().enumerate() {
                    for _ in 0..REQUESTS {
                        let disturbed = if random.unit() < 0.01 { 5.0 } else { 1.0 };
                        let noise = (0.1 * random.normal()).exp() * disturbed;
                        let is_slower = side == Side::After && n == 1;
                        let cpu_us = us
                            * pace
                            * noise
                            * luck[n][side as usize]
                            * of_process[side as usize]
                            * if is_slower { factor } else { 1.0 };
                        let wall_us = 150.0 * pace * (0.2 * random.normal()).exp() + cpu_us;
                        let route = (*route).to_owned();
                        requests.push(Request {
                            route,
                            side,
                            block,
                            cpu_us: Some(cpu_us),
                            wall_us,
                        });
                    }
                }
            }
        }
        experiment.add(&Measured { requests, ..Measured::default() });
    }
    experiment.subjects()
}

/// The routes whose CPU time or response time has changed.
fn changed(subjects: &[Subject]) -> Vec<(String, Change)> {
    let each = subjects.iter().flat_map(|one| {
        [one.cpu_us.difference, one.p50_us.difference].map(|found| (one.route.clone(), found))
    });
    each.filter_map(|(route, found)| Some((route, found?.change)))
        .filter(|(_, change)| *change != Change::None)
        .collect()
}

#[test]
fn equal_servers_have_no_difference_in_nineteen_of_twenty_experiments() {
    let wrong = (0..EXPERIMENTS).filter(|seed| !changed(&run(*seed, 1.0)).is_empty()).count();
    assert!(wrong as u64 <= EXPERIMENTS / 20, "{wrong} of {EXPERIMENTS}");
}

#[test]
fn slower_route_is_found_and_named_alone() {
    let (mut found, mut elsewhere, mut covered) = (0, 0, 0);
    for seed in 0..EXPERIMENTS {
        let subjects = run(1_000 + seed, 1.05);
        let changed = changed(&subjects);
        found += u64::from(changed.contains(&("/shop".to_owned(), Change::More)));
        let is_other = |(route, change): &(String, Change)| {
            !(route == "/shop" || route.is_empty()) || *change == Change::Less
        };
        elsewhere += u64::from(changed.iter().any(is_other));
        let shop = subjects.iter().find(|one| one.route == "/shop").expect("a route");
        let difference = shop.cpu_us.difference.expect("enough rounds");
        covered += u64::from((difference.low..=difference.high).contains(&0.05));
    }
    assert!(found >= EXPERIMENTS * 19 / 20, "found in {found}");
    assert!(elsewhere <= EXPERIMENTS / 20, "others in {elsewhere}");
    assert!(covered >= EXPERIMENTS * 19 / 20, "interval contains the truth in {covered}");
}

#[test]
fn few_rounds_and_no_requests_have_no_result() {
    let mut experiment = Experiment::default();
    assert!(experiment.subjects().is_empty() && !experiment.is_precise(1.0));
    for _ in 0..2 {
        let request = |side| Request {
            route: "/".to_owned(),
            side,
            block: 0,
            cpu_us: Some(10.0),
            wall_us: 20.0,
        };
        let requests = vec![request(Side::Before), request(Side::After)];
        let boot_ms = Pair { before: 100.0, after: 120.0 };
        experiment.add(&Measured { requests, boot_ms, ..Measured::default() });
    }
    assert!(experiment.subjects().iter().all(|one| one.cpu_us.difference.is_none()));
    let (boot, memory) = experiment.boot_and_memory();
    assert_eq!((boot.value.after, boot.difference), (120.0, None));
    assert_eq!(memory.value, Pair::default(), "unknown memory is no memory");
    experiment.add(&Measured::default());
    assert_eq!(experiment.rounds(), 3);
}
