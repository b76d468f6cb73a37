//! Requests of the experiment: URLs, recorded ones, the routes of the history, or a file.

use crate::control_client;
use crate::plan::routes_of;
use crate::plan::verify::targets::{Requests, Weighted, read};
use crate::plan::verify::{mix, recorded};
use crate::trial::targets::Target as Url;
use anyhow::Result;
use samovar_load::Target;
use std::path::PathBuf;

/// Maximum number of different requests.
const TARGETS_MAX: usize = 2_000;

/// Source of the requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Recorded requests of a running server, else the routes of its history, else `/`.
    Any,
    Urls(Vec<Url>),
    Recorded,
    History,
    File(PathBuf),
}

/// Returns the requests. `control` is the socket of the running server; `None`: discover it.
pub(super) fn collect(
    source: &Source,
    control: Option<&PathBuf>,
    allowed: &[String],
) -> Result<Requests> {
    let mut requests = match source {
        Source::Any => any(control),
        Source::Urls(urls) => of_urls(urls),
        Source::Recorded => recorded::collect(&control_client::path(control)?)?,
        Source::History => mix::of_history(&routes_of(control.cloned())?),
        Source::File(path) => read(path)?,
    };
    requests.leave_out_unsafe(allowed);
    for one in &mut requests.all {
        // Each request gets an id of its own.
        one.target.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("x-request-id"));
    }
    // A weight of 0 is that of a request that is never sent.
    requests.all.retain(|one| one.target.weight > 0.0);
    if requests.all.len() > TARGETS_MAX {
        let more = requests.all.len() - TARGETS_MAX;
        requests.all.truncate(TARGETS_MAX);
        requests.leave_out("more than 2000 different requests", more as u64);
    }
    requests.must_have_targets()?;
    Ok(requests)
}

/// A running server is not required, so its failures are no errors.
fn any(control: Option<&PathBuf>) -> Requests {
    if let Ok(path) = control_client::path(control) {
        let recorded = recorded::collect(&path).ok().filter(|found| !found.all.is_empty());
        let history = || routes_of(Some(path.clone())).ok().map(|routes| mix::of_history(&routes));
        if let Some(found) = recorded.or_else(history).filter(|found| !found.all.is_empty()) {
            return found;
        }
    }
    let mut requests = Requests::default();
    requests.add(weighted("localhost", "/"));
    "the URL /".clone_into(&mut requests.words);
    let note = "there is no recording and no history: pass --urls, or record requests with \
                `samovar record`";
    requests.notes.push(note.to_owned());
    requests
}

fn of_urls(urls: &[Url]) -> Requests {
    let mut requests = Requests::default();
    for url in urls {
        requests.add(weighted(&url.host, &url.path));
    }
    requests.words = format!("{} URLs", requests.all.len());
    requests
}

fn weighted(host: &str, path: &str) -> Weighted {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![header("Host", host), header("Accept", "*/*")];
    let (method, path) = ("GET".to_owned(), path.to_owned());
    Weighted {
        target: Target { weight: 1.0, method, path, headers, ..Target::default() },
        route: None,
    }
}

/// Selects requests by weight, evenly spread: a request of weight 2 comes twice as often as one of
/// weight 1, and never twice in a row if others wait.
#[derive(Debug)]
pub(super) struct Sequence {
    weights: Vec<f64>,
    credits: Vec<f64>,
}

impl Sequence {
    pub(super) fn new(requests: &Requests) -> Sequence {
        let total: f64 = requests.all.iter().map(|one| one.target.weight).sum();
        let weights: Vec<f64> = requests.all.iter().map(|one| one.target.weight / total).collect();
        Sequence { credits: vec![0.0; weights.len()], weights }
    }

    /// Returns the index of the next request.
    pub(super) fn next(&mut self) -> usize {
        let mut best = 0;
        for (at, weight) in self.weights.iter().enumerate() {
            self.credits[at] += weight;
            if self.credits[at] > self.credits[best] {
                best = at;
            }
        }
        self.credits[best] -= 1.0;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_spread_by_weight() {
        let mut requests = Requests::default();
        for (path, weight) in [("/a", 2.0), ("/b", 1.0), ("/c", 1.0)] {
            let mut one = weighted("h", path);
            one.target.weight = weight;
            requests.add(one);
        }
        let mut sequence = Sequence::new(&requests);
        let drawn: Vec<usize> = (0..8).map(|_| sequence.next()).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn no_source_is_the_first_page() {
        let missing = PathBuf::from("/none/samovar.sock");
        let found = collect(&Source::Any, Some(&missing), &[]).expect("one request");
        assert_eq!((found.all.len(), found.notes.len()), (1, 1));
        assert!(collect(&Source::Recorded, Some(&missing), &[]).is_err());
        let many: Vec<Url> = (0..TARGETS_MAX + 5)
            .map(|n| Url { host: "h".to_owned(), path: format!("/{n}") })
            .collect();
        let found = collect(&Source::Urls(many), None, &[]).expect("many requests");
        assert_eq!((found.all.len(), found.left_out()[0].0), (TARGETS_MAX, 5));
    }
}
