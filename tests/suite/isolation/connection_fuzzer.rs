//! Random visits on a connection that was opened above the checkpoint, compared with the same
//! visits on new connections. The grammars are in tests/apps/connections/src.
//!
//! `CONNECTION_SEED` repeats an order, `CONNECTION_SECONDS` makes it longer. A difference is
//! reduced to the operations that it needs, and printed with its seed.

use crate::isolation::connections::{BOOTS, Pair, differences, parsed, visit};
use samovar_testkit::order::{number_of, seed};
use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time for each database, without the start of its servers.
const DURATION: Duration = Duration::from_secs(1);
/// Each driver and each boot gets at least this time. A short run does not try all of them.
const PAIR_DURATION_MIN: Duration = Duration::from_secs(1);
const FINDINGS_MAX: usize = 40;
const REDUCTIONS_MAX: usize = 60;
/// Number of seeds after which the data are restored. Until then both applications change their
/// data in the same way.
const RESTORED_EVERY: u64 = 8;
/// After this number of findings, the results of an operation are no longer compared: they would
/// hide others.
const FINDINGS_OF_OPERATION_MAX: usize = 2;

type Visits = Vec<Vec<Value>>;

/// The differences so far.
#[derive(Default)]
struct Findings {
    texts: Vec<String>,
    /// Number of findings by the operation whose result has differed.
    operations: HashMap<String, usize>,
    /// Whether a known difference was seen since the data were restored.
    has_ignored: Cell<bool>,
}

impl Findings {
    fn is_known(&self, operation: &str) -> bool {
        let known = self.operations.get(operation).copied().unwrap_or_default();
        let is_known = known >= FINDINGS_OF_OPERATION_MAX;
        self.has_ignored.set(self.has_ignored.get() || is_known);
        is_known
    }
}

/// The operation whose result differs, and the difference.
struct Difference {
    visit: usize,
    at: Option<usize>,
    operation: String,
    text: String,
}

/// Restores the permanent data of both applications.
fn restore(pair: &Pair) {
    for server in [&pair.kept, &pair.fresh] {
        assert_eq!(server.get("/restore").text(), "\"restored\"", "{}", server.log());
    }
}

/// The first difference of these visits, from a new worker.
fn played(pair: &Pair, visits: &Visits, findings: &Findings) -> Option<Difference> {
    pair.leave();
    visits.iter().enumerate().find_map(|(visited, operations)| {
        let body = Value::from(operations.clone());
        let expected = visit(&pair.fresh, &body);
        let differences = differences(&expected, &visit(&pair.kept, &body));
        differences.into_iter().find_map(|(at, text)| {
            let operation = at.map_or_else(String::new, |at| operations[at].to_string());
            let text = format!("visit {visited}, {text}");
            let difference = Difference { visit: visited, at, operation, text };
            (!findings.is_known(&difference.operation)).then_some(difference)
        })
    })
}

/// Removes all operations that the difference does not need.
fn reduced(pair: &Pair, mut visits: Visits, found: &Difference, findings: &Findings) -> Visits {
    let mut tried = 0;
    let mut is_different = |visits: &Visits| {
        tried += 1;
        if tried > REDUCTIONS_MAX {
            return false;
        }
        restore(pair);
        played(pair, visits, findings).is_some()
    };
    // The visitor who sees it often needs no other operation.
    let mut fewer = visits.clone();
    fewer.truncate(found.visit + 1);
    if let (Some(at), Some(last)) = (found.at, fewer.last_mut()) {
        *last = vec![last[at].clone()];
        if is_different(&fewer) {
            visits = fewer;
        }
    }
    for visit in (0..visits.len()).rev() {
        let mut fewer = visits.clone();
        fewer.remove(visit);
        if is_different(&fewer) {
            visits = fewer;
        }
    }
    // Halves first, then single operations.
    for visit in 0..visits.len() {
        let mut part = visits[visit].len().div_ceil(2);
        while part > 0 {
            let mut at = 0;
            while at < visits[visit].len() {
                let mut fewer = visits.clone();
                let end = (at + part).min(fewer[visit].len());
                fewer[visit].drain(at..end);
                if is_different(&fewer) {
                    visits = fewer;
                } else {
                    at += part;
                }
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
    }
    visits
}

/// Tries one driver with one boot. Returns the number of visits.
fn tried(pair: &Pair, seed: u64, until: Instant, findings: &mut Findings) -> usize {
    let mut count = 0;
    let mut number = 0;
    let mut has_differed = false;
    let mut restored = seed;
    while number == 0 || Instant::now() < until {
        if (seed + number).is_multiple_of(RESTORED_EVERY) || number == 0 || has_differed {
            restore(pair);
            restored = seed + number;
        }
        let drawn = parsed(&pair.kept.get(&format!("/draw?seed={}", seed + number)));
        let visits: Visits = drawn
            .as_array()
            .expect("visits")
            .iter()
            .map(|visit| visit.as_array().expect("operations").clone())
            .collect();
        count += visits.len();
        let first = played(pair, &visits, findings);
        has_differed = first.is_some() || findings.has_ignored.take();
        if let Some(first) = first {
            let visits = reduced(pair, visits, &first, findings);
            restore(pair);
            let repeated = played(pair, &visits, findings);
            let label = format!("{} {}, seed {}", pair.driver, pair.boot, seed + number);
            // The visits of earlier seeds have changed the data since the last restore.
            let label = match repeated {
                Some(_) => label,
                None => format!("{label}, not repeated, data of seed {restored}"),
            };
            let found = repeated.unwrap_or(first);
            let visits = serde_json::to_string(&visits).expect("values");
            let text = format!("{label}: {visits}: {}", found.text);
            println!("{text}");
            findings.texts.push(text);
            *findings.operations.entry(found.operation).or_default() += 1;
            if findings.texts.len() >= FINDINGS_MAX {
                break;
            }
        }
        number += 1;
    }
    count
}

fn random_visits(drivers: &[&'static str]) {
    let seed = seed("CONNECTION_SEED") % 1_000_000_000;
    let duration = number_of("CONNECTION_SECONDS").map_or(DURATION, Duration::from_secs);
    let pairs: Vec<_> =
        drivers.iter().flat_map(|driver| BOOTS.map(|boot| (*driver, boot))).collect();
    let part = (duration / pairs.len() as u32).max(PAIR_DURATION_MIN).min(duration);
    let (mut findings, mut spent, mut at) = (Findings::default(), Duration::ZERO, seed as usize);
    while spent < duration && findings.texts.len() < FINDINGS_MAX {
        let (driver, boot) = pairs[at % pairs.len()];
        let pair = Pair::start(driver, boot, "checkpoint");
        let began = Instant::now();
        let count = tried(&pair, seed, began + part, &mut findings);
        println!("{driver} {boot}: {count} visits, {} findings", findings.texts.len());
        spent += began.elapsed().max(part);
        at += 1;
    }
    let texts = findings.texts;
    assert!(texts.is_empty(), "seed {seed}, {} findings\n{}", texts.len(), texts.join("\n"));
}

#[test]
fn random_visits_on_postgresql_equal_visits_on_new_connections() {
    random_visits(&["pgsql", "pdo_pgsql"]);
}

#[test]
fn random_visits_on_mysql_equal_visits_on_new_connections() {
    random_visits(&["mysqli", "pdo_mysql", "pdo_mysql_emulated"]);
}

#[test]
fn random_visits_on_redis_equal_visits_on_new_connections() {
    random_visits(&["redis"]);
}

#[test]
fn random_visits_on_sqlite_equal_visits_on_new_connections() {
    random_visits(&["pdo_sqlite"]);
}
