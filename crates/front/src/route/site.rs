//! Decides how a request path is served. A pure function over a small view of the file system.
//!
//! The rules are those of this nginx configuration, which PHP applications are written for:
//!
//! ```text
//! index index.php index.html;
//! location / { try_files $uri $uri/ /index.php$is_args$args; }
//! location ~ [^/]\.php(/|$) { fastcgi_split_path_info ^(.+?\.php)(/.*)$; … }
//! ```
//!
//! They differ in cases where nginx would disclose files or fail:
//!
//! - Private files are treated as absent, so the front controller handles the request. These are
//!   paths with a hidden component (`.env`, `.git`; not `/.well-known/`), PHP source that would not
//!   run, and other private files (`private.rs`). A hidden component counts in the requested path
//!   and in the target of a symlink.
//! - A `.php` path that is no file is also handled by the front controller, where nginx responds
//!   with 404.
//! - The target of a symlink outside the root is forbidden, unless it is below a listed target.
//! - If a front controller is configured explicitly, directories are treated as absent: the front
//!   controller handles everything that is no file.
//!
//! The [`Locations`] take precedence over these rules: first their refusals, then their redirects.
//! After that they specify where files are, the index of a folder, and the fallback for missing
//! files.

use super::files::{Files, Found};
use super::locations::{Alias, Effects, Held, Locations, Pass, Refused, Said, Variables};
use super::path::{is_hidden, normalise, script_ends, with_slash};
use super::path_settings::{Terms, TermsOfPaths};
use super::private::Private;
use samovar_config::Fallback;
use samovar_ring::Lane;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of `.php/` positions in a path that are tried as the script's end.
const SPLITS_MAX: usize = 8;

/// Index files of a folder, unless a location specifies others.
const INDEX: [&str; 2] = ["index.php", "index.html"];

/// The route of a path, and the effects of locations on the response.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    pub(crate) route: Route,
    pub(crate) effects: Option<Arc<Effects>>,
    /// The file is on a file system that may hang.
    pub(crate) is_far: bool,
}

impl Routed {
    /// Creates a route that does not need a disk thread.
    pub(crate) fn near(route: Route, effects: Option<Arc<Effects>>) -> Routed {
        Routed { route, effects, is_far: false }
    }
}

/// The way in which a path is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// This file, by its canonical path.
    Static(PathBuf),
    /// This PHP script, run by a worker.
    Script(Script),
    /// Redirect to the same path with a slash appended, percent-encoded, without query.
    Redirect(String),
    /// Redirect by a location: a path or URL, possibly with a query, and the status.
    Moved(String, u16),
    /// A status set by the location that begins in this line, independent of existing files.
    Status(u16, usize),
    /// It exists, but is not served.
    Forbidden(Why),
    /// Neither a file nor a front controller exists.
    NotFound,
    /// No file exists, and a location excludes the front controller.
    Absent,
    /// The path is invalid; the reason is for the log.
    BadRequest(&'static str),
}

/// Reason why an existing file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A symlink leads out of the root.
    Outside,
    /// A directory without an index script or page.
    NoIndex,
    /// Denied by the location that begins in this line.
    Denied(usize),
    /// The location that begins in this line does not allow scripts to run.
    NoScripts(usize),
}

/// A script and the parameters of its call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// `SCRIPT_FILENAME`, absolute.
    pub(crate) filename: Vec<u8>,
    /// `SCRIPT_NAME`: below the root, with leading slash.
    pub(crate) name: Vec<u8>,
    /// `PATH_INFO`; empty if there is none.
    pub(crate) path_info: Vec<u8>,
    /// Lane of the workers that run it.
    pub(crate) lane: Lane,
    /// Settings of the requested path.
    pub(crate) terms: Terms,
    /// External php-fpm that runs it instead of a worker.
    pub(crate) pass: Option<Arc<Pass>>,
    /// Additional variables.
    pub(crate) variables: Option<Arc<Variables>>,
    /// Maximum length of a request body; `None`: the general limit.
    pub(crate) body_bytes_max: Option<u64>,
}

impl Script {
    /// Names and values of the additional variables.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let all = self.variables.as_deref().into_iter().flatten();
        all.map(|(name, value)| (&name[..], &value[..]))
    }
}

/// The site: its folders, its front controller and its rules.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// `DOCUMENT_ROOT`: absolute, as configured.
    pub(crate) root: PathBuf,
    /// The front controller's `SCRIPT_NAME`.
    pub(crate) controller: Vec<u8>,
    /// The front controller was configured explicitly, so directories are ignored.
    pub(crate) is_explicit: bool,
    /// Whether files other than scripts are served.
    pub(crate) static_files: bool,
    /// Files that are not served.
    pub(crate) private: Private,
    /// Settings for the requests of some paths.
    pub(crate) terms: TermsOfPaths,
    /// More settings for some paths, and for some hosts.
    pub(crate) locations: Locations,
    /// The folders of aliases: the first has number 1.
    pub(crate) folders: Vec<Elsewhere>,
}

/// A folder outside the root that a location maps into the site.
#[derive(Clone, Debug)]
pub(crate) struct Elsewhere {
    pub(crate) path: PathBuf,
    pub(crate) private: Private,
}

/// State of the decision for one path.
pub(super) struct Way<'a, F> {
    pub(super) site: &'a Site,
    pub(super) files: &'a F,
    pub(super) host: &'a [u8],
    pub(super) alias: Option<Alias>,
    index: Option<&'a [String]>,
}

impl Site {
    /// Likely location of `path`, as received, on the disk. For display.
    pub(super) fn place_of(&self, path: &[u8]) -> PathBuf {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        self.root.join(OsStr::from_bytes(path))
    }

    /// Returns the route of `path`, the path of the target as received, percent-encoded. `host` is
    /// empty if no location depends on it.
    pub(crate) fn route(&self, files: &impl Files, host: &[u8], path: &[u8]) -> Routed {
        let path = match normalise(path) {
            Ok(path) => path,
            Err(reason) => return Routed::near(Route::BadRequest(reason), None),
        };
        let (mut route, name) = self.decide(files, host, &path);
        if let Route::Script(script) = &mut route {
            script.terms = self.terms.of(&path);
            let names = [&path[..], &script.name];
            script.pass = self.locations.pass(host, &names);
            script.body_bytes_max = self.locations.body_bytes_max(host, &names).map(|s| s.what);
            let variables = self.locations.variables(host, &names);
            let variables: Variables = variables.into_iter().map(|s| s.what.clone()).collect();
            script.variables = (!variables.is_empty()).then(|| Arc::new(variables));
        }
        let effects = self.locations.effects(host, name.as_deref().unwrap_or(&path));
        Routed::near(route, effects)
    }

    /// Returns the route. If the file has another name than `path`, also returns that name.
    fn decide(&self, files: &impl Files, host: &[u8], path: &[u8]) -> (Route, Option<Vec<u8>>) {
        let refused = self.locations.refusal(host, path);
        match refused {
            Some(Said { line, what: Refused::Denied }) => {
                return (Route::Forbidden(Why::Denied(line)), None);
            }
            Some(Said { line, what: Refused::Script }) if script_ends(path).next().is_some() => {
                return (Route::Forbidden(Why::NoScripts(line)), None);
            }
            _ => {}
        }
        let Held { redirect, status, alias, fallback, index } = self.locations.held(host, path);
        if let Some(Said { what: (to, status), .. }) = redirect {
            return (Route::Moved(to, status), None);
        }
        if let Some(Said { what, line }) = status {
            return (Route::Status(what, line), None);
        }
        let (alias, index) = (alias.map(|said| said.what), index.map(|said| said.what));
        let way = Way { site: self, files, host, alias, index };
        if let Some(route) = way.script_in(path) {
            return (route, None);
        }
        if let Some(decided) = way.try_files(path) {
            return decided;
        }
        match fallback.map(|said| said.what) {
            Some(Fallback::Path(path)) => self.fall_back_to(files, host, path.as_bytes()),
            Some(Fallback::Nothing) => (Route::Absent, None),
            None if alias.is_some() => (Route::Absent, None),
            None => (way.fall_back(), None),
        }
    }

    /// Returns the route of the file or script that a location names as fallback. It may be refused
    /// by its own name.
    fn fall_back_to(
        &self,
        files: &impl Files,
        host: &[u8],
        name: &[u8],
    ) -> (Route, Option<Vec<u8>>) {
        let alias = self.locations.held(host, name).alias.map(|said| said.what);
        let way = Way { site: self, files, host, alias, index: None };
        let found = way.look(name);
        let is_script = script_ends(name).last() == Some(name.len());
        let route = match found {
            Found::File(_) if is_script => way.script(name, b""),
            Found::File(file) => way.static_file(name, file).unwrap_or(Route::Absent),
            Found::Outside => Route::Forbidden(Why::Outside),
            Found::Absent | Found::Directory => Route::Absent,
        };
        (route, Some(name.to_vec()))
    }
}

impl<F: Files> Way<'_, F> {
    /// Looks up `name`, a path of the site, in its folder.
    fn look(&self, name: &[u8]) -> Found {
        let Alias { folder, .. } = self.alias.unwrap_or(ROOT);
        self.files.look(folder, self.below(name))
    }

    /// Returns the part of `name` below its folder.
    pub(super) fn below<'n>(&self, name: &'n [u8]) -> &'n [u8] {
        name.get(self.alias.map_or(0, |alias| alias.prefix_bytes)..).unwrap_or_default()
    }

    pub(super) fn elsewhere(&self) -> Option<&Elsewhere> {
        self.site.folders.get(self.alias?.folder.checked_sub(1)?)
    }

    /// Returns the route of the first prefix of `path` that is an existing script.
    fn script_in(&self, path: &[u8]) -> Option<Route> {
        script_ends(path).take(SPLITS_MAX).find_map(|end| {
            let (name, path_info) = path.split_at(end);
            if is_hidden(name) || self.hides_script(name) {
                return None;
            }
            match self.look(name) {
                Found::File(file) if self.hides_place(name, &file) => None,
                Found::File(file) => {
                    let refusal = self.refusal(name, &file, true);
                    let refusal = refusal.or_else(|| self.refusal_behind(name, path_info));
                    Some(refusal.map_or_else(|| self.script(name, path_info), Route::Forbidden))
                }
                Found::Outside => Some(Route::Forbidden(Why::Outside)),
                Found::Absent | Found::Directory => None,
            }
        })
    }

    fn try_files(&self, path: &[u8]) -> Option<(Route, Option<Vec<u8>>)> {
        if is_hidden(path) {
            return None;
        }
        let directory = path.strip_suffix(b"/");
        let has_folders = !self.site.is_explicit || self.alias.is_some() || self.index.is_some();
        let route = match self.look(directory.filter(|d| !d.is_empty()).unwrap_or(path)) {
            Found::Outside => Route::Forbidden(Why::Outside),
            Found::File(file) if directory.is_none() => self.static_file(path, file)?,
            Found::Absent | Found::File(_) => return None,
            Found::Directory if !has_folders => return None,
            Found::Directory if directory.is_none() => Route::Redirect(with_slash(path)),
            Found::Directory => return Some(self.index_of(path)),
        };
        Some((route, None))
    }

    fn static_file(&self, path: &[u8], file: PathBuf) -> Option<Route> {
        let is_hidden = || self.hides_file(path, &file) || self.hides_place(path, &file);
        if !self.site.static_files || is_hidden() {
            return None;
        }
        let refusal = self.refusal(path, &file, false);
        Some(refusal.map_or_else(|| Route::Static(file), Route::Forbidden))
    }

    /// Returns the route of a folder's index. `directory` ends with a slash.
    fn index_of(&self, directory: &[u8]) -> (Route, Option<Vec<u8>>) {
        let mut why = Why::NoIndex;
        let mut is_app_refused = false;
        let presets = INDEX.into_iter().filter(|_| self.index.is_none());
        let names = presets.chain(self.index.into_iter().flatten().map(String::as_str));
        for name in names {
            let name = [directory, name.as_bytes()].concat();
            let is_script = script_ends(&name).last() == Some(name.len());
            if is_script && self.hides_script(&name) {
                continue;
            }
            match self.look(&name) {
                Found::File(file) if is_script && self.hides_place(&name, &file) => {}
                Found::File(file) if is_script => match self.refusal(&name, &file, true) {
                    Some(refusal) => {
                        why = refusal;
                        is_app_refused |= self.is_app(&name);
                    }
                    None => return (self.script(&name, b""), None),
                },
                Found::File(file) => match self.static_file(&name, file) {
                    Some(Route::Forbidden(refusal)) => why = refusal,
                    Some(route) => return (route, Some(name)),
                    None => {}
                },
                Found::Outside if !is_script => why = Why::Outside,
                Found::Outside | Found::Absent | Found::Directory => {}
            }
        }
        // The front controller handles all missing paths, even if clients may not request it by its
        // own name.
        let response = if is_app_refused { self.fall_back() } else { Route::Forbidden(why) };
        (response, None)
    }

    fn is_app(&self, name: &[u8]) -> bool {
        self.alias.is_none() && name == self.site.controller
    }

    fn fall_back(&self) -> Route {
        let controller = &self.site.controller;
        match self.files.look(ROOT.folder, controller) {
            Found::File(_) => self.script(controller, b""),
            Found::Outside => Route::Forbidden(Why::Outside),
            Found::Absent | Found::Directory => Route::NotFound,
        }
    }

    fn script(&self, name: &[u8], path_info: &[u8]) -> Route {
        let folder = self.elsewhere().map_or(&self.site.root, |folder| &folder.path);
        let folder = folder.as_os_str().as_bytes();
        let is_app = self.is_app(name);
        Route::Script(Script {
            filename: [folder.strip_suffix(b"/").unwrap_or(folder), self.below(name)].concat(),
            name: name.to_vec(),
            path_info: path_info.to_vec(),
            lane: if is_app { Lane::App } else { Lane::Script },
            terms: Terms::default(),
            pass: None,
            variables: None,
            body_bytes_max: None,
        })
    }
}

/// The document root: the folder of paths without an alias.
pub(super) const ROOT: Alias = Alias { folder: 0, prefix_bytes: 0 };

#[cfg(test)]
impl Site {
    /// A site for tests.
    pub(super) fn sample() -> Site {
        Site {
            root: "/site".into(),
            controller: b"/index.php".to_vec(),
            is_explicit: false,
            static_files: true,
            private: Private::default(),
            terms: TermsOfPaths::default(),
            locations: Locations::default(),
            folders: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
