//! The section Shared memory: memory shared by workers, except that for requests.

use crate::schema::resolve;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row;

/// Common values of this section's rows.
const PLAIN: Setting = Setting { group: Group::Shared, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "shared.bytes_max",
        flag: "shared-bytes-max",
        value: "SIZE",
        kind: Kind::Size { min: 0, max: 1 << 40, field: |settings| &mut settings.shared.bytes_max },
        default: Preset::Text("64M"),
        doc: "Maximum size of all shared tables and caches together",
        long: "Memory is allocated when it is used. If there is no room, the call throws an Error \
               that says so. Counters take none of it.",
        on_reload: OnReload::Kept(|old, new| old.shared.bytes_max != new.shared.bytes_max),
        ..PLAIN
    },
    Setting {
        key: "shared.apcu_bytes",
        flag: "shared-apcu-bytes",
        value: "SIZE",
        kind: Kind::Size {
            min: 64 << 10,
            max: 8 << 30,
            field: |settings| &mut settings.shared.apcu_bytes,
        },
        default: Preset::Text("32M"),
        doc: "Size of the cache for apcu_fetch() and the other APCu functions",
        long: "Only with `compat = \"apcu\"`. It is part of shared.bytes_max. A value can take at \
               most a 32nd of it. If a reload changes the size, the cache starts empty.",
        finish: Some(resolve::apcu_bytes),
        ..PLAIN
    },
    Setting {
        key: "shared.published_bytes_max",
        flag: "shared-published-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 64 << 30,
            field: |settings| &mut settings.shared.published_bytes_max,
        },
        default: Preset::Text("64M"),
        doc: "Maximum size of all published values together",
        long: "Counts values of `Samovar\\publish()` as PHP represents them, and replaced values \
               that requests still read. Memory is allocated when it is used, and then kept for \
               other values. When replaced values take half of it, the workers that hold them are \
               replaced, one after another.",
        on_reload: OnReload::Kept(|old, new| {
            old.shared.published_bytes_max != new.shared.published_bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "shared.published_value_bytes_max",
        flag: "shared-published-value-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 0,
            max: 4 << 30,
            field: |settings| &mut settings.shared.published_value_bytes_max,
        },
        default: Preset::Text("16M"),
        doc: "Maximum size of one published value",
        long: "The size is that of PHP's representation. An element of a list takes 16 bytes, an \
               element of another array 32 to 48, a string 32 plus its length.",
        on_reload: OnReload::Kept(|old, new| {
            old.shared.published_value_bytes_max != new.shared.published_value_bytes_max
        }),
        ..PLAIN
    },
    Setting {
        key: "shared.published_names_max",
        flag: "shared-published-names-max",
        value: "N",
        kind: Kind::Count {
            min: 0,
            max: 1024,
            field: |settings| &mut settings.shared.published_names_max,
        },
        default: Preset::Text("256"),
        doc: "Maximum number of published values",
        on_reload: OnReload::Kept(|old, new| {
            old.shared.published_names_max != new.shared.published_names_max
        }),
        ..PLAIN
    },
    Setting {
        key: "shared.publish",
        flag: "shared-publish",
        value: "NAME=FILE",
        kind: Kind::Pairs {
            allowed: "`name=file`: a JSON file, such as `geo=/srv/app/geo.json`",
            put: |settings, text, base| {
                let (name, path) = text.split_once('=')?;
                let is_name = !name.is_empty() && name.len() <= 256;
                (is_name && !path.is_empty()).then(|| {
                    settings.shared.publish.insert(name.to_owned(), base.join(path));
                })
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "JSON file that is published under a name (repeatable)",
        long: "In the file: the table [shared.publish]. `Samovar\\published()` returns the value \
               as `json_decode()` does, with arrays for objects. A reload reads the files again; \
               if one of them is invalid, nothing changes.",
        ..PLAIN
    },
];
