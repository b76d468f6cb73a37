//! The facts that checks use. A missing fact is `None` or absent, never a default value.

use crate::directive;
use samovar_wire::{MachineFacts, OpcacheStatus, PhpFacts, RouteFacts, SettingsFacts, Status};
use std::collections::BTreeMap;

/// Reason why a check could not be made.
pub(crate) type Missing = &'static str;

pub(crate) const NO_SERVER: Missing = "no running server was queried";
pub(crate) const NO_ACCOUNTING: Missing = "request accounting is off (`insight.enabled`)";
pub(crate) const NO_REQUESTS: Missing = "too few requests since the server's start";
pub(crate) const NO_PHP: Missing = "PHP's settings are unknown";
pub(crate) const NO_FOLDER: Missing = "the application's folder is unknown or cannot be read";

/// Minimum number of requests for a judgment about requests.
pub(crate) const REQUESTS_MIN: u64 = 20;

/// All facts of an examination.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Time, in seconds since 1970.
    pub now: u64,
    /// State of the running server.
    pub status: Option<Status>,
    /// Routes of the running server, if it measures requests.
    pub routes: Option<Vec<RouteFacts>>,
    /// PHP of each pool.
    pub php: Vec<PhpFacts>,
    /// Settings of the server.
    pub settings: Option<SettingsFacts>,
    /// The machine of the server.
    pub machine: Option<MachineFacts>,
    /// Boots of the running server's pools that boot ahead of requests.
    pub boots: Vec<BootFacts>,
    /// Applications, as far as their folders can be read.
    pub applications: Vec<ApplicationFacts>,
}

/// Files that requests load after the boot.
#[derive(Clone, Debug, Default)]
pub struct BootFacts {
    /// Pool; empty if the server has one pool.
    pub pool: String,
    /// Requests that were looked at.
    pub requests: u64,
    /// Requests among them that loaded a file.
    pub loading: u64,
    /// CPU time of these loads, ns.
    pub cpu_ns: u64,
    /// The most expensive file; empty: unknown.
    pub file: String,
    /// Line for the settings that loads the files during the boot; empty: none.
    pub setting: String,
}

/// The folder of an application.
#[derive(Clone, Debug, Default)]
pub struct ApplicationFacts {
    /// Pool; empty if the server has one pool.
    pub pool: String,
    /// The project's folder.
    pub folder: String,
    /// The document root.
    pub root: String,
    /// Whether the document root exists; `None`: unknown.
    pub has_root: Option<bool>,
    /// Composer's autoloader; `None`: there is none.
    pub composer: Option<ComposerFacts>,
    /// Variables of the `.env` files, the last file that sets one decides.
    pub variables: BTreeMap<String, String>,
}

/// Composer's generated autoloader.
#[derive(Clone, Debug, Default)]
pub struct ComposerFacts {
    /// Path of the folder `vendor/composer`.
    pub folder: String,
    /// Whether the class map is authoritative, or lookups are cached in APCu.
    pub is_authoritative: bool,
    /// Number of classes in the class map.
    pub classes: u64,
    /// Files that are loaded by every request that uses the autoloader.
    pub files: u64,
    /// Packages for development that are installed.
    pub dev_packages: Vec<String>,
}

impl Facts {
    pub(crate) fn status(&self) -> Result<&Status, Missing> {
        self.status.as_ref().ok_or(NO_SERVER)
    }

    /// Returns the routes with enough requests for a judgment.
    pub(crate) fn routes(&self) -> Result<Vec<&RouteFacts>, Missing> {
        self.status()?;
        let routes = self.routes.as_ref().ok_or(NO_ACCOUNTING)?;
        let found: Vec<_> = routes.iter().filter(|of| of.requests >= REQUESTS_MIN).collect();
        if found.is_empty() { Err(NO_REQUESTS) } else { Ok(found) }
    }

    /// Returns a route with the sums of all routes.
    pub(crate) fn total(&self) -> Result<RouteFacts, Missing> {
        self.status()?;
        let routes = self.routes.as_ref().ok_or(NO_ACCOUNTING)?;
        let sum = |of: fn(&RouteFacts) -> u64| routes.iter().map(of).fold(0, u64::saturating_add);
        let total = RouteFacts {
            requests: sum(|of| of.requests),
            run: sum(|of| of.run),
            errors: sum(|of| of.errors),
            aborted: sum(|of| of.aborted),
            wall_ns: sum(|of| of.wall_ns),
            run_ns: sum(|of| of.run_ns),
            cpu_ns: sum(|of| of.cpu_ns),
            queue_ns: sum(|of| of.queue_ns),
            waiting_ns: sum(|of| of.waiting_ns),
            cpu_delay_ns: sum(|of| of.cpu_delay_ns),
            faults_major: sum(|of| of.faults_major),
            bytes_out: sum(|of| of.bytes_out),
            ..RouteFacts::default()
        };
        if total.run >= REQUESTS_MIN { Ok(total) } else { Err(NO_REQUESTS) }
    }

    /// Calls a function for the PHP of each pool. All pools are checked; the last missing fact is
    /// the result.
    pub(crate) fn each_php(
        &self,
        mut check: impl FnMut(Php<'_>) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        let mut result = if self.php.is_empty() { Err(NO_PHP) } else { Ok(()) };
        for facts in &self.php {
            result = check(Php { facts, status: self.status.as_ref() }).and(result);
        }
        result
    }

    /// Calls a function for each application, with the PHP that runs it.
    pub(crate) fn each_application(
        &self,
        mut check: impl FnMut(&ApplicationFacts, Option<Php<'_>>) -> Result<(), Missing>,
    ) -> Result<(), Missing> {
        let mut result = if self.applications.is_empty() { Err(NO_FOLDER) } else { Ok(()) };
        for application in &self.applications {
            let facts = self.php.iter().find(|php| php.pool == application.pool);
            let php = facts.map(|facts| Php { facts, status: self.status.as_ref() });
            result = check(application, php).and(result);
        }
        result
    }
}

/// The PHP of one pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Php<'a> {
    pub(crate) facts: &'a PhpFacts,
    status: Option<&'a Status>,
}

impl<'a> Php<'a> {
    pub(crate) fn pool(self) -> &'a str {
        &self.facts.pool
    }

    /// Returns the value of a directive.
    pub(crate) fn directive(self, name: &str) -> Result<&'a str, Missing> {
        self.facts.directives.get(name).map(String::as_str).ok_or(NO_PHP)
    }

    /// Returns whether a directive is on. One that PHP does not know is off if others are known.
    pub(crate) fn is_on(self, name: &str) -> Result<bool, Missing> {
        match self.directive(name) {
            Ok(value) => Ok(directive::is_on(value)),
            Err(_) if !self.facts.directives.is_empty() => Ok(false),
            Err(missing) => Err(missing),
        }
    }

    /// Returns a size in bytes; `None` is unlimited.
    pub(crate) fn bytes(self, name: &str) -> Result<Option<u64>, Missing> {
        directive::bytes(self.directive(name)?).map_err(|_| NO_PHP)
    }

    /// Returns whether an extension is loaded.
    pub(crate) fn has(self, extension: &str) -> Result<bool, Missing> {
        let all = &self.facts.extensions;
        if all.is_empty() {
            return Err(NO_PHP);
        }
        Ok(all.iter().any(|name| name.eq_ignore_ascii_case(extension)))
    }

    /// Returns whether the mode of the JIT is on.
    pub(crate) fn has_jit(self) -> Result<bool, Missing> {
        if !self.is_on("opcache.enable")? {
            return Ok(false);
        }
        let room = match self.directive("opcache.jit_buffer_size") {
            Ok(text) => directive::bytes(text).map_err(|_| NO_PHP)?,
            Err(_) => return Ok(false),
        };
        let mode = self.directive("opcache.jit")?.to_ascii_lowercase();
        let is_off = matches!(&*mode, "" | "0" | "off" | "no" | "false" | "disable");
        Ok(room != Some(0) && !is_off)
    }

    /// Returns the figures of opcache in the running server.
    pub(crate) fn opcache(self) -> Result<&'a OpcacheStatus, Missing> {
        let status = self.status.ok_or(NO_SERVER)?;
        let found = status.applications().into_iter().find(|of| of.pool == self.facts.pool);
        found.and_then(|of| of.opcache).ok_or("opcache is off, or has not reported its figures")
    }

    /// Returns whether requests run whole scripts.
    pub(crate) fn runs_scripts(self) -> Result<bool, Missing> {
        let status = self.status.ok_or(NO_SERVER)?;
        let is_own = |pool: &str| pool == self.facts.pool;
        let mut own = status.serving_workers().filter(|worker| is_own(&worker.pool)).peekable();
        if own.peek().is_none() {
            return Err("no worker runs");
        }
        Ok(own.any(|worker| worker.model == "script"))
    }
}
