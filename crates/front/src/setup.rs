//! Everything that determines how a request is served: the settings, and the site and routes
//! derived from them.
//!
//! A reload replaces all of it at once. Imports `route`.

use crate::route::cache::RouteCache;
use crate::route::explain::Explained;
use crate::route::files::DiskFiles;
use crate::route::intakes::Intakes;
use crate::route::locations::Locations;
use crate::route::path_settings::TermsOfPaths;
use crate::route::pools::Pools;
use crate::route::private::Private;
use crate::route::site::{Elsewhere, Site};
use samovar_config::{LogTarget, Pool, Settings};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default front controller, below the root. Runs requests that no file matches.
const INDEX: &str = "index.php";

/// Reason why a front cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The document root is not usable.
    #[error("cannot use `{path}` as document root: {cause}\nhint: give an existing directory")]
    Root {
        /// The configured path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The front controller is not below the root.
    #[error("the front controller `{0}` is not below the document root")]
    Controller(PathBuf),
    /// A location's error page cannot be read.
    #[error(
        "cannot read the error page `{path}`: {cause}\n\
         hint: make it readable for the server's user"
    )]
    ErrorPage {
        /// The configured file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The access log cannot be opened.
    #[error(
        "cannot open the access log `{path}`: {cause}\n\
         hint: make sure that its directory exists and is writable"
    )]
    Log {
        /// The configured path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A thread, a file descriptor or another resource was not available.
    #[error("cannot start the front: {0}")]
    Io(#[from] io::Error),
}

/// Settings that have been validated, with the site that they describe.
#[derive(Clone, Debug)]
pub struct ValidSettings {
    pub(crate) settings: Settings,
    site: Arc<Site>,
    files: Arc<DiskFiles>,
    pools: Pools,
    intakes: Intakes,
}

impl ValidSettings {
    /// Checks whether a front can run with these settings.
    pub fn new(settings: Settings) -> Result<ValidSettings, StartError> {
        let site = Arc::new(site_of(&settings)?);
        let files = Arc::new(files_of(&site, &settings));
        let pools = Pools::new(&settings, &site.controller);
        let intakes = Intakes::new(&settings);
        Ok(ValidSettings { settings, site, files, pools, intakes })
    }

    pub(crate) fn into_setup(self) -> Setup {
        let ValidSettings { settings, site, files, pools, intakes } = self;
        let routes = RouteCache::new(Arc::clone(&site), files);
        let body_bytes_max = body_bytes_max(&settings);
        Setup { settings, site, routes, pools, intakes, body_bytes_max }
    }

    /// Returns the pool of a request, for display: the pool's index in the settings, its name and
    /// its line. `None`: the default pool.
    pub fn pool_of(&self, host: &str, path: &str) -> Option<(usize, &str, usize)> {
        self.pools.explain(host.as_bytes(), path.as_bytes())
    }

    /// Returns the response to a request and the rules that lead to it, for display.
    pub fn explain(&self, host: &str, path: &str) -> Explained {
        Explained::new(&self.site, &*self.files, host, path)
    }
}

/// State that a reload replaces as a whole. A request uses the setup that was current when it
/// arrived.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) site: Arc<Site>,
    pub(crate) routes: RouteCache,
    /// Selects requests that belong to other pools; empty except in the default pool.
    pub(crate) pools: Pools,
    /// Requests that are stored as jobs.
    pub(crate) intakes: Intakes,
    /// Maximum body length of any request, used until the request is routed.
    pub(crate) body_bytes_max: u64,
}

fn body_bytes_max(settings: &Settings) -> u64 {
    let of_locations = settings.locations.iter().filter_map(|location| location.body_bytes_max);
    of_locations.fold(settings.limits.body_bytes_max, u64::max)
}

impl Setup {
    /// Returns the same setup with other pools.
    pub(crate) fn with_pools(&self, pools: Vec<Pool>) -> Setup {
        let (settings, site) =
            (Settings { pools, ..self.settings.clone() }, Arc::clone(&self.site));
        let pools = Pools::new(&settings, &site.controller);
        let routes = RouteCache::new(Arc::clone(&site), Arc::clone(self.routes.files()));
        let intakes = self.intakes.clone();
        Setup { routes, settings, site, pools, intakes, body_bytes_max: self.body_bytes_max }
    }
}

fn files_of(site: &Site, settings: &Settings) -> DiskFiles {
    let elsewhere = site.folders.iter().map(|folder| folder.path.clone());
    let folders = std::iter::once(site.root.clone()).chain(elsewhere);
    DiskFiles::new(folders, &settings.link_targets)
}

fn site_of(settings: &Settings) -> Result<Site, StartError> {
    let root = &settings.root;
    let failed = |cause| StartError::Root { path: root.clone(), cause };
    if !root.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::NotADirectory.into()));
    }
    let named = named_controller(settings);
    let below = match named {
        None => Path::new(INDEX),
        Some(file) => file.strip_prefix(root).map_err(|_| StartError::Controller(file.into()))?,
    };
    let own = own_files(settings);
    let private =
        |folder: &Path| Private::new(folder, &settings.deny_files, &settings.allow_files, &own);
    let (locations, folders) =
        Locations::new(settings).map_err(|(path, cause)| StartError::ErrorPage { path, cause })?;
    let folders = folders.into_iter().map(|path| Elsewhere { private: private(&path), path });
    Ok(Site {
        root: root.clone(),
        controller: [b"/", below.as_os_str().as_bytes()].concat(),
        is_explicit: named.is_some(),
        static_files: settings.static_files,
        private: private(root),
        terms: TermsOfPaths::new(settings),
        locations,
        folders: folders.collect(),
    })
}

/// A front controller that is not the folder's index also handles folders. For one that is the
/// index, nginx's `try_files $uri $uri/ /index.php` describes the behavior completely.
fn named_controller(settings: &Settings) -> Option<&Path> {
    let controller = settings.front_controller.as_deref();
    controller.filter(|controller| *controller != settings.root.join(INDEX))
}

/// Path of a file in the same folder whose name is extended by `end`.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Files that the server itself reads and writes, and never serves.
fn own_files(settings: &Settings) -> Vec<PathBuf> {
    let logs =
        [&settings.log, &settings.access_log, &settings.insight.slow_log].map(LogTarget::file);
    let files = [&settings.config_file, &settings.php_ini].map(Option::as_deref);
    // Profiles and call graphs are stored next to the history. SQLite stores a change log and its
    // index next to its file. A file that cannot be read is renamed and kept.
    let history = settings.insight.store.iter().flat_map(|store| {
        let beside = ["", ".profiles", ".calls"].into_iter().flat_map(|kind| {
            ["", "-wal", "-shm", "-journal"].map(|end| with(&with(store, kind), end))
        });
        let aside = [
            store.with_extension("unreadable"),
            with(store, ".unreadable"),
            with(store, ".calls-unreadable"),
        ];
        beside.chain(aside).collect::<Vec<_>>()
    });
    files.into_iter().chain(logs).flatten().map(Path::to_path_buf).chain(history).collect()
}
