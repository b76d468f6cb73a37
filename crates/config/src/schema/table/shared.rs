//! The section Shared memory: what workers have in common beside requests.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row;

/// What its settings have in common.
const PLAIN: Setting = Setting { group: Group::Shared, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[Setting {
    key: "shared.bytes_max",
    flag: "shared-bytes-max",
    value: "SIZE",
    kind: Kind::Size { min: 0, max: 1 << 40, field: |settings| &mut settings.shared.bytes_max },
    default: Preset::Text("64M"),
    doc: "Most bytes of all tables and caches that workers share",
    long: "Memory is taken when it is used. What does not fit is refused with an Error that says so. \
           Counters need none of it.",
    on_reload: OnReload::Kept(|old, new| old.shared != new.shared),
    ..PLAIN
}];
