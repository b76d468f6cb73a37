//! A private php-fpm without a web server, for locations that pass their scripts to it.

use crate::oracle::start_fpm_by;
use crate::process::Process;
use std::path::Path;
use tempfile::TempDir;

/// A php-fpm that listens at its own socket; stopped when dropped.
#[derive(Debug)]
pub struct Fpm {
    process: Process,
    folder: TempDir,
}

impl Fpm {
    /// Starts php-fpm with `children` processes. `pool` holds further lines of the pool's settings.
    pub fn start(children: usize, pool: &str) -> Fpm {
        let folder = TempDir::with_prefix("samovar-fpm-").expect("a temporary folder");
        let process = start_fpm_by(folder.path(), &[], children, pool);
        Fpm { process, folder }
    }

    /// Its address, in the format of `fastcgi_pass`.
    pub fn address(&self) -> String {
        format!("unix:{}/fpm.sock", self.folder.path().display())
    }

    /// Its folder; scripts may write into it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}
