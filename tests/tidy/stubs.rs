//! Checks that the polyfill has exactly the functions and methods that the stubs declare.

use crate::tree::{none, only, read};
use std::collections::BTreeSet;

const POLYFILL: [&str; 17] = [
    "php/polyfill/functions.php",
    "php/polyfill/Breaker.php",
    "php/polyfill/Cache.php",
    "php/polyfill/CancelledException.php",
    "php/polyfill/Channel.php",
    "php/polyfill/Counter.php",
    "php/polyfill/Job.php",
    "php/polyfill/Lock.php",
    "php/polyfill/Pool.php",
    "php/polyfill/Queue.php",
    "php/polyfill/RateLimiter.php",
    "php/polyfill/Request.php",
    "php/polyfill/Response.php",
    "php/polyfill/Table.php",
    "php/polyfill/Task.php",
    "php/polyfill/TimeoutException.php",
    "php/polyfill/Timer.php",
];

#[test]
fn polyfill_has_the_signatures_of_the_stubs() {
    let stubs = read("php/stubs/samovar.php");
    // The classes and functions of the namespace; the part after it has no polyfill.
    let (_, rest) = stubs.split_once("namespace Samovar {").expect("the namespace");
    let (namespace, _) = rest.split_once("\nnamespace {").expect("its end");
    let mut described = signatures(namespace);
    for file in ["php/stubs/shared.php", "php/stubs/tasks.php", "php/stubs/jobs.php"] {
        described.extend(signatures(&read(file)));
    }
    let ours = POLYFILL.iter().flat_map(|file| signatures(&read(file))).collect();
    assert!(described.len() > 20, "{described:?}");
    none("in the stubs, and not in php/polyfill", &only(&described, &ours));
    none("in php/polyfill, and not in the stubs", &only(&ours, &described));
}

/// `function name(parameters): type` of the public API. Constructors are skipped, because the
/// polyfill's take other parameters. Static methods are skipped, because they create the polyfill's
/// requests.
fn signatures(php: &str) -> BTreeSet<String> {
    php.lines()
        .map(str::trim)
        .map(|line| line.strip_prefix("public ").unwrap_or(line))
        .filter(|line| line.starts_with("function ") && !line.starts_with("function __"))
        .map(|line| line.trim_end_matches([' ', '{']).to_owned())
        .collect()
}
