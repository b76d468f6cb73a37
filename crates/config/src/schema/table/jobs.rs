//! The section Queues: the store of jobs.

use crate::schema::domain;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row::{self, path};

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Jobs, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "jobs.store",
        flag: "jobs-store",
        value: "FILE",
        kind: path(|settings, path| settings.jobs.store = path, "a file"),
        default: Preset::Derived(
            "`jobs.sqlite` in $STATE_DIRECTORY, else for root /var/lib/samovar, else \
             ~/.local/state/samovar",
        ),
        doc: "File that stores the jobs of all queues",
        long: "An SQLite database, created with access for the server's user only if a table \
               [[queue]] exists. It must be on a local disk. Two servers must not use the same \
               file.",
        on_reload: OnReload::Kept(|old, new| old.jobs.store != new.jobs.store),
        finish: Some(domain::finish_jobs),
        ..PLAIN
    },
    Setting {
        key: "jobs.bytes_max",
        flag: "jobs-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.jobs.bytes_max,
        },
        default: Preset::Text("1G"),
        doc: "Maximum size of all stored jobs together, dead ones included",
        long: "If there is no room, a push throws a RuntimeException. The file can be larger by \
               about a half, because the database reuses its pages but never shrinks.",
        on_reload: OnReload::Kept(|old, new| old.jobs.bytes_max != new.jobs.bytes_max),
        ..PLAIN
    },
];
