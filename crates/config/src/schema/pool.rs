//! `[[pool]]`: further applications, each with its own workers and queue.
//!
//! A pool's settings are the general settings, overridden by its own. Settings of the whole server
//! are not allowed in a pool. Does not assign requests to pools; the front does
//! (`front/src/route/pools.rs`).

use crate::schema::console::Field;
use crate::schema::macros::Blank;
use crate::schema::queue;
use crate::schema::settings::Settings;
use crate::schema::table::needs_restart;

/// Key of the tables.
pub(crate) const KEY: &str = "pool";

/// Name of the pool for all requests that match no table.
pub const DEFAULT_POOL: &str = "default";

/// Maximum number of tables in a file. Each pool uses some ten low descriptors of the server. The
/// descriptors that templates inherit must stay below 512, the limit for restoring an image
/// (`FILLED_MAX` of the worker's `csrc/outside/put_back.c`).
pub(crate) const TABLES_MAX: usize = 31;
pub(crate) const NAME_BYTES_MAX: usize = 32;

pub(crate) const FIELDS: [Field; 3] = [
    Field {
        key: "name",
        allowed: "up to 32 letters, digits, `-`, `_`, `.`; not `default`",
        default: "none; required",
        doc: "Name in log lines, in `samovar status` and in metrics",
    },
    Field {
        key: "match",
        allowed: "a path such as `/api/*`, or an array of them; `*` matches any text, including \
                  `/`",
        default: "every path",
        doc: "Paths of the pool, without percent-encoding; `/api/*` also matches `/api`",
    },
    Field {
        key: "host",
        allowed: "a name without port such as `example.com` or `*.example.com`, or an array of \
                  them",
        default: "every host",
        doc: "Hosts of the pool; one of `match` and `host` is required",
    },
];

/// Settings that a pool can override.
pub(crate) const OWN: [&str; 71] = [
    "root",
    "reload_probe",
    "release",
    "release_file",
    "server_name",
    "static_files",
    "request_buffering",
    "workers",
    "workers.memory_max",
    "workers.idle_max",
    "workers.running_max",
    "php_binary",
    "php_engine",
    "php_ini",
    "php",
    "sapi_name",
    "checkpoint_after",
    "checkpoint_resume",
    "warmup",
    "prewarm_boot",
    "relink",
    "disable_checkpoint",
    "rollback_every",
    "checkpoint_connections",
    "compat",
    "boot_reads",
    "image_errors",
    "limits.body_bytes_max",
    "limits.body_rate_min",
    "limits.queue_max",
    "limits.requests_max",
    "limits.age_max",
    "limits.memory_max",
    "limits.memory_ceiling",
    "limits.open_files",
    "limits.processes",
    "limits.file_bytes",
    "limits.core_bytes",
    "limits.nice",
    "limits.scheduling",
    "limits.client_share",
    "limits.priority_paths",
    "limits.retries_max",
    "limits.response_memory_bytes_max",
    "limits.response_spill_bytes_max",
    "limits.growth_bytes_max",
    "limits.tasks_max",
    "limits.task_stack_bytes",
    "sandbox.write",
    "sandbox.read",
    "sandbox.isolate_processes",
    "timeouts.body",
    "timeouts.queue",
    "timeouts.response",
    "timeouts.request",
    "timeouts.path",
    "timeouts.extended",
    "timeouts.grace",
    "timeouts.post_response",
    "timeouts.watchdog",
    "timeouts.drain",
    "timeouts.boot",
    "shared.bytes_max",
    "shared.apcu_bytes",
    "shared.published_bytes_max",
    "shared.published_value_bytes_max",
    "shared.published_names_max",
    "shared.publish",
    "early_hints",
    "profile.trace",
    "profile.trace_workers",
];

/// Settings that describe the application. A pool with its own root runs another application and
/// does not inherit them.
pub(crate) const OF_APPLICATION: [&str; 12] = [
    "checkpoint_after",
    "checkpoint_resume",
    "warmup",
    "reload_probe",
    "release",
    "release_file",
    "rollback_every",
    "compat",
    "boot_reads",
    "image_errors",
    "disable_checkpoint",
    "shared.publish",
];

impl Settings {
    /// Returns these settings with the overridable ones taken from `own`, including the console
    /// workers.
    #[must_use]
    pub fn with_own(&self, own: &Settings) -> Settings {
        let mut all = self.clone();
        for key in OWN {
            let is_known = all.take_own(key, own);
            debug_assert!(is_known, "`{key}` is a field");
        }
        all.consoles.clone_from(&own.consoles);
        all
    }

    fn take_own(&mut self, key: &str, own: &Settings) -> bool {
        match key.split_once('.') {
            None if key == "root" => self.take("root", own) && self.take("front_controller", own),
            None if key == "workers" => {
                self.workers.take("min", &own.workers) && self.workers.take("max", &own.workers)
            }
            None => self.take(key, own),
            Some(("workers", field)) => self.workers.take(field, &own.workers),
            Some(("limits", field)) => self.limits.take(field, &own.limits),
            Some(("timeouts", field)) => self.timeouts.take(field, &own.timeouts),
            Some(("sandbox", field)) => self.sandbox.take(field, &own.sandbox),
            Some(("profile", "trace")) => self.profile.take("trace_ppm", &own.profile),
            Some(("profile", field)) => self.profile.take(field, &own.profile),
            Some(("shared", field)) => self.shared.take(field, &own.shared),
            Some(_) => false,
        }
    }

    /// Returns the keys that differ between two versions of a server's settings, apply to all
    /// pools, and are applied by a reload. `pool` means that the match rules of the tables differ.
    pub fn changed_for_all(&self, next: &Settings) -> Vec<String> {
        let waits = needs_restart(self, next);
        let (before, after) = (self.of_all(), next.with_own(self).of_all());
        let mut keys = before.changed(&after);
        keys.retain(|key| !waits.contains(&key.as_str()));
        keys
    }

    /// Removes line numbers, which change with every line above them, and the pools' own settings.
    fn of_all(&self) -> Settings {
        let mut all = self.clone();
        all.locations.iter_mut().for_each(|location| location.line = 0);
        for pool in &mut all.pools {
            (pool.line, pool.settings) = (0, Settings::blank());
        }
        all
    }
}

/// Returns the keys of pools that differ and need a restart. `pool` means that the set of pools, or
/// their order, differs.
pub fn pools_need_restart(old: &Settings, new: &Settings) -> Vec<String> {
    let names = |settings: &Settings| -> Vec<String> {
        settings.pools.iter().map(|pool| pool.name.clone()).collect()
    };
    let mut keys = Vec::new();
    if names(old) != names(new) {
        keys.push(KEY.to_owned());
    }
    for pool in &new.pools {
        let Some(before) = old.pools.iter().find(|before| before.name == pool.name) else {
            continue;
        };
        if before.queue != pool.queue {
            keys.push(format!("{}.{}", queue::KEY, pool.name));
        }
        let waits = needs_restart(&before.settings, &pool.settings);
        let own = waits.into_iter().filter(|key| OWN.contains(key));
        keys.extend(own.map(|key| format!("{KEY}.{}.{key}", pool.name)));
    }
    keys
}
