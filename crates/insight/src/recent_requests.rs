//! Requests whose details are kept: the last slow and failed ones.

use crate::finished::{Finished, Numbers};
use crate::report::{BOOTS_MAX, Boot, Entry, WaitKind};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of kept requests.
const KEPT_MAX: usize = 500;

/// A timer of one request; times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentTimer {
    /// Tags of the timer.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// Number of times it was started and stopped.
    pub hits: u32,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time, user and system.
    pub cpu_ns: u64,
}

/// State of a worker at the time its request became slow, as sampled from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// The system call that it waits in, or that it computes: `in flock of descriptor 7:
    /// /srv/lock`.
    pub blocked: Box<str>,
    /// PHP's call stack, innermost call first.
    pub calls: Vec<Box<str>>,
}

/// One request with all details, but without query string, cookies and body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentRequest {
    /// Id.
    pub id: Box<str>,
    /// Route.
    pub route: Box<str>,
    /// Method.
    pub method: Box<str>,
    /// Path.
    pub path: Box<str>,
    /// Script.
    pub script: Box<str>,
    /// Times, sizes, codes.
    pub numbers: Numbers,
    /// Waits as (kind, peer, times, ns), longest first.
    pub waits: Vec<(WaitKind, Box<str>, u32, u64)>,
    /// Timers.
    pub timers: Vec<RecentTimer>,
    /// Tags.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// Boots of its worker and its script.
    #[serde(default)] // A history may have been written by an older version.
    pub boots: Vec<Boot>,
    /// Position of PHP during the longest wait.
    pub place: Option<Box<str>>,
    /// State of the worker at the time the request became slow.
    #[serde(default)] // A history may have been written by an older version.
    pub scene: Option<Scene>,
}

fn owned(tags: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    tags.iter().map(|(name, value)| (Box::from(*name), Box::from(*value))).collect()
}

impl RecentRequest {
    pub(crate) fn new(finished: &Finished, route: &str, entries: &[Entry]) -> RecentRequest {
        let mut kept = RecentRequest {
            id: finished.id.into(),
            route: route.into(),
            method: finished.method.into(),
            path: finished.path.into(),
            script: finished.script.into(),
            numbers: finished.numbers,
            waits: Vec::new(),
            timers: Vec::new(),
            tags: Vec::new(),
            boots: Vec::new(),
            place: None,
            scene: None,
        };
        for entry in entries {
            kept.add(entry);
        }
        kept.waits.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
        kept
    }

    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Wait(w) => self.waits.push((w.kind, w.peer.into(), w.times, w.ns)),
            Entry::Timer { hits, wall_ns, user_ns, system_ns, tags } => {
                self.timers.push(RecentTimer {
                    tags: owned(tags),
                    hits: *hits,
                    wall_ns: *wall_ns,
                    cpu_ns: user_ns.saturating_add(*system_ns),
                });
            }
            Entry::Tag(name, value) => self.tags.push(((*name).into(), (*value).into())),
            Entry::Place(place) => self.place = Some((*place).into()),
            Entry::Boot(boot) if self.boots.len() < BOOTS_MAX => self.boots.push(*boot),
            Entry::Route(_) | Entry::Dropped(_) | Entry::Boot(_) => {}
        }
    }
}

/// The last slow and failed requests. Clones share the requests.
#[derive(Clone, Debug, Default)]
pub struct RecentRequests(VecDeque<Arc<RecentRequest>>);

impl RecentRequests {
    pub(crate) fn put(&mut self, kept: Arc<RecentRequest>) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(kept);
    }

    /// Returns the requests, latest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RecentRequest>> {
        self.0.iter().rev()
    }

    /// Returns the latest request with this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Arc<RecentRequest>> {
        self.iter().find(|kept| &*kept.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, KEPT_MAX, RecentRequest, RecentRequests};
    use crate::finished::Finished;
    use crate::report::{Entry, Wait, WaitKind};

    #[test]
    fn kept_request_lists_longest_wait_first() {
        let entries = [("a", 1), ("b", 3), ("c", 2)]
            .map(|(peer, ns)| Entry::Wait(Wait { kind: WaitKind::Tcp, peer, times: 1, ns }));
        let kept = RecentRequest::new(&Finished::default(), "r", &entries);
        let peers: Vec<_> = kept.waits.iter().map(|(_, peer, ..)| &**peer).collect();
        assert_eq!(peers, ["b", "c", "a"]);
    }

    #[test]
    fn kept_requests_beyond_limit_drop_oldest() {
        let mut all = RecentRequests::default();
        for n in 0..=KEPT_MAX {
            let id = n.to_string();
            all.put(Arc::new(RecentRequest::new(
                &Finished { id: &id, ..Finished::default() },
                "r",
                &[],
            )));
        }
        assert_eq!(all.iter().count(), KEPT_MAX);
        assert!(all.find("0").is_none() && all.find("1").is_some());
    }
}
