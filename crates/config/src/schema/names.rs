//! Finds the setting for a name, or the nearest one for a mistyped name.

use crate::schema::setting::Setting;
use crate::schema::table::SETTINGS;
use crate::schema::{console, intake, location, pool, queue, schedule};

/// Returns the setting of a flag, given without dashes.
///
/// # Panics
/// The table has no such flag. Callers pass only flags of the table.
pub fn by_flag(flag: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.flag == flag).expect("callers name flags of the table")
}

/// Returns the setting whose former flag this is, given without dashes.
pub fn by_former_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.former_flag == Some(flag))
}

/// Returns the setting whose former key this is, also within `[[pool]]`.
pub(crate) fn by_former_key(key: &str) -> Option<&'static Setting> {
    let key = key.strip_prefix("pool.").unwrap_or(key);
    SETTINGS.iter().find(|setting| setting.former_key == Some(key))
}

/// Returns the setting of a key that the table's rows refer to.
pub(crate) fn by_key(key: &str) -> &'static Setting {
    SETTINGS.iter().find(|setting| setting.key == key).expect("rows name keys of the table")
}

/// Returns the tables of the file that contain settings: `limits`, `timeouts`.
pub(crate) fn groups() -> impl Iterator<Item = &'static str> {
    let mut groups: Vec<_> =
        SETTINGS.iter().filter_map(|setting| setting.key.split_once('.')).map(|(g, _)| g).collect();
    groups.dedup();
    groups.into_iter()
}

/// Returns the known name nearest to a mistyped one, if one is near enough.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|name| (strsim::damerau_levenshtein(typed, name), name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= tolerance(typed)).then_some(name)
}

/// Number of allowed mistakes: one in three letters.
fn tolerance(typed: &str) -> usize {
    (typed.len() / 3).max(1)
}

/// Returns the key nearest to a mistyped one. A correct name in the wrong table counts as near.
pub fn nearest_key(typed: &str) -> Option<&'static str> {
    let last = typed.rsplit('.').next().unwrap_or(typed);
    let misplaced = SETTINGS.iter().find(|setting| {
        let names = [Some(setting.last()), Some(setting.flag), setting.former_flag];
        names.into_iter().flatten().any(|name| name.replace('-', "_") == last.replace('-', "_"))
    });
    if let Some(setting) = misplaced {
        return Some(setting.key);
    }
    nearest(typed, SETTINGS.iter().map(|setting| setting.key).chain(groups()).chain(ARRAYS))
        .or_else(|| SETTINGS.iter().find(|s| nearest(last, [s.last()]).is_some()).map(|s| s.key))
}

/// Keys of tables that can occur several times.
const ARRAYS: [&str; 6] =
    [console::KEY, intake::KEY, location::KEY, pool::KEY, queue::KEY, schedule::KEY];

/// Returns the known keys of the table that an unknown key is in.
pub(crate) fn siblings(key: &str) -> Vec<String> {
    let table = key.rsplit_once('.').map(|(table, _)| table);
    let here = |candidate: &str| candidate.rsplit_once('.').map(|(table, _)| table) == table;
    let tables = groups().filter(|_| table.is_none());
    let keys = SETTINGS.iter().map(|setting| setting.key).filter(|key| here(key));
    let arrays = ARRAYS.into_iter().filter(|_| table.is_none());
    keys.chain(tables).chain(arrays).map(|key| format!("`{key}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_key_finds_nearest_key() {
        let check = |typed, expected| assert_eq!(nearest_key(typed), expected, "{typed:?}");
        check("worker", Some("workers"));
        check("limits.header_max", Some("limits.headers_max"));
        check("timeouts.repsonse", Some("timeouts.response"));
        check("body_bytes_max", Some("limits.body_bytes_max"));
        check("limits.idle", Some("timeouts.idle"));
        check("header_timeout", Some("timeouts.header"));
        check("define", Some("php"));
        check("limit", Some("limits"));
        check("timeout", Some("timeouts"));
        check("accesslog", Some("access_log"));
        check("schedul", Some("schedule"));
        check("trusted-proxies", Some("trusted_proxies"));
        check("colour", None);
        check("limits.colour", None);
    }

    #[test]
    fn unknown_key_lists_known_keys_of_its_table() {
        assert!(siblings("colour").contains(&"`listen`".to_owned()));
        assert!(siblings("colour").contains(&"`limits`".to_owned()));
        assert!(siblings("colour").contains(&"`console`".to_owned()));
        let limits = SETTINGS.iter().filter(|s| s.key.starts_with("limits.")).count();
        assert_eq!(siblings("limits.colour").len(), limits);
    }
}
