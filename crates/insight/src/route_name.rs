//! The route of a request: named by the application, or derived from script and path.

use crate::finished::{Finished, Model};
use crate::redaction::Redaction;
use crate::report::{Entry, Report};
use samovar_log::fold;
use std::borrow::Cow;

/// Route of all requests to paths that do not exist, unless the application names the route: a
/// scanner invents paths.
pub const NOT_FOUND: &str = "(not found)";

/// Returns the route that the application named last in a report.
pub(crate) fn named_route<'a>(entries: &[Entry<'a>]) -> Option<&'a str> {
    entries.iter().rev().find_map(|entry| match entry {
        Entry::Route(name) => Some(*name),
        _ => None,
    })
}

/// Returns the route's name with its pool if there are several pools: the `/` of two pools are two
/// routes.
pub(crate) fn of_pool(pool: &str, route: &str) -> Option<String> {
    (!pool.is_empty()).then(|| format!("{pool}: {route}"))
}

/// Returns the route of a request that the application did not name, such as `index.php
/// /users/{n}`. The script is omitted if the path contains it. `name` is a buffer.
pub(crate) fn route_of<'a>(finished: &Finished<'a>, name: &'a mut String) -> &'a str {
    if finished.numbers.status == 404 && finished.numbers.model != Model::Elsewhere {
        return NOT_FOUND;
    }
    route_by_path(finished.script, finished.path, name)
}

/// Returns the route name for a script and a path.
pub fn route_by_path<'a>(script: &str, path: &'a str, name: &'a mut String) -> &'a str {
    let path = fold(path);
    let script = script.trim_start_matches('/');
    if script.is_empty() || path.trim_start_matches('/').starts_with(script) {
        return match path {
            Cow::Borrowed(path) => path,
            Cow::Owned(path) => {
                *name = path;
                name
            }
        };
    }
    name.clear();
    for part in [script, " ", &path] {
        name.push_str(part);
    }
    name
}

/// Figures of one request for the access log, named as in the statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Route, with its pool if there are several pools.
    pub route: String,
    /// Total time that PHP waited, ns.
    pub waiting_ns: Option<u64>,
}

impl Glance {
    /// Returns the figures of a request. Malformed entries of its report are skipped.
    #[must_use]
    pub fn of(finished: &Finished, redaction: &Redaction) -> Glance {
        let (mut named, mut waiting_ns) = (None, 0_u64);
        for entry in Report::new(finished.report).filter_map(Result::ok) {
            match entry {
                Entry::Route(name) => named = Some(redaction.text(name)),
                Entry::Wait(wait) => waiting_ns = waiting_ns.saturating_add(wait.ns),
                _ => {}
            }
        }
        let path = redaction.text(finished.path);
        let (finished, mut buffer) = (Finished { path: &path, ..*finished }, String::new());
        let route = match &named {
            Some(name) => name,
            None => route_of(&finished, &mut buffer),
        };
        let route = of_pool(finished.pool, route).unwrap_or_else(|| route.to_owned());
        Glance { route, waiting_ns: Some(waiting_ns) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Glance, NOT_FOUND};
    use crate::finished::{Finished, Numbers};
    use crate::redaction::Redaction;
    use crate::report::{Entry, Wait, WaitKind};
    use crate::{Aggregate, Batch, Limits};

    /// The access log and the statistics must agree, or a line cannot be found in the metrics.
    #[test]
    fn glance_names_routes_as_the_aggregate_does() {
        let wait = |ns| Wait { kind: WaitKind::Tcp, peer: "10.0.0.5:80", times: 1, ns };
        let waits = [Entry::Wait(wait(5)).encode(), Entry::Wait(wait(7)).encode()].concat();
        let name = |name| Entry::Route(name).encode();
        let twice = [name("first"), name("shop_show")].concat();
        let broken = [name("kept"), vec![9, 0, 0]].concat();
        for (path, script, pool, status, report, route, waiting_ns) in [
            ("/users/42", "/index.php", "", 200, &waits, "index.php /users/{n}", 12),
            ("/about.php", "/about.php", "", 200, &vec![], "/about.php", 0),
            ("/users/42", "/index.php", "blog", 200, &vec![], "blog: index.php /users/{n}", 0),
            ("/wp-login.php", "", "", 404, &vec![], NOT_FOUND, 0),
            ("/a", "/index.php", "", 404, &twice, "shop_show", 0),
            ("/a", "/index.php", "", 200, &broken, "kept", 0),
            ("/a", "/index.php", "", 200, &name("/x?token=abc"), "/x?(redacted)", 0),
        ] {
            let numbers = Numbers { status, worker: 1, ..Numbers::default() };
            let finished = Finished { numbers, path, script, pool, report, ..Finished::default() };
            let glance = Glance::of(&finished, &Redaction::default());
            assert_eq!((&*glance.route, glance.waiting_ns), (route, Some(waiting_ns)), "{path}");
            let mut batch = Batch::default();
            batch.put(&finished);
            let mut figures = Aggregate::new(Limits { routes_max: 10, slow_ns: u64::MAX });
            figures.take(&batch, 1);
            let names: Vec<_> = figures.routes().map(|(name, _)| name).collect();
            assert_eq!(names, [route], "{path}");
        }
    }
}
