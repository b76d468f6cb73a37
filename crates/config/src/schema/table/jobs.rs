//! The section Queues: the store of jobs.

use crate::schema::domain;
use crate::schema::redis::Redis;
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
    Setting {
        key: "jobs.redis",
        flag: "jobs-redis",
        value: "URL",
        kind: Kind::Text {
            allowed: "`redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]`, the same with \
                      `rediss://` for TLS, or `unix://[:PASSWORD@]/PATH[?db=DATABASE]`",
            set: |settings, text, _| {
                settings.jobs.redis = Some(Redis::parse(text)?);
                Some(())
            },
        },
        default: Preset::Derived("none: `jobs.store`"),
        doc: "Redis that stores the jobs of all queues, and the last runs of all schedules. \
              Several machines can share it",
        long: "Redis 7.0 or newer, or Valkey, with an append-only file. A password is \
               percent-encoded. Command lines are visible to all users of a machine: use \
               SAMOVAR_JOBS_REDIS or the file if it has one.",
        on_reload: OnReload::Kept(|old, new| old.jobs.redis != new.jobs.redis),
        is_secret: true,
        ..PLAIN
    },
    Setting {
        key: "jobs.redis_prefix",
        flag: "jobs-redis-prefix",
        value: "NAME",
        kind: Kind::Text {
            allowed: "1 to 64 letters, digits, `-`, `_`, `.`",
            set: |settings, text, _| {
                let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                let is_sound = (1..=64).contains(&text.len()) && text.bytes().all(is_allowed);
                is_sound.then(|| text.clone_into(&mut settings.jobs.redis_prefix))
            },
        },
        default: Preset::Text("samovar"),
        doc: "Name in all keys of `jobs.redis`. Different applications need different names",
        on_reload: OnReload::Kept(|old, new| old.jobs.redis_prefix != new.jobs.redis_prefix),
        ..PLAIN
    },
    Setting {
        key: "jobs.redis_roots",
        flag: "jobs-redis-roots",
        value: "FILE",
        kind: path(|settings, path| settings.jobs.redis_roots = path, "a file"),
        default: Preset::Derived("the certificates of the system"),
        doc: "Certificates of the authorities that `jobs.redis` with `rediss://` trusts, as PEM",
        on_reload: OnReload::Kept(|old, new| old.jobs.redis_roots != new.jobs.redis_roots),
        ..PLAIN
    },
    Setting {
        key: "jobs.lease",
        flag: "jobs-lease",
        value: "TIME",
        kind: Kind::Timeout { zero: None, field: |settings| &mut settings.jobs.lease },
        default: Preset::Text("30s"),
        doc: "Time after which other machines run the jobs, and start the schedules, of a server \
              without heartbeats. Needs `jobs.redis`",
        long: "From 2s to 1h. The lease of a running job is extended automatically, \
               for any run time.",
        on_reload: OnReload::Kept(|old, new| old.jobs.lease != new.jobs.lease),
        finish: Some(domain::finish_lease),
        ..PLAIN
    },
];
