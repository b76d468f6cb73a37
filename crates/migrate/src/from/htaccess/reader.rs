//! State of a `.htaccess` while it is read: open sections, tables, control of access.

use crate::from::draft::{Block, Draft, Value};
use crate::from::glob;
use crate::from::origin::Origin;
use crate::from::shared::script_and_query;
use std::path::Path;

/// An open section.
pub(super) struct Section {
    pub(super) name: String,
    /// Patterns of `<Files>`; `None`: it does not apply here.
    pub(super) paths: Option<Vec<String>>,
    pub(super) is_skipped: bool,
    /// It is skipped because its expression has no patterns.
    pub(super) is_unknown: bool,
}

pub(super) struct Reader<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) file: &'a Path,
    pub(super) folder: String,
    pub(super) sections: Vec<Section>,
    pub(super) conditions: Vec<(String, Origin)>,
    pub(super) has_front: Option<Origin>,
    pub(super) blocks: Vec<Block>,
    /// Tables that open or deny the files of a section. The last section applies.
    pub(super) rules: Vec<Block>,
    /// `Order allow,deny` of the section with this depth, until an `Allow` follows.
    pub(super) order: Option<(usize, Vec<String>, Origin)>,
    /// The last `Order` is `allow,deny`.
    pub(super) denies_last: bool,
    /// Control of the access to all paths.
    pub(super) control: Option<Origin>,
    /// Denial of all paths.
    pub(super) denial: Option<Origin>,
}

impl Reader<'_> {
    /// Patterns of the innermost `<Files>`.
    pub(super) fn paths(&self) -> Vec<String> {
        self.sections.iter().rev().find_map(|section| section.paths.clone()).unwrap_or_default()
    }

    /// A table for the section, or the last one if it is for the same paths.
    pub(super) fn block(&mut self, origin: &Origin, edit: impl FnOnce(&mut Draft, &mut Block)) {
        let mut block = Block::location(&[], &self.paths(), origin);
        let same = |known: &Block| {
            let path =
                |block: &Block| block.entries.get("", "path").map(|entry| entry.value.clone());
            path(known) == path(&block)
        };
        let ends = |known: &Block| {
            ["deny", "redirect", "status"].iter().any(|key| known.entries.get("", key).is_some())
        };
        if self.blocks.last().is_some_and(|known| same(known) && !ends(known))
            && let Some(known) = self.blocks.last_mut()
        {
            return edit(self.draft, known);
        }
        edit(self.draft, &mut block);
        if block.has_effect() {
            self.blocks.push(block);
        }
    }

    /// Access by passwords, addresses or variables: the paths are denied.
    pub(super) fn control(&mut self, origin: &Origin) {
        let paths = self.paths();
        if paths.is_empty() {
            self.control.get_or_insert(origin.clone());
            return;
        }
        if paths.iter().any(|path| glob::is_match(path, "/index.php")) {
            // It runs for all paths without a file.
            self.control.get_or_insert(origin.clone());
        }
        let mut block = Block::location(&[], &paths, origin);
        self.draft.guard(&mut block, origin);
        self.rules.push(block);
    }

    pub(super) fn front(&mut self, target: &str, origin: &Origin) {
        let (script, query) = script_and_query(target);
        let script = format!("/{}", script.trim_start_matches('/'));
        if !query.is_empty() && !query.starts_with('&') {
            self.draft.differs(origin, "the script gets the client's query only");
        }
        if script == "/index.php" {
            self.draft.built_in(origin, "index.php handles all paths without a file");
        } else {
            let mut block = Block::location(&[], &[], origin);
            block.set("fallback", Value::Text(script), origin);
            self.blocks.push(block);
        }
        self.has_front = Some(origin.clone());
    }

    pub(super) fn ended(
        &mut self,
        paths: Option<Vec<String>>,
        key: &str,
        value: Value,
        origin: &Origin,
    ) {
        let Some(paths) = paths else {
            return self.draft.missing(origin, "the expression is no list of patterns");
        };
        let mut block = Block::location(&[], &paths, origin);
        block.set(key, value, origin);
        self.blocks.push(block);
    }

    pub(super) fn moved(
        &mut self,
        paths: Option<&[String]>,
        to: &str,
        status: u16,
        origin: &Origin,
    ) {
        let Some([path]) = paths else {
            return self.draft.missing(origin, "the expression is no single pattern with one `*`");
        };
        if to.contains(['$', '%']) {
            return self
                .draft
                .missing(origin, "a target has no variables but the rest of the path");
        }
        let mut block = Block::location(&[], std::slice::from_ref(path), origin);
        block.set("redirect", Value::text(to), origin);
        if status != 301 {
            block.set("status", Value::plain(status), origin);
        }
        self.blocks.push(block);
    }
}
