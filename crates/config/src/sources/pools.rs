//! The tables `[[pool]]` of the file → pools. `schema/pool.rs` defines the keys.

mod reach;
mod table;

use std::path::Path;
use toml_edit::{Item, Table};

use crate::problem::Problem;
use crate::schema::macros::Blank;
use crate::schema::pool::{DEFAULT_POOL, FIELDS, KEY, NAME_BYTES_MAX, OF_APPLICATION, OWN};
use crate::schema::setting::Surroundings;
use crate::schema::settings::{Pool, Settings};
use crate::schema::table::SETTINGS;
use crate::schema::{console, location, names};
use crate::sources::locations::{notation, patterns};
use crate::sources::tables::{Reader, SettingsFile};
use crate::sources::typed_value::Typed;
use crate::sources::{consoles, merge};
pub(crate) use table::TypedPool;

/// Whether the key describes the pool itself, and is not one of its settings.
pub(crate) fn is_about(key: &str) -> bool {
    FIELDS.iter().any(|field| field.key == key)
}

/// Returns the reason why a key is not allowed in a pool, if it is not. `key` is the name of a
/// table, or the full key of a setting.
pub(crate) fn refusal(file: &SettingsFile<'_>, line: usize, key: &str) -> Option<Problem> {
    let is_table = key == KEY;
    let is_group = names::groups().any(|group| group == key);
    let setting = SETTINGS.iter().find(|setting| setting.key == key);
    if OWN.contains(&key) || key == console::KEY || (is_group && setting.is_none()) {
        return None;
    }
    let refused = format!("`{key}` is not allowed in a `[[{KEY}]]`");
    Some(match (key, setting) {
        ("user" | "group", _) => file.problem(
            line,
            &format!("{refused}: all pools run as the user of the server"),
            "run a separate server for an application that needs another user",
        ),
        ("deny_files" | "allow_files" | "link_targets" | "sendfile", _) => file.problem(
            line,
            &format!("{refused}: the rules for files are the same in all pools"),
            format!("move it outside the tables `[[{KEY}]]`"),
        ),
        (location::KEY, _) => file.problem(
            line,
            &format!("{refused}: locations apply to all pools, by path and host"),
            format!("write `[[{key}]]`"),
        ),
        _ if setting.is_some() || is_table => file.problem(
            line,
            &format!("{refused}: it applies to the whole server"),
            format!("move it outside the tables `[[{KEY}]]`"),
        ),
        _ => {
            let fields = FIELDS.iter().map(|field| field.key);
            let known = fields.chain(OWN).chain(names::groups());
            let hint = match names::nearest(key, known) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => "use `name`, `match`, `host`, or a setting of one application".into(),
            };
            file.problem(line, &format!("unknown key `{KEY}.{key}`"), hint)
        }
    })
}

impl Reader<'_, '_> {
    /// Reads name, paths and hosts of a pool; `None` if they have a mistake.
    pub(crate) fn pool(&mut self, table: &Table) -> Option<(String, Vec<String>, Vec<String>)> {
        let before = self.problems.len();
        let name = self.read(table, "name", name);
        let path = |text: &str| match notation::path(text) {
            Ok(path) if path.starts_with('/') => Ok(path),
            Ok(_) => Err("it does not begin with `/`"),
            Err(why) => Err(why),
        };
        let paths = self.read(table, "match", |item| patterns(item, path));
        let hosts = self.read(table, "host", |item| patterns(item, notation::host));
        if self.problems.len() > before {
            return None;
        }
        if let Some(missing) = match (&name, &paths, &hosts) {
            (None, ..) => Some(("`name`", "add one, such as `name = \"api\"`")),
            (_, None, None) => Some((
                "`match` or `host`",
                "add one, such as `match = \"/api/*\"` or `host = \"api.example.com\"`",
            )),
            _ => None,
        } {
            let what = format!("a `[[{KEY}]]` has no {}", missing.0);
            self.problems.push(self.file.problem(self.line, &what, missing.1));
            return None;
        }
        Some((name?, paths.unwrap_or_default(), hosts.unwrap_or_default()))
    }
}

/// Reads the name of a pool or queue.
pub(crate) fn name(item: &Item) -> Result<String, Option<&'static str>> {
    let name = item.as_str().ok_or(None)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name == DEFAULT_POOL {
        return Err(Some("this name is reserved for the default pool"));
    }
    let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
    if is_name && name.bytes().all(is_allowed) { Ok(name.to_owned()) } else { Err(None) }
}

/// Applies each pool's settings over the general ones, which are `typed`.
pub(crate) fn resolve(
    pools: &[TypedPool],
    typed: &[Typed],
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (at, pool) in pools.iter().enumerate() {
        problems.extend(names_twice(pool, &pools[..at]));
        let mut own = lay_over(pool, typed, settings, around, &mut problems);
        own.workers.is_idle = pool.queue.as_ref().is_some_and(|queue| queue.is_idle);
        settings.pools.push(Pool {
            name: pool.name.clone(),
            line: pool.line,
            paths: pool.paths.clone(),
            hosts: pool.hosts.clone(),
            settings: own,
            queue: pool.queue.clone(),
        });
    }
    let reached: Vec<TypedPool> =
        pools.iter().filter(|pool| pool.queue.is_none()).cloned().collect();
    problems.extend(reach::unreachable(&reached));
    if problems.is_empty() {
        for (pool, typed) in settings.pools.iter().zip(pools) {
            problems.extend(too_large_bodies(settings, pool, typed));
        }
        problems.extend(nested_roots(settings, pools));
    }
    problems
}

fn names_twice(pool: &TypedPool, earlier: &[TypedPool]) -> Option<Problem> {
    let other = earlier.iter().find(|other| other.name == pool.name)?;
    let what =
        format!("`[[{KEY}]]` has the name `{}`, as the one in line {}", pool.name, other.line);
    Some(pool.problem(&what, "set a different `name`"))
}

/// Resolves one pool. Mistakes in the general settings are already reported, so they are left out.
fn lay_over(
    pool: &TypedPool,
    typed: &[Typed],
    base: &Settings,
    around: &Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Settings {
    let has_root = pool.typed.iter().any(|typed| typed.setting.key == "root");
    let is_inherited = |typed: &&Typed| !has_root || !OF_APPLICATION.contains(&typed.setting.key);
    let mut all: Vec<Typed> = typed.iter().filter(is_inherited).cloned().collect();
    all.extend(pool.typed.iter().cloned());
    let mut settings = Settings {
        locations: base.locations.clone(),
        config_file: base.config_file.clone(),
        ..Settings::blank()
    };
    let before = problems.len();
    for setting in SETTINGS {
        let mut found = merge::lay(setting, &all, &mut settings, around);
        found.retain(|problem| !problems[..before].contains(problem));
        problems.extend(found);
    }
    // Without a root the scripts cannot be found, and the missing root is already reported.
    if problems.len() == before {
        problems.extend(consoles::resolve(&pool.consoles, &mut settings, has_root));
    }
    settings
}

/// The protocol's own limit applies before the request's pool is known.
fn too_large_bodies(base: &Settings, pool: &Pool, typed: &TypedPool) -> Option<Problem> {
    let is_more = pool.settings.limits.body_bytes_max > base.limits.body_bytes_max;
    is_more.then(|| {
        let what =
            format!("`limits.body_bytes_max` of pool `{}` is larger than the server's", pool.name);
        typed.problem(&what, "increase the one outside the tables, and decrease it in other pools")
    })
}

/// A file below two roots would be reachable by two names, and one of them would follow the other
/// pool's rules.
fn nested_roots(settings: &Settings, pools: &[TypedPool]) -> Vec<Problem> {
    let own = settings.pools.iter().map(|pool| (pool.name.as_str(), &*pool.settings.root));
    let all: Vec<(&str, &Path)> =
        std::iter::once((DEFAULT_POOL, &*settings.root)).chain(own).collect();
    let mut problems = Vec::new();
    // No request reaches the files of a queue's pool.
    let is_queue = |at: usize| at > 0 && pools[at - 1].queue.is_some();
    for (at, (name, root)) in all.iter().enumerate().skip(1) {
        for (before, (other, theirs)) in all[..at].iter().enumerate() {
            let are_reached = !is_queue(at) && !is_queue(before);
            if are_reached
                && root != theirs
                && (root.starts_with(theirs) || theirs.starts_with(root))
            {
                let what = format!(
                    "the root `{}` of pool `{name}` and `{}` of pool `{other}` are nested",
                    root.display(),
                    theirs.display()
                );
                let hint = "use separate folders, or the same one: otherwise the rules of the \
                            wrong pool would apply to some files";
                problems.push(pools[at - 1].problem(&what, hint));
            }
        }
    }
    problems
}
