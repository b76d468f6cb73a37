//! Several files → one settings file. The server's own check validates it: a setting that it
//! rejects becomes a comment with a note.

use super::draft::{Draft, Kind, Level, Note};
use super::fpm::{self, Destination, Pool};
use super::input::{self, FileKind, FromError};
use super::nginx::Site;
use super::origin::Origin;
use super::render::{self, Owner, Written};
use super::{caddy, htaccess, nginx, octane, roadrunner};
use std::path::{Path, PathBuf};

/// Maximum number of files.
const FILES_MAX: usize = 64;
/// Maximum number of checks: each one turns all rejected settings into comments.
const ROUNDS_MAX: usize = 200;

/// A mistake in the written settings.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// Line of the settings; `None`: it belongs to no line.
    pub line: Option<usize>,
    /// The mistake in one line.
    pub reason: String,
}

/// Checks the text of a settings file.
pub type Validate<'a> = &'a dyn Fn(&str) -> Vec<Rejection>;

/// The result of a conversion.
#[derive(Clone, Debug)]
pub struct Converted {
    /// Text of `samovar.toml`.
    pub toml: String,
    /// Its settings.
    pub settings: Vec<Written>,
    /// Lines that are no settings, or work in another way.
    pub notes: Vec<Note>,
    /// Number of further notes.
    pub notes_left_out: usize,
    /// Mistakes of the settings that belong to no line.
    pub problems: Vec<String>,
}

/// Converts the files. The settings of the first one apply.
pub fn convert(files: &[PathBuf], validate: Validate<'_>) -> Result<Converted, FromError> {
    let mut draft = Draft::default();
    let (mut sites, mut pools): (Vec<Site>, Vec<Pool>) = (Vec::new(), Vec::new());
    let mut read = Vec::new();
    for file in files.iter().take(FILES_MAX) {
        let text = input::read(file)?;
        let kind =
            input::kind(file, &text).ok_or_else(|| FromError::Unknown { file: file.clone() })?;
        read.push((file, text, kind));
    }
    for (file, text, kind) in &read {
        match kind {
            FileKind::Nginx => sites.extend(nginx::convert(&mut draft, file, text)?),
            FileKind::Fpm => pools.extend(fpm::read(&mut draft, file, text)?),
            FileKind::RoadRunner => roadrunner::convert(&mut draft, file, text)?,
            FileKind::Caddy => caddy::convert(&mut draft, file, text)?,
            FileKind::Octane => octane::convert(&mut draft, file, text)?,
            FileKind::Htaccess => htaccess::convert(&mut draft, file, text)?,
        }
    }
    let is_alone = read.iter().all(|(_, _, kind)| *kind == FileKind::Fpm);
    assign(&mut draft, &sites, &pools, is_alone);
    missing_files(&mut draft);
    fixed_workers(&mut draft);
    let names: Vec<String> = files.iter().map(|file| name(file)).collect();
    Ok(checked(draft, &names, validate))
}

fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Assigns php-fpm's pools to the sites that use them.
fn assign(draft: &mut Draft, sites: &[Site], pools: &[Pool], is_alone: bool) {
    let mut is_used = vec![false; pools.len()];
    for site in sites {
        let of_site = |pool: &&Pool| site.upstreams.iter().any(|address| pool.listens_at(address));
        let Some(number) = pools.iter().position(|pool| of_site(&pool)) else {
            continue;
        };
        let destination = site.pool.map_or(Destination::General, Destination::Block);
        if is_used[number] && site.pool.is_some() {
            draft.differs(&site.origin, "the site has its own workers; check `workers`");
        }
        is_used[number] = true;
        fpm::convert(draft, &pools[number], destination, false);
    }
    // One pool and one site belong together, also if their addresses differ.
    let has_general = is_used.iter().any(|used| *used);
    for (number, pool) in pools.iter().enumerate() {
        if is_used[number] {
            continue;
        }
        if number == 0 && !has_general {
            fpm::convert(draft, pool, Destination::General, is_alone);
        } else {
            draft.missing(
                &pool.origin,
                "no site uses the pool: write a [[pool]] with `host` or `match`",
            );
        }
    }
}

/// A fixed number of workers excludes the settings of a range.
fn fixed_workers(draft: &mut Draft) {
    let blocks = draft.blocks.iter_mut().map(|block| &mut block.entries);
    let mut removed = Vec::new();
    for entries in std::iter::once(&mut draft.settings).chain(blocks) {
        if entries.get("", "workers").is_some() {
            removed.extend(entries.0.extract_if(.., |entry| entry.table == "workers"));
        }
    }
    for entry in removed {
        draft.built_in(&entry.origins[0], "the number of workers is fixed");
    }
}

/// Notes about files and folders that do not exist on this machine.
fn missing_files(draft: &mut Draft) {
    let mut absent: Vec<(Origin, String)> = Vec::new();
    for (table, key) in [("", "root"), ("tls", "certificates"), ("tls", "keys")] {
        let Some(entry) = draft.settings.get(table, key) else { continue };
        let paths = match &entry.value {
            super::draft::Value::Text(path) => vec![path.clone()],
            super::draft::Value::List(paths) => paths.clone(),
            _ => continue,
        };
        for path in paths.iter().filter(|path| !Path::new(path).exists()) {
            absent.push((entry.origins[0].clone(), path.clone()));
        }
    }
    for (origin, path) in absent {
        draft.differs(&origin, format!("`{path}` does not exist on this machine"));
    }
}

fn checked(mut draft: Draft, names: &[String], validate: Validate<'_>) -> Converted {
    let mut problems = Vec::new();
    let mut page = render::render(&draft, names);
    for _ in 0..ROUNDS_MAX {
        let rejections = validate(&page.text);
        let mut is_changed = false;
        problems.clear();
        for Rejection { line, reason } in rejections {
            let owner = line.and_then(|line| page.owners.get(line.saturating_sub(1)).copied());
            match owner.flatten() {
                Some(owner) => is_changed |= reject(&mut draft, owner, &reason),
                None => problems.push(reason),
            }
        }
        if !is_changed {
            break;
        }
        page = render::render(&draft, names);
    }
    let Draft { notes, notes_left_out, .. } = draft;
    Converted { toml: page.text, settings: page.written, notes, notes_left_out, problems }
}

/// Keeps a rejected table that denies paths, without its other keys. Without them it becomes a
/// comment, and a note says that the paths are open.
fn reject_denial(draft: &mut Draft, number: usize, reason: &str) -> bool {
    let block = &mut draft.blocks[number];
    if block.rejected.is_some() {
        return false;
    }
    if block.retain(&["host", "path", "deny"]) {
        return true;
    }
    block.rejected = Some(reason.to_owned());
    let origin = block.origin.clone();
    let advice = format!(
        "the setting is not accepted: {reason}. Its paths are open now: write a [[location]] with \
         `deny = true` for them"
    );
    draft.missing(&origin, advice);
    true
}

/// Turns a setting into a comment. Returns whether it was none before.
fn reject(draft: &mut Draft, owner: Owner, reason: &str) -> bool {
    let table = match owner {
        Owner::Setting(_) => None,
        Owner::Block(number) | Owner::EntryOfBlock(number, _) => Some(number),
    };
    if let Some(number) = table
        && draft.blocks[number].is_denied()
    {
        return reject_denial(draft, number, reason);
    }
    let (rejected, origin) = match owner {
        Owner::Setting(number) => {
            let entry = &mut draft.settings.0[number];
            (&mut entry.rejected, entry.origins[0].clone())
        }
        Owner::Block(number) => {
            let block = &mut draft.blocks[number];
            (&mut block.rejected, block.origin.clone())
        }
        Owner::EntryOfBlock(number, entry) => {
            let block = &mut draft.blocks[number];
            let entry = &mut block.entries.0[entry];
            let is_selector =
                matches!(entry.key.as_str(), "path" | "host" | "name" | "command" | "script");
            let origin = entry.origins[0].clone();
            // Without its paths a table would apply to all of them.
            if is_selector || block.kind == Kind::Pool && entry.key == "root" {
                (&mut block.rejected, origin)
            } else {
                (&mut entry.rejected, origin)
            }
        }
    };
    if rejected.is_some() {
        return false;
    }
    *rejected = Some(reason.to_owned());
    draft.note(Level::Missing, &origin, format!("the setting is not accepted: {reason}"));
    true
}
