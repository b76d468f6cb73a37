//! Selects the pool of a request by host and path. Pure.
//!
//! The first pool that matches is selected, otherwise the default pool, which has number 0. Paths
//! are compared decoded and normalized, as the site looks up files, so no spelling of a path
//! bypasses a pool.
//!
//! If a pool has the same root as the default pool, it also owns other names that lead to the same
//! scripts:
//!
//! - the name of its front controller;
//! - the path after the default pool's front controller (`/index.php/api/x`), which applications
//!   route as the path;
//! - each of these in other letter cases, and with dots and spaces at the end of names, because
//!   some file systems ignore them.

use super::locations::pattern::{Pattern, fold, hosts_fit};
use super::path::normalise;
use samovar_config::Settings;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// All pools, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pools {
    rules: Vec<Rule>,
    /// The default pool's front controller, as a path of the site, processed by [`fold`].
    controller: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Rule {
    name: String,
    line: usize,
    paths: Vec<Pattern>,
    hosts: Vec<Vec<u8>>,
    shares_root: bool,
    /// It runs the jobs of a queue, so no request reaches it.
    is_queue: bool,
    /// A front controller other than the default pool's in the same root, processed by [`fold`].
    controller: Option<Vec<u8>>,
}

impl Pools {
    /// Creates the rules. `controller` is the default pool's front controller, as a path of the
    /// site.
    pub(crate) fn new(settings: &Settings, controller: &[u8]) -> Pools {
        let rule = |pool: &samovar_config::Pool| {
            let shares_root = pool.settings.root == settings.root;
            let own = pool.settings.front_controller.as_deref();
            let own = own.and_then(|file| below(file, &settings.root));
            Rule {
                name: pool.name.clone(),
                line: pool.line,
                paths: pool.paths.iter().map(|path| Pattern::new(path)).collect(),
                hosts: pool.hosts.iter().map(|host| host.clone().into_bytes()).collect(),
                shares_root,
                is_queue: pool.queue.is_some(),
                controller: own
                    .filter(|own| shares_root && own != controller)
                    .map(|own| fold(&own)),
            }
        };
        let rules = settings.pools.iter().map(rule).collect();
        Pools { rules, controller: fold(controller) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the number of the pool for `path` as received. `host` is without port. An invalid
    /// path belongs to the default pool.
    pub(crate) fn pick(&self, host: &[u8], path: &[u8]) -> usize {
        self.find(host, path).map_or(0, |at| at + 1)
    }

    /// Does the same for a request for which a web server has sent `path` and the script's name.
    /// The web server may have rewritten the path to another script, so that name counts, too.
    pub(crate) fn pick_told(&self, host: &[u8], path: &[u8], script: &[u8]) -> usize {
        match self.pick(host, path) {
            0 => self.find_normal(host, script).map_or(0, |at| at + 1),
            at => at,
        }
    }

    /// Returns the pool's index in the settings, its name and its line, for display.
    pub(crate) fn explain(&self, host: &[u8], path: &[u8]) -> Option<(usize, &str, usize)> {
        let at = self.find(host, path)?;
        self.rules.get(at).map(|rule| (at, &*rule.name, rule.line))
    }

    fn find(&self, host: &[u8], path: &[u8]) -> Option<usize> {
        self.find_normal(host, &normalise(path).ok()?)
    }

    /// Finds the rule for a path that is decoded and normalized.
    fn find_normal(&self, host: &[u8], path: &[u8]) -> Option<usize> {
        let is_needed = self.rules.iter().any(|rule| rule.shares_root);
        let folded = if is_needed { fold(path) } else { Vec::new() };
        let behind = folded.strip_prefix(&self.controller[..]);
        let behind = behind.filter(|rest| rest.starts_with(b"/"));
        self.rules.iter().position(|rule| rule.fits(host, path, &folded, behind))
    }
}

impl Rule {
    /// `folded` is the path, and `behind` its part after the default pool's front controller, both
    /// processed by [`fold`].
    fn fits(&self, host: &[u8], path: &[u8], folded: &[u8], behind: Option<&[u8]>) -> bool {
        if self.is_queue || !hosts_fit(&self.hosts, host) {
            return false;
        }
        if self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.fits(path)) {
            return true;
        }
        self.shares_root && [Some(folded), behind].into_iter().flatten().any(|path| self.has(path))
    }

    fn has(&self, folded: &[u8]) -> bool {
        let rest = self.controller.as_deref().and_then(|own| folded.strip_prefix(own));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            || self.paths.iter().any(|pattern| pattern.fits_folded(folded))
    }
}

/// Converts a file name to a path of the site.
fn below(file: &Path, root: &Path) -> Option<Vec<u8>> {
    let below = file.strip_prefix(root).ok()?;
    Some([b"/", below.as_os_str().as_bytes()].concat())
}

#[cfg(test)]
mod tests;
