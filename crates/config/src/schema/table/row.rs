//! Default values of a row of the table.

use std::path::{Path, PathBuf};

use crate::schema::setting::{Field, Group, Kind, OnReload, Preset, Setting};
use crate::schema::settings::Settings;

/// Common values of most settings.
pub(super) const PLAIN: Setting = Setting {
    key: "",
    flag: "",
    former_flag: None,
    former_key: None,
    short: None,
    positional: false,
    bare: false,
    group: Group::Serving,
    value: "",
    kind: Kind::Switch(|settings| &mut settings.static_files),
    default: Preset::Derived(""),
    doc: "",
    long: "",
    on_reload: OnReload::Applied,
    is_secret: false,
    finish: None,
};

pub(super) const fn count(min: usize, max: usize, field: Field<usize>) -> Kind {
    Kind::Count { min, max, field }
}

pub(super) const fn path(set: fn(&mut Settings, PathBuf), allowed: &'static str) -> Kind {
    Kind::Path { allowed, set }
}

/// Returns the path, which starts at the folder `base` if it is relative.
pub(super) fn below(base: &Path, text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| base.join(text))
}
