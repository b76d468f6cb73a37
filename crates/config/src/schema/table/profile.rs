//! The section Profile: how workers are looked at while they run requests, and what is kept of that.

use crate::schema::setting::{Group, Kind, OnReload, Preset, Setting};

use super::row::{self, count};

/// What its settings have in common: they count at the start.
const PLAIN: Setting = Setting { group: Group::Profile, ..row::PLAIN };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "profile.hertz",
        flag: "profile-hertz",
        value: "N",
        kind: count(0, 1_000, |settings| &mut settings.profile.hertz),
        default: Preset::Text("49"),
        doc: "Looks per second at the PHP stack of each busy worker; 0: none",
        long: "From outside: no code runs in the worker for it. `samovar profile` and the dashboard show \
               what was seen.",
        on_reload: OnReload::Kept(|old, new| old.profile.hertz != new.profile.hertz),
        ..PLAIN
    },
    Setting {
        key: "profile.days_max",
        flag: "profile-days-max",
        value: "N",
        kind: count(1, 3_650, |settings| &mut settings.profile.days_max),
        default: Preset::Text("2"),
        doc: "Days that what was seen is kept, minute by minute",
        long: "In memory; where `insight.store` is set, in a file beside it, whose name ends with \
               `.profiles` and which outlives the server. Two: yesterday at this time is there.",
        on_reload: OnReload::Kept(|old, new| old.profile.days_max != new.profile.days_max),
        ..PLAIN
    },
    Setting {
        key: "profile.bytes_max",
        flag: "profile-bytes-max",
        value: "SIZE",
        kind: Kind::Size {
            min: 1 << 20,
            max: 1 << 40,
            field: |settings| &mut settings.profile.bytes_max,
        },
        default: Preset::Text("32M"),
        doc: "Most bytes of what is kept; the oldest hours are forgotten",
        long: "A minute of one route takes 1 to 50 KB.",
        on_reload: OnReload::Kept(|old, new| old.profile.bytes_max != new.profile.bytes_max),
        ..PLAIN
    },
];
