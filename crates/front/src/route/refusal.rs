//! Decides whether the file or script that a path resolves to is refused: private files and
//! scripts, and those that the settings deny. Symlinks give a file several names; each name is
//! checked.

use super::files::Files;
use super::locations::{Alias, Refused, Said};
use super::path::script_ends;
use super::site::{ROOT, Way, Why};
use std::path::Path;

impl<F: Files> Way<'_, F> {
    pub(super) fn hides_script(&self, name: &[u8]) -> bool {
        let site = &self.site.private;
        match self.elsewhere() {
            None => site.hides_script(name),
            Some(folder) => site.denies(name) || folder.private.hides_script(self.below(name)),
        }
    }

    pub(super) fn hides_file(&self, name: &[u8], file: &Path) -> bool {
        let site = &self.site.private;
        match self.elsewhere() {
            None => site.hides_file(name, file),
            Some(folder) => site.denies(name) || folder.private.hides_file(self.below(name), file),
        }
    }

    /// Whether the settings deny the target of a symlink on the path `name`, by one of the target's
    /// names.
    pub(super) fn hides_place(&self, name: &[u8], file: &Path) -> bool {
        let private = &self.site.private;
        private.denies_any() && {
            let is_allowed = private.allows(name);
            !is_allowed && self.places(name, file).iter().any(|place| private.denies(place))
        }
    }

    /// Names of the target of a symlink on the path `name`.
    fn places(&self, name: &[u8], file: &Path) -> Vec<Vec<u8>> {
        let Alias { folder: own, prefix_bytes } = self.alias.unwrap_or(ROOT);
        let mut names = Vec::new();
        for (folder, below) in self.files.places(own, self.below(name), file) {
            if folder == own {
                names.push([&name[..prefix_bytes.min(name.len())], &below].concat());
            }
            let prefixes = self.site.locations.prefixes(folder);
            names.extend(prefixes.map(|prefix| [prefix, &below].concat()));
            if folder == ROOT.folder {
                names.push(below);
            }
        }
        if !names.is_empty() {
            // A name that exists only through another link may be denied, too.
            let folders = self.site.locations.refused_folders();
            let folders = folders.chain(self.site.private.denied_folders());
            names.extend(folders.filter_map(|folder| {
                let held = self.site.locations.held(self.host, folder);
                let Alias { folder: at, prefix_bytes } = held.alias.map_or(ROOT, |said| said.what);
                let rest = self.files.part_below(at, folder.get(prefix_bytes..)?, file)?;
                Some([folder, &rest].concat())
            }));
        }
        names
    }

    /// Returns why the target of a path is refused: by its own name, or by another name if a
    /// symlink leads to it.
    pub(super) fn refusal(&self, name: &[u8], file: &Path, is_script: bool) -> Option<Why> {
        let locations = &self.site.locations;
        if !locations.has_refusals() {
            return None;
        }
        let places = self.files.name_of(file).into_iter().chain(self.places(name, file));
        let mut refused = std::iter::once(name.to_vec())
            .chain(places)
            .filter_map(|name| locations.refusal(self.host, &name));
        refused.find_map(|Said { line, what }| match what {
            Refused::Denied => Some(Why::Denied(line)),
            Refused::Script => is_script.then_some(Why::NoScripts(line)),
        })
    }

    /// Returns why a script must not run with this `PATH_INFO`. Applications route it as a path
    /// below their folder, or below the root.
    pub(super) fn refusal_behind(&self, script: &[u8], path_info: &[u8]) -> Option<Why> {
        let locations = &self.site.locations;
        if path_info.is_empty() || !locations.has_refusals() {
            return None;
        }
        let folder = memchr::memrchr(b'/', script).map_or(script, |slash| &script[..slash]);
        let below_folder = [folder, path_info].concat();
        let names_script = || script_ends(path_info).next().is_some();
        let mut refused = [path_info, &below_folder]
            .into_iter()
            .filter_map(|path| locations.refusal(self.host, path));
        refused.find_map(|Said { line, what }| match what {
            Refused::Denied => Some(Why::Denied(line)),
            Refused::Script => names_script().then_some(Why::NoScripts(line)),
        })
    }
}
