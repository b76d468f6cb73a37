//! `[[location]]`: settings that apply only to some paths and hosts. Pure.
//!
//! For each key, the first matching table that sets it takes effect. Paths are compared decoded,
//! normalized and case-sensitive.
//!
//! A refusal (`deny = true`, `scripts = false`) matches more. It ignores letter case, and dots and
//! spaces at the end of a name, because some file systems ignore them. It is also matched against
//! the names of the script or file that a path resolves to. An exception from a refusal (`deny =
//! false`) is compared like all other keys.

mod effects;
pub(super) mod pattern;
mod positioned;
#[cfg(test)]
mod tests;

use super::path::{encoded, encoded_in_query};
use effects::{Page, Switches};
use http::{HeaderName, HeaderValue};
use pattern::{Pattern, fold, hosts_fit};
use samovar_config::{Fallback, Location, Redirect, Settings, Upstream};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) use effects::Effects;
pub(crate) use positioned::Said;

/// One `[[location]]` table.
#[derive(Clone, Debug)]
struct Table {
    line: usize,
    paths: Vec<Pattern>,
    hosts: Vec<Vec<u8>>,
    deny: Option<bool>,
    scripts: Option<bool>,
    redirect: Option<Redirect>,
    /// An index into the folders of a [`Site`](super::site::Site).
    folder: Option<usize>,
    fallback: Option<Fallback>,
    index: Option<Vec<String>>,
    pass: Option<Arc<Pass>>,
    status: Option<u16>,
    variables: Variables,
    body_bytes_max: Option<u64>,
    switches: Switches,
    /// A header without value is removed from the response.
    headers: Vec<(HeaderName, Option<HeaderValue>)>,
    pages: Vec<Page>,
}

/// Names and values of `$_SERVER`.
pub(crate) type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// External php-fpm servers that run scripts instead of the workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) line: usize,
    /// One or more servers, without duplicates.
    pub(crate) upstreams: Vec<Upstream>,
    /// Path of the scripts' folder on these servers.
    pub(crate) root: Option<PathBuf>,
}

impl Pass {
    /// Their addresses, for display.
    pub(crate) fn addresses(&self) -> String {
        let all: Vec<String> = self.upstreams.iter().map(Upstream::to_string).collect();
        all.join(" or ")
    }
}

/// All tables, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locations {
    tables: Vec<Table>,
    has_hosts: bool,
    has_refusals: bool,
}

/// Kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Every access is refused.
    Denied,
    /// Only running it as a script is refused.
    Script,
}

/// Settings that apply to one path at one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held<'a> {
    pub(crate) redirect: Option<Said<(String, u16)>>,
    pub(crate) status: Option<Said<u16>>,
    pub(crate) alias: Option<Said<Alias>>,
    pub(crate) fallback: Option<Said<&'a Fallback>>,
    pub(crate) index: Option<Said<&'a [String]>>,
}

/// Folder of the files of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alias {
    /// An index into the folders of a [`Site`](super::site::Site).
    pub(crate) folder: usize,
    /// Length of the part of the path that is mapped to the folder.
    pub(crate) prefix_bytes: usize,
}

impl Locations {
    /// Returns the tables of the settings, and the folders of their aliases, which are numbered
    /// from 1. Reads the error pages.
    pub(crate) fn new(
        settings: &Settings,
    ) -> Result<(Locations, Vec<PathBuf>), (PathBuf, io::Error)> {
        let mut tables = Vec::with_capacity(settings.locations.len());
        let mut folders: Vec<PathBuf> = Vec::new();
        for location in &settings.locations {
            let folder = location.alias.as_ref().map(|alias| {
                folders.iter().position(|known| known == alias).unwrap_or_else(|| {
                    folders.push(alias.clone());
                    folders.len() - 1
                }) + 1
            });
            tables.push(Table {
                line: location.line,
                paths: location.paths.iter().map(|path| Pattern::new(path)).collect(),
                hosts: location.hosts.iter().map(|host| host.clone().into_bytes()).collect(),
                deny: location.deny,
                scripts: location.scripts,
                redirect: location.redirect.clone(),
                folder,
                fallback: location.fallback.clone(),
                index: location.index.clone(),
                pass: pass_of(location).map(Arc::new),
                headers: location.headers.iter().filter_map(effects::header).collect(),
                status: location.status,
                variables: pairs(&location.variables),
                body_bytes_max: location.body_bytes_max,
                switches: Switches {
                    compression: location.compression,
                    access_log: location.access_log,
                    intercept: location.intercept,
                },
                pages: location.error_pages.iter().map(Page::read).collect::<Result<_, _>>()?,
            });
        }
        let has_hosts = tables.iter().any(|table| !table.hosts.is_empty());
        let refuses = |table: &Table| table.deny == Some(true) || table.scripts == Some(false);
        let has_refusals = tables.iter().any(refuses);
        Ok((Locations { tables, has_hosts, has_refusals }, folders))
    }

    /// Whether any setting depends on the host.
    pub(crate) fn has_hosts(&self) -> bool {
        self.has_hosts
    }

    /// Whether any table refuses something.
    pub(crate) fn has_refusals(&self) -> bool {
        self.has_refusals
    }

    /// Returns the refusal for `name`, which is a requested path or another name of its target.
    pub(crate) fn refusal(&self, host: &[u8], name: &[u8]) -> Option<Said<Refused>> {
        if !self.has_refusals {
            return None;
        }
        let folded = fold(name);
        let first = |is_refusal: fn(&Table) -> Option<bool>, what| {
            let mut tables = self.tables.iter();
            let table = tables.find(|table| match is_refusal(table) {
                None => false,
                Some(true) => table.fits_loosely(host, name, &folded),
                Some(false) => table.fits(host, name),
            })?;
            (is_refusal(table) == Some(true)).then_some(Said { line: table.line, what })
        };
        first(|table| table.deny, Refused::Denied)
            .or_else(|| first(|table| table.scripts.map(|runs| !runs), Refused::Script))
    }

    /// Path prefixes that are mapped to the folder with this number.
    pub(crate) fn prefixes(&self, folder: usize) -> impl Iterator<Item = &[u8]> {
        let tables = self.tables.iter().filter(move |table| table.folder == Some(folder));
        tables.flat_map(|table| table.paths.iter().map(Pattern::folder))
    }

    /// Literal folders at the beginning of the paths of refusals and of exceptions from them.
    pub(crate) fn refused_folders(&self) -> impl Iterator<Item = &[u8]> {
        let is_refusal = |table: &&Table| table.deny.is_some() || table.scripts.is_some();
        let paths = self.tables.iter().filter(is_refusal).flat_map(|table| &table.paths);
        paths.filter_map(Pattern::literal_folder)
    }

    /// Returns the other settings that apply to `path`.
    pub(crate) fn held(&self, host: &[u8], path: &[u8]) -> Held<'_> {
        let mut held = Held::default();
        for table in self.tables.iter().filter(|table| table.fits(host, path)) {
            fn first<T>(held: &mut Option<Said<T>>, line: usize, what: Option<T>) {
                if held.is_none() {
                    *held = what.map(|what| Said { line, what });
                }
            }
            let line = table.line;
            first(&mut held.redirect, line, table.redirect_of(path));
            first(&mut held.status, line, table.status);
            first(&mut held.alias, line, table.alias_of(path));
            first(&mut held.fallback, line, table.fallback.as_ref());
            first(&mut held.index, line, table.index.as_deref());
        }
        held
    }

    /// Returns the php-fpm servers that run the script; `None`: a worker runs it. `names` are the
    /// requested path and the script's name.
    pub(crate) fn pass(&self, host: &[u8], names: &[&[u8]]) -> Option<Arc<Pass>> {
        let mut passing = self.tables.iter().filter(|table| table.pass.is_some());
        let fits = |table: &&Table| names.iter().any(|name| table.fits(host, name));
        passing.find(fits).and_then(|table| table.pass.clone())
    }

    /// Returns additional `$_SERVER` variables of the script, each with the line of its table.
    /// `names` as for [`Self::pass`].
    pub(crate) fn variables(&self, host: &[u8], names: &[&[u8]]) -> Vec<Said<&(Vec<u8>, Vec<u8>)>> {
        let mut all: Vec<Said<&(Vec<u8>, Vec<u8>)>> = Vec::new();
        for table in self.tables.iter().filter(|table| !table.variables.is_empty()) {
            if !names.iter().any(|name| table.fits(host, name)) {
                continue;
            }
            for pair in &table.variables {
                if all.iter().all(|known| known.what.0 != pair.0) {
                    all.push(Said { line: table.line, what: pair });
                }
            }
        }
        all
    }

    /// Returns the maximum length of a request body for the script; `None`: the general limit.
    /// `names` as for [`Self::pass`].
    pub(crate) fn body_bytes_max(&self, host: &[u8], names: &[&[u8]]) -> Option<Said<u64>> {
        let fits = |table: &&Table| names.iter().any(|name| table.fits(host, name));
        let mut limiting = self.tables.iter().filter(|table| table.body_bytes_max.is_some());
        let table = limiting.find(fits)?;
        table.body_bytes_max.map(|what| Said { line: table.line, what })
    }

    /// Returns the effects on responses for `path`; `None` if there are none.
    pub(crate) fn effects(&self, host: &[u8], path: &[u8]) -> Option<Arc<Effects>> {
        let fitting = self.tables.iter().filter(|table| table.fits(host, path));
        let mut effects = Effects::default();
        for table in fitting {
            effects.add(table.line, &table.headers, &table.pages);
            effects.switch(table.line, table.switches);
        }
        (!effects.is_nothing()).then(|| Arc::new(effects))
    }

    /// Returns the lines of the matching tables, including refusals that match only by their
    /// stricter rules.
    pub(crate) fn lines(&self, host: &[u8], path: &[u8]) -> Vec<usize> {
        let folded = fold(path);
        let refuses = |table: &Table| table.deny == Some(true) || table.scripts == Some(false);
        let fits = |table: &&Table| {
            table.fits(host, path) || (refuses(table) && table.fits_loosely(host, path, &folded))
        };
        self.tables.iter().filter(fits).map(|table| table.line).collect()
    }
}

fn pairs(of: &[(String, String)]) -> Variables {
    of.iter().map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into())).collect()
}

fn pass_of(location: &Location) -> Option<Pass> {
    let upstreams = location.fastcgi_pass.clone();
    let root = location.fastcgi_root.clone();
    (!upstreams.is_empty()).then_some(Pass { line: location.line, upstreams, root })
}

impl Table {
    fn fits(&self, host: &[u8], path: &[u8]) -> bool {
        (self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.fits(path)))
            && hosts_fit(&self.hosts, host)
    }

    fn fits_loosely(&self, host: &[u8], path: &[u8], folded: &[u8]) -> bool {
        let fits = |pattern: &Pattern| pattern.fits(path) || pattern.fits_folded(folded);
        (self.paths.is_empty() || self.paths.iter().any(fits)) && hosts_fit(&self.hosts, host)
    }

    fn redirect_of(&self, path: &[u8]) -> Option<(String, u16)> {
        let Redirect { to, status } = self.redirect.as_ref()?;
        let Some((before, after)) = to.split_once('*') else { return Some((to.clone(), *status)) };
        let star = self.paths.iter().find_map(|pattern| pattern.star(path))?;
        let is_query = before.contains('?') && !before.contains('#');
        let star = if is_query { encoded_in_query(star) } else { encoded(star) };
        let mut target = format!("{before}{star}{after}");
        if target.starts_with('/') {
            // `//example.com` would refer to another host.
            let path = target.trim_start_matches('/').len();
            target.replace_range(..target.len() - path, "/");
        }
        Some((target, *status))
    }

    fn alias_of(&self, path: &[u8]) -> Option<Alias> {
        let folder = self.folder?;
        let pattern = self.paths.iter().find(|pattern| pattern.fits(path))?;
        Some(Alias { folder, prefix_bytes: pattern.folder_bytes() })
    }
}
