//! Requests one after the other, with a census behind each → what changed, by its name.

use super::census::Census;
use super::differ::{Change, changes};
use super::judge::{Boot, Step};
use super::place::Places;
use crate::trial::targets::Target;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Different names; the rest is not looked at.
const NAMES_MAX: usize = 20_000;

/// All that is known of a run.
#[derive(Default)]
pub(super) struct Series {
    pub(super) steps: Vec<Step>,
    pub(super) resident: bool,
    /// The front controller.
    pub(super) script: String,
    /// By kind and name: the step, with what it has changed.
    pub(super) changes: BTreeMap<(u8, String), Vec<(usize, Change)>>,
    pub(super) boot: Boot,
    pub(super) places: Places,
    /// What each URL has loaded first: classes and functions, by the URL's place.
    pub(super) loaded: BTreeMap<usize, BTreeSet<String>>,
    /// Not all was looked at: a limit was met.
    pub(super) cut: bool,
    /// By process: the census that the next one is compared with.
    last: HashMap<u32, Rc<Census>>,
    asked: BTreeSet<usize>,
}

impl Series {
    /// Of an application by its front controller.
    pub(super) fn of(script: String) -> Series {
        Series { script, ..Series::default() }
    }

    /// A worker before its first request.
    pub(super) fn begin(&mut self, census: Census) {
        if self.boot.files.is_empty() {
            self.boot.files = census.of_kind(b'I').map(|node| node.key.clone()).collect();
            self.boot.globals = census.of_kind(b'g').map(|node| node.key.clone()).collect();
            self.boot.classes = census.of_kind(b'C').map(|node| node.key.clone()).collect();
        }
        self.last.insert(census.process, Rc::new(census));
    }

    pub(super) fn knows(&self, process: u32) -> bool {
        self.last.contains_key(&process)
    }

    /// What a request for the URL at `url` has left.
    pub(super) fn add(&mut self, url: usize, census: Census) {
        let Some(last) = self.last.get(&census.process).cloned() else { return };
        self.resident = census.resident;
        self.cut |= census.cut;
        self.places.learn(&census);
        let step = self.steps.len();
        let new_url = self.asked.insert(url);
        // In a worker of its own, too: it has compared nothing yet.
        let first = step == 0 || (census.resident && last.begins);
        self.steps.push(Step { url, first, new_url: new_url && !first, resident: census.resident });
        for mut change in changes(&last, &census) {
            if change.kind == b'c' {
                change.file = self.places.file_of_constant(&change.root).unwrap_or_default();
            }
            self.note_loaded(url, &change);
            if census.resident || !self.ends_with_script(&change) {
                self.note(step, change);
            }
        }
        if census.resident {
            self.last.insert(census.process, Rc::new(Census { begins: false, ..census }));
        }
    }

    /// Of the front controller, which has come to its end: its own variables, and its folder.
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
            // Of several with one name: what they are together.
            Some((last, known)) if *last == step => {
                known.grown += change.grown;
                known.bytes += change.bytes;
                known.print ^= change.print;
            }
            _ => noted.push((step, change)),
        }
    }

    /// Targets that load all that requests have loaded, the richest first.
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
