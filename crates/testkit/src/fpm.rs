//! A private php-fpm without a web server: what a location passes its scripts to.

use crate::oracle::start_fpm_by;
use crate::process::Process;
use std::path::Path;
use tempfile::TempDir;

/// A php-fpm that listens at a socket of its own; stopped when dropped.
#[derive(Debug)]
pub struct Fpm {
    process: Process,
    folder: TempDir,
}

impl Fpm {
    /// Starts one of `children` processes. `pool`: further lines of the pool's settings.
    pub fn start(children: usize, pool: &str) -> Fpm {
        let folder = TempDir::with_prefix("samovar-fpm-").expect("a temporary folder");
        let process = start_fpm_by(folder.path(), &[], children, pool);
        Fpm { process, folder }
    }

    /// Where it listens, as `fastcgi_pass` has it.
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
