//! Few paths whose requests include most of the files, by time: a list of warm-up requests. Pure.

use std::collections::HashMap;

/// Maximum number of paths.
const PATHS_MAX: usize = 5;
/// Minimum fraction of the time that a path must add, to be worth a request at each boot.
const WORTH: f64 = 0.01;

/// A path, and the files that its requests include.
pub(super) struct Route<'a> {
    pub(super) path: &'a str,
    pub(super) files: Vec<u32>,
}

/// Returns the paths; the one with the most time is first. `time` has the time of each file in all
/// requests.
pub(super) fn cover(routes: &[Route<'_>], time: &HashMap<u32, u64>) -> Vec<String> {
    #[allow(clippy::cast_precision_loss)] // Times.
    let cost = |file: &u32| time.get(file).copied().unwrap_or(0) as f64;
    let all: f64 = time.keys().map(cost).sum();
    let mut left: HashMap<u32, f64> = time.keys().map(|file| (*file, cost(file))).collect();
    let mut paths = Vec::new();
    while paths.len() < PATHS_MAX {
        let gain = |route: &Route<'_>| -> f64 {
            route.files.iter().filter_map(|file| left.get(file)).sum()
        };
        let best = routes.iter().map(|route| (gain(route), route)).fold(
            None,
            |best: Option<(f64, &Route<'_>)>, it| match best {
                Some(known) if known.0 >= it.0 => Some(known),
                _ => Some(it),
            },
        );
        let Some((gain, route)) = best.filter(|(gain, _)| *gain > all * WORTH) else { break };
        debug_assert!(gain > 0.0);
        paths.push(route.path.to_owned());
        for file in &route.files {
            left.remove(file);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_most_uncovered_time_come_first() {
        let route = |path, files: &[u32]| Route { path, files: files.to_vec() };
        let routes = [
            route("/small", &[1]),
            route("/large", &[1, 2, 3]),
            route("/other", &[3, 4]),
            route("/cheap", &[5]),
        ];
        let time = HashMap::from([(1, 100), (2, 500), (3, 200), (4, 90), (5, 1)]);
        assert_eq!(cover(&routes, &time), ["/large", "/other"]);
        assert!(cover(&[], &time).is_empty());
        assert!(cover(&routes, &HashMap::new()).is_empty());
    }
}
