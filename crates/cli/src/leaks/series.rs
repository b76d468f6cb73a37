//! Requests in order, each with a heap walk after it → changes by name.

use super::differ::{Change, changes};
use super::heap_walk::HeapWalk;
use super::judge::Boot;
use super::place::Places;
use super::trend::{Steps, trends};
use crate::trial::targets::Target;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Maximum number of different names; further ones are ignored.
const NAMES_MAX: usize = 20_000;
/// Maximum number of requests of a URL that show whether descriptors, mappings and child processes
/// have a bound: the system has few of them.
const HOLDINGS_TIMES_MAX: usize = 60;

/// Results of a run.
#[derive(Default)]
pub(super) struct Series {
    pub(super) steps: Steps,
    pub(super) resident: bool,
    /// Path of the front controller.
    pub(super) script: String,
    /// Changes by kind and name, each with the index of its step.
    pub(super) changes: BTreeMap<(u8, String), Vec<(usize, Change)>>,
    pub(super) boot: Boot,
    pub(super) places: Places,
    /// Classes and functions that each URL loaded first, by the URL's index.
    pub(super) loaded: BTreeMap<usize, BTreeSet<String>>,
    /// Whether a limit was reached, so that data is missing.
    pub(super) cut: bool,
    /// Census to compare the next one with, by process id.
    last: HashMap<u32, Rc<HeapWalk>>,
    asked: BTreeSet<usize>,
    /// Kinds and names that are known to grow without an end.
    proven: BTreeSet<(u8, String)>,
}

impl Series {
    /// Creates a series for an application, by its front controller.
    pub(super) fn of(script: String) -> Series {
        Series { script, ..Series::default() }
    }

    /// Adds the heap walk of a worker before its first request.
    pub(super) fn begin(&mut self, heap_walk: HeapWalk) {
        if self.boot.files.is_empty() {
            self.boot.files = heap_walk.of_kind(b'I').map(|node| node.key.clone()).collect();
            self.boot.globals = heap_walk.of_kind(b'g').map(|node| node.key.clone()).collect();
            self.boot.classes = heap_walk.of_kind(b'C').map(|node| node.key.clone()).collect();
        }
        self.last.insert(heap_walk.process, Rc::new(heap_walk));
    }

    pub(super) fn knows(&self, process: u32) -> bool {
        self.last.contains_key(&process)
    }

    /// Adds the heap walk after requests for the URL with this index; `span` is their number.
    pub(super) fn add(&mut self, url: usize, heap_walk: HeapWalk, span: usize) {
        let Some(last) = self.last.get(&heap_walk.process).cloned() else { return };
        self.resident = heap_walk.resident;
        self.cut |= heap_walk.cut;
        self.places.learn(&heap_walk);
        let step = self.steps.len();
        let new_url = self.asked.insert(url);
        // The first request of another worker counts as first, too: it has no earlier comparison.
        let first = step == 0 || (heap_walk.resident && last.begins);
        self.steps.add(url, (first, new_url && !first), heap_walk.resident, span);
        for mut change in changes(&last, &heap_walk) {
            if change.kind == b'c' {
                change.file = self.places.file_of_constant(&change.root).unwrap_or_default();
            }
            self.note_loaded(url, &change);
            if heap_walk.resident || !self.ends_with_script(&change) {
                self.note(step, change);
            }
        }
        if heap_walk.resident {
            self.last.insert(heap_walk.process, Rc::new(HeapWalk { begins: false, ..heap_walk }));
        }
    }

    /// Returns whether this URL has grown a value, and more requests, up to a maximum, can show
    /// whether its growth ends. The growth of a value is examined with one URL only.
    pub(super) fn is_open(&mut self, url: usize, times_max: usize) -> bool {
        let mut is_open = false;
        for (name, noted) in &self.changes {
            let can_grow = !matches!(name.0, b'k' | b'I' | b'b' | b'C' | b'F' | b'c' | 0);
            let is_other = noted.last().is_none_or(|(step, _)| self.steps.at(*step).url != url);
            if !can_grow || is_other || self.proven.contains(name) {
                continue;
            }
            let changes: Vec<_> = noted.iter().map(|(step, change)| (*step, change)).collect();
            let found = trends(&self.steps, &changes);
            let Some(trend) = found.iter().find(|of| of.url == url && of.is_open()) else {
                continue;
            };
            let is_holding = matches!(name.0, b'd' | b'm' | b'p');
            let max = if is_holding { times_max.min(HOLDINGS_TIMES_MAX) } else { times_max };
            if trend.requests < max {
                is_open = true;
            } else if trend.is_leak() {
                self.proven.insert(name.clone());
            }
        }
        is_open
    }

    /// Returns whether the change ends with the front controller's script: its own variables, and
    /// its working directory.
    fn ends_with_script(&self, change: &Change) -> bool {
        match change.kind {
            b'g' => {
                !self.boot.globals.contains(&change.root)
                    && self.places.is_global_of(&change.root, &self.script)
            }
            b'x' => change.root == "working directory" && !self.places.knows_call("chdir"),
            _ => false,
        }
    }

    fn note_loaded(&mut self, url: usize, change: &Change) {
        let is_new = change.before.is_none() && matches!(change.kind, b'C' | b'F');
        let is_named = !change.name.contains("@anonymous") && !change.file.contains("eval()'d");
        if is_new && is_named && !self.boot.files.contains(&change.file) {
            self.loaded.entry(url).or_default().insert(change.name.clone());
        }
    }

    fn note(&mut self, step: usize, change: Change) {
        let name = (change.kind, change.name.clone());
        if self.changes.len() >= NAMES_MAX && !self.changes.contains_key(&name) {
            self.cut = true;
            return;
        }
        let noted = self.changes.entry(name).or_default();
        match noted.last_mut() {
            // Changes with the same name are added up.
            Some((last, known)) if *last == step => {
                known.grown += change.grown;
                known.bytes += change.bytes;
                known.print ^= change.print;
            }
            _ => noted.push((step, change)),
        }
    }

    /// Returns targets that together load all classes and functions that requests load; the target
    /// that loads most is first.
    pub(super) fn warmup(&self, targets: &[Target]) -> Vec<(String, usize)> {
        let (mut chosen, mut have) = (Vec::new(), BTreeSet::new());
        while chosen.len() < targets.len() {
            let fresh = |names: &BTreeSet<String>| names.difference(&have).count();
            let richest = self
                .loaded
                .iter()
                .filter(|(url, _)| targets[**url].is_local())
                .max_by_key(|(url, names)| (fresh(names), usize::MAX - **url));
            let Some((url, names)) = richest.filter(|(_, names)| fresh(names) > 0) else { break };
            chosen.push((targets[*url].path.clone(), fresh(names)));
            have.extend(names.iter().cloned());
        }
        chosen
    }
}
