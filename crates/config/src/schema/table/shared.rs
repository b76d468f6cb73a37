//! The section Shared memory: what workers have in common beside requests.

use crate::schema::finish;
use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Shared, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "shared.bytes_max",
        flag: "shared-bytes-max",
        value: "SIZE",
        kind: Kind::Size { min: 0, max: 1 << 40, field: |settings| &mut settings.shared.bytes_max },
        default: Preset::Text("64M"),
        doc: "Most bytes of all tables and caches that workers share",
        long: "Memory is taken when it is used. What does not fit is refused with an Error that says so. \
           Counters need none of it.",
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
        doc: "Size of the cache behind apcu_fetch() and its like",
        long: "Only with `compat = \"apcu\"`. It is of shared.bytes_max. A value takes at most a 32nd of it. When a \
           reload changes it, the cache begins empty.",
        finish: Some(finish::apcu_bytes),
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
        doc: "Most bytes of all values that are published",
        long: "Of what `Samovar\\publish()` was given, as PHP has it, and of values that were replaced while requests \
           still read them. Memory is taken when it is used, and then kept for other values. Workers that hold what \
           was replaced when half of it is such are replaced themselves, one after another.",
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
        doc: "Most bytes of one value that is published",
        long: "As PHP has it: 16 bytes for each element of a list, 32 to 48 for each of another array, 32 and its length for \
           a string.",
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
        doc: "Most values that are published at a time",
        long: "",
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
            allowed: "`name=file`: the absolute path of a JSON file, such as `geo=/srv/app/geo.json`",
            put: |settings, text| {
                let (name, path) = text.split_once('=')?;
                let is_name = !name.is_empty() && name.len() <= 256;
                (is_name && path.starts_with('/')).then(|| {
                    settings.shared.publish.insert(name.to_owned(), path.into());
                })
            },
            unpaired: None,
        },
        default: Preset::Derived("none"),
        doc: "JSON file that is published under a name; can be given several times",
        long: "In the file: the table [shared.publish]. Scripts have it by `Samovar\\published()`, as `json_decode()` has it \
           with arrays for objects. A reload reads the files again, and changes nothing when one is wrong.",
        ..PLAIN
    },
];
