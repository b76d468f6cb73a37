//! Shares of routes in the history → weights of requests, so that today's mix is measured.

use super::targets::{Requests, Weighted};
use samovar_load::Target;
use samovar_log::fold;
use samovar_plan::RouteTotal;
use std::collections::BTreeMap;

/// Share of the history that a mix should have.
const COVERED: f64 = 0.95;

/// Returns one GET request for each route of the history that is a literal path.
pub(crate) fn of_history(routes: &[RouteTotal]) -> Requests {
    let mut requests = Requests::default();
    let mut left_out = 0.0;
    for route in routes.iter().filter(|route| route.requests > 0.0) {
        if let Some(path) = path_of(&route.name).filter(|path| !path.contains('{')) {
            let target = Target {
                weight: route.requests,
                method: "GET".to_owned(),
                path: path.to_owned(),
                ..Target::default()
            };
            requests.add(Weighted { target, route: Some(route.name.clone()) });
        } else {
            requests.leave_out("the route of the history is no complete path", 1);
            left_out += route.requests;
        }
    }
    requests.words = format!(
        "{} routes of the history, by GET, without queries and cookies",
        requests.all.len()
    );
    note_coverage(&mut requests, routes, left_out);
    requests
}

/// Gives the requests of each route the route's share in the history. Requests of other routes are
/// left out.
pub(crate) fn weigh(requests: &mut Requests, routes: &[RouteTotal]) {
    let find = |one: &Weighted| {
        let path = one.target.path.split('?').next().unwrap_or_default();
        let folded = fold(path);
        routes.iter().position(|route| match &one.route {
            Some(name) => *name == route.name,
            None => path_of(&route.name) == Some(&*folded),
        })
    };
    let places: Vec<Option<usize>> = requests.all.iter().map(find).collect();
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (one, place) in requests.all.iter().zip(&places) {
        if let Some(place) = place {
            *sums.entry(*place).or_default() += one.target.weight;
        }
    }
    let mut kept = Vec::new();
    for (mut one, place) in std::mem::take(&mut requests.all).into_iter().zip(places) {
        match place.filter(|place| sums.get(place).is_some_and(|sum| *sum > 0.0)) {
            Some(place) => {
                one.target.weight *= routes[place].requests / sums[&place];
                kept.push(one);
            }
            None => requests.leave_out("the history has no route of this path", 1),
        }
    }
    requests.all = kept;
    requests.words = format!("{}, by the share of each route in the history", requests.words);
    let missing = routes.iter().enumerate().filter(|(place, _)| !sums.contains_key(place));
    let missing = missing.map(|(_, route)| route.requests).sum();
    note_coverage(requests, routes, missing);
}

fn note_coverage(requests: &mut Requests, routes: &[RouteTotal], missing: f64) {
    let total: f64 = routes.iter().map(|route| route.requests).sum();
    if total > 0.0 && missing > (1.0 - COVERED) * total {
        let percent = 100.0 * (1.0 - missing / total);
        requests.notes.push(format!("the mix has routes of {percent:.0} % of today's requests"));
    }
}

/// The path of a route that is named by script and path, such as `index.php /users/{n}`.
fn path_of(route: &str) -> Option<&str> {
    let last = route.rsplit(' ').next()?;
    last.starts_with('/').then_some(last)
}

#[cfg(test)]
mod tests {
    use super::super::targets::Weighted;
    use super::*;

    fn route(name: &str, requests: f64) -> RouteTotal {
        RouteTotal { name: name.to_owned(), requests, cpu: None }
    }

    fn routes() -> [RouteTotal; 4] {
        [
            route("index.php /", 60.0),
            route("index.php /users/{n}", 30.0),
            route("shop", 9.0),
            route("(not found)", 1.0),
        ]
    }

    fn request(path: &str, route: Option<&str>) -> Weighted {
        let (method, path) = ("GET".to_owned(), path.to_owned());
        let target = Target { weight: 1.0, method, path, ..Target::default() };
        Weighted { target, route: route.map(str::to_owned) }
    }

    fn shown(requests: &Requests) -> Vec<String> {
        let each = requests.all.iter();
        each.map(|one| format!("{} {}", one.target.path, one.target.weight)).collect()
    }

    #[test]
    fn literal_routes_become_requests() {
        let requests = of_history(&routes());
        assert_eq!(shown(&requests), ["/ 60"]);
        assert_eq!(requests.left_out()[0].0, 3);
        assert!(requests.notes[0].contains("60 % of today's requests"), "{:?}", requests.notes);
    }

    #[test]
    fn requests_get_the_share_of_their_route() {
        let mut requests = Requests::default();
        for (path, route) in [
            ("/users/7", None),
            ("/users/8?a", None),
            ("/?b", None),
            ("/x", Some("shop")),
            ("/y", None),
        ] {
            requests.add(request(path, route));
        }
        weigh(&mut requests, &routes());
        assert_eq!(shown(&requests), ["/users/7 15", "/users/8?a 15", "/?b 60", "/x 9"]);
        assert_eq!(requests.left_out(), [(1, "the history has no route of this path".to_owned())]);
        assert!(requests.notes.is_empty(), "99 % are covered: {:?}", requests.notes);
    }
}
