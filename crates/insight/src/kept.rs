//! Requests whose details are kept: the last slow and failed ones.

use crate::finished::{Finished, Numbers};
use crate::report::{BOOTS_MAX, Boot, Entry, WaitKind};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Requests that are kept.
const KEPT_MAX: usize = 500;

/// A timer of one request, times in ns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTimer {
    /// What it is called by.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// How often it was started and stopped.
    pub hits: u32,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time, user and system.
    pub cpu_ns: u64,
}

/// What a worker was at when its request became slow, as it was seen from outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scene {
    /// What it waited for, or that it computed: `it is in flock of descriptor 7: /srv/lock`.
    pub blocked: Box<str>,
    /// PHP's calls, the innermost first.
    pub calls: Vec<Box<str>>,
}

/// One request, whole. Without query string, cookies and body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its id.
    pub id: Box<str>,
    /// Its route.
    pub route: Box<str>,
    /// Its method.
    pub method: Box<str>,
    /// Its path.
    pub path: Box<str>,
    /// Its script.
    pub script: Box<str>,
    /// Times, sizes, codes.
    pub numbers: Numbers,
    /// (kind, peer, times, ns) of what it waited for, the longest first.
    pub waits: Vec<(WaitKind, Box<str>, u32, u64)>,
    /// Its timers.
    pub timers: Vec<KeptTimer>,
    /// Its tags.
    pub tags: Vec<(Box<str>, Box<str>)>,
    /// The boots of its worker and of its script.
    #[serde(default)] // A history may be older.
    pub boots: Vec<Boot>,
    /// Where PHP stood when it waited longest.
    pub place: Option<Box<str>>,
    /// What its worker was at when it became slow.
    #[serde(default)] // A history may be older.
    pub scene: Option<Scene>,
}

fn owned(tags: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    tags.iter().map(|(name, value)| (Box::from(*name), Box::from(*value))).collect()
}

impl Kept {
    pub(crate) fn new(finished: &Finished, route: &str, entries: &[Entry]) -> Kept {
        let mut kept = Kept {
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
                self.timers.push(KeptTimer {
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

/// The last requests worth a look. Copies share the requests.
#[derive(Clone, Debug, Default)]
pub struct KeptRequests(VecDeque<Arc<Kept>>);

impl KeptRequests {
    pub(crate) fn put(&mut self, kept: Arc<Kept>) {
        if self.0.len() == KEPT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(kept);
    }

    /// The latest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Kept>> {
        self.0.iter().rev()
    }

    /// The latest of that id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Arc<Kept>> {
        self.iter().find(|kept| &*kept.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arc, KEPT_MAX, Kept, KeptRequests};
    use crate::finished::Finished;
    use crate::report::{Entry, Wait, WaitKind};

    #[test]
    fn the_longest_wait_is_first() {
        let entries = [("a", 1), ("b", 3), ("c", 2)]
            .map(|(peer, ns)| Entry::Wait(Wait { kind: WaitKind::Tcp, peer, times: 1, ns }));
        let kept = Kept::new(&Finished::default(), "r", &entries);
        let peers: Vec<_> = kept.waits.iter().map(|(_, peer, ..)| &**peer).collect();
        assert_eq!(peers, ["b", "c", "a"]);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut all = KeptRequests::default();
        for n in 0..=KEPT_MAX {
            let id = n.to_string();
            all.put(Arc::new(Kept::new(&Finished { id: &id, ..Finished::default() }, "r", &[])));
        }
        assert_eq!(all.iter().count(), KEPT_MAX);
        assert!(all.find("0").is_none() && all.find("1").is_some());
    }
}
