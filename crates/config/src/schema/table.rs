//! The table of all settings, one file per section. Flags, variables, keys of the file, help,
//! errors and the manual are derived from it.

mod acme;
mod compression;
mod exports;
mod fastcgi;
mod insight;
mod jobs;
mod limits;
mod logs;
mod php;
mod profile;
mod row;
mod serving;
mod shared;
mod timeouts;
mod tls;

use crate::schema::setting::{OnReload, Setting};
use crate::schema::settings::Settings;

/// All settings, in listing order.
pub static SETTINGS: &[Setting] = &joined::<{ rows() }>();

const SECTIONS: [&[Setting]; 14] = [
    serving::SETTINGS,
    compression::SETTINGS,
    acme::SETTINGS,
    tls::SETTINGS,
    fastcgi::SETTINGS,
    php::SETTINGS,
    limits::SETTINGS,
    timeouts::SETTINGS,
    logs::SETTINGS,
    shared::SETTINGS,
    jobs::SETTINGS,
    insight::SETTINGS,
    exports::SETTINGS,
    profile::SETTINGS,
];

const fn rows() -> usize {
    let (mut sum, mut section) = (0, 0);
    while section < SECTIONS.len() {
        sum += SECTIONS[section].len();
        section += 1;
    }
    sum
}

/// Concatenates the sections. A constant function can use neither iterators nor `concat`.
const fn joined<const N: usize>() -> [Setting; N] {
    let mut all = [row::PLAIN; N];
    let (mut at, mut section) = (0, 0);
    while section < SECTIONS.len() {
        let mut row = 0;
        while row < SECTIONS[section].len() {
            all[at] = SECTIONS[section][row];
            at += 1;
            row += 1;
        }
        section += 1;
    }
    all
}

/// Returns the keys of the settings that differ and need a restart.
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let waits = |setting: &&Setting| match setting.on_reload {
        OnReload::Applied => false,
        OnReload::Kept(differs) => differs(old, new),
    };
    SETTINGS.iter().filter(waits).map(|setting| setting.key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::setting::Group;

    #[test]
    fn settings_of_each_section_are_contiguous() {
        let groups: Vec<_> = SETTINGS.iter().map(|setting| setting.group).collect();
        let mut sections = groups.clone();
        sections.dedup();
        assert_eq!(sections, Group::ALL);
    }

    #[test]
    fn flag_is_derived_from_key() {
        for Setting { key, flag, .. } in SETTINGS {
            let expected = match key.split_once('.') {
                Some(("acme", "domains")) => "domain".to_owned(),
                Some(("timeouts", name)) => format!("{}-timeout", name.replace('_', "-")),
                Some((
                    group @ ("acme" | "sandbox" | "shared" | "insight" | "tls" | "fastcgi"
                    | "compression" | "profile" | "workers" | "jobs"),
                    name,
                )) => {
                    format!("{group}-{}", name.replace('_', "-"))
                }
                Some((_, name)) => name.replace('_', "-"),
                None => key.replace('_', "-"),
            };
            assert_eq!(*flag, expected, "the flag of `{key}`");
        }
    }
}
