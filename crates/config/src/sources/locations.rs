//! The tables `[[location]]` of the file → locations. `schema/location.rs` defines the keys.

pub(super) mod notation;

use std::path::Path;
use toml_edit::{ArrayOfTables, Item, Table, Value};

use crate::problem::Problem;
use crate::schema::location::{
    BODY_BYTES_MAX, ERROR_PAGE_BYTES_MAX, ErrorPage, FIELDS, Fallback, HEADERS_MAX, INDEX_MAX, KEY,
    Location, PATTERNS_MAX, REDIRECTS, REFUSALS, Redirect, TABLES_MAX, UPSTREAMS_MAX,
    VARIABLES_MAX,
};
use crate::schema::notation::bytes;
use crate::schema::upstream::Upstream;
use crate::sources::tables::{Reader, SettingsFile};
use notation::Wrong;

/// Reads all tables; mistakes become problems.
pub(crate) fn read(
    file: &SettingsFile<'_>,
    tables: &ArrayOfTables,
    problems: &mut Vec<Problem>,
) -> Vec<Location> {
    let mut read = Vec::new();
    for (number, table) in tables.iter().enumerate() {
        let line = file.line_of_table(table);
        if number == TABLES_MAX {
            let hint = "use one table with several patterns: `path = [\"/a/*\", \"/b/*\"]`";
            let what = format!("more than {TABLES_MAX} `[[{KEY}]]`");
            problems.push(file.problem(line, &what, hint));
            break;
        }
        let before = problems.len();
        let location = Reader { file, name: KEY, fields: &FIELDS, line, problems }.location(table);
        if problems.len() == before {
            read.push(location);
        }
    }
    read
}

impl Reader<'_, '_> {
    fn location(&mut self, table: &Table) -> Location {
        for (key, item) in table {
            if !self.knows(key) {
                let line = self.line_of(table, key, item);
                self.unknown(key, line);
            }
        }
        let base = self.file.base;
        let paths = self.read(table, "path", |item| patterns(item, notation::path));
        let hosts = self.read(table, "host", |item| patterns(item, notation::host));
        let to = self.read(table, "redirect", |item| notation::redirect(text(item)?));
        let status = self.read(table, "status", status);
        let of_redirect = status.filter(|_| to.is_some());
        let location = Location {
            line: self.line,
            paths: paths.unwrap_or_default(),
            hosts: hosts.unwrap_or_default(),
            deny: self.read(table, "deny", switch),
            scripts: self.read(table, "scripts", switch),
            redirect: to.map(|to| Redirect { to, status: of_redirect.unwrap_or(REDIRECTS[0]) }),
            status: status.filter(|_| of_redirect.is_none()),
            alias: self.read(table, "alias", |item| folder(base, item)),
            fallback: self.read(table, "fallback", fallback),
            index: self.read(table, "index", index),
            fastcgi_pass: self.read(table, "fastcgi_pass", upstreams).unwrap_or_default(),
            fastcgi_root: self.read(table, "fastcgi_root", root_elsewhere),
            variables: self.read(table, "variables", variables).unwrap_or_default(),
            body_bytes_max: self.read(table, "body_bytes_max", size),
            access_log: self.read(table, "access_log", switch),
            headers: self.read(table, "headers", headers).unwrap_or_default(),
            compression: self.read(table, "compression", switch),
            error_pages: self
                .read(table, "error_pages", |item| error_pages(base, item))
                .unwrap_or_default(),
            intercept: self.read(table, "intercept", switch),
        };
        if let Some(wrong) = at_odds(&location) {
            self.refuse(wrong.about, self.line, wrong.because);
        }
        location
    }
}

/// A key that conflicts with the others.
struct AtOdds {
    about: &'static str,
    because: Option<&'static str>,
}

fn at_odds(location: &Location) -> Option<AtOdds> {
    let Location { paths, deny, scripts, redirect, alias, fallback, index, .. } = location;
    let odds = |about, because| Some(AtOdds { about, because: Some(because) });
    let passes = !location.fastcgi_pass.is_empty();
    let serves = alias.is_some() || fallback.is_some() || index.is_some() || scripts.is_some();
    let serves = serves || passes || !location.variables.is_empty();
    let serves = serves || location.body_bytes_max.is_some();
    let is_told = location.status.is_some();
    if redirect.is_none() && location.status.is_some_and(|status| !REFUSALS.contains(&status)) {
        return odds("status", "there is no `redirect`");
    }
    if *deny == Some(true) && (redirect.is_some() || serves || is_told) {
        return odds("deny", "the other keys would have no effect");
    }
    if passes && *scripts == Some(false) {
        return odds("fastcgi_pass", "no script runs if `scripts` is false");
    }
    if location.fastcgi_root.is_some() && !passes {
        return odds("fastcgi_root", "there is no `fastcgi_pass`");
    }
    let Some(Redirect { to, status }) = redirect else {
        if is_told && serves {
            return odds("status", "the other keys would have no effect");
        }
        let is_folder = |path: &String| {
            path.starts_with('/') && path.ends_with("/*") && path.matches('*').count() == 1
        };
        if alias.is_some() && (paths.is_empty() || !paths.iter().all(is_folder)) {
            return odds("alias", "`path` does not name a folder");
        }
        let changes = !location.headers.is_empty()
            || location.compression.is_some()
            || location.access_log.is_some()
            || location.intercept.is_some()
            || !location.error_pages.is_empty();
        return if deny.is_some() || serves || is_told || changes {
            None
        } else {
            odds("path", "the table has no settings for these paths")
        };
    };
    if !REDIRECTS.contains(status) {
        return odds("status", "it is not the status of a redirect");
    }
    if serves {
        return odds("redirect", "the other keys would have no effect");
    }
    let has_one_star = |path: &String| path.matches('*').count() == 1;
    if to.contains('*') && (paths.is_empty() || !paths.iter().all(has_one_star)) {
        return odds("redirect", "not every `path` has one `*`");
    }
    let is_of_here = !to.contains("://") && paths.iter().any(|path| notation::leads_back(path, to));
    if is_of_here { odds("redirect", "it redirects to itself") } else { None }
}

fn text(item: &Item) -> Result<&str, Option<&'static str>> {
    item.as_str().ok_or(None)
}

fn switch(item: &Item) -> Result<bool, Option<&'static str>> {
    item.as_bool().ok_or(None)
}

fn status(item: &Item) -> Result<u16, Option<&'static str>> {
    let number = item.as_integer().and_then(|number| u16::try_from(number).ok());
    number.filter(|number| REDIRECTS.contains(number) || REFUSALS.contains(number)).ok_or(None)
}

/// Reads a number of bytes, with or without a unit.
fn size(item: &Item) -> Result<u64, Option<&'static str>> {
    let size = match item.as_integer() {
        Some(number) => u64::try_from(number).ok(),
        None => bytes(text(item)?),
    };
    size.filter(|size| (1..=BODY_BYTES_MAX).contains(size)).ok_or(None)
}

fn variables(item: &Item) -> Result<Vec<(String, String)>, Option<&'static str>> {
    pairs(item, VARIABLES_MAX, notation::variable)
}

/// Reads names and texts; `check` must accept each pair.
fn pairs(
    item: &Item,
    max: usize,
    check: impl Fn(&str, &str) -> Result<(), Wrong>,
) -> Result<Vec<(String, String)>, Option<&'static str>> {
    let table = item.as_table_like().ok_or(None)?;
    if table.len() > max {
        return Err(Some("there are too many of them"));
    }
    let pairs = table.iter().map(|(name, item)| {
        let value = text(item)?;
        check(name, value)?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn upstreams(item: &Item) -> Result<Vec<Upstream>, Option<&'static str>> {
    let mut all: Vec<Upstream> = Vec::new();
    for text in texts(item, UPSTREAMS_MAX)? {
        let upstream = Upstream::parse(text).map_err(Some)?;
        if all.contains(&upstream) {
            return Err(Some("one of them is listed twice"));
        }
        all.push(upstream);
    }
    if all.is_empty() { Err(Some("the list is empty")) } else { Ok(all) }
}

/// Reads a text, or an array of texts.
fn texts(item: &Item, max: usize) -> Result<Vec<&str>, Option<&'static str>> {
    if let Some(text) = item.as_str() {
        return Ok(vec![text]);
    }
    let array = item.as_array().ok_or(None)?;
    if array.len() > max {
        return Err(Some("there are too many of them"));
    }
    array.iter().map(|value| value.as_str().ok_or(None)).collect()
}

pub(super) fn patterns(
    item: &Item,
    read: impl Fn(&str) -> Result<String, Wrong>,
) -> Result<Vec<String>, Option<&'static str>> {
    let texts = texts(item, PATTERNS_MAX)?;
    if texts.is_empty() {
        return Err(Some("the list is empty"));
    }
    texts.into_iter().map(|text| read(text).map_err(Some)).collect()
}

fn folder(base: &Path, item: &Item) -> Result<std::path::PathBuf, Option<&'static str>> {
    let path = base.join(text(item)?);
    let found = path.canonicalize().map_err(|_| Some("there is no such folder"))?;
    if found.is_dir() { Ok(found) } else { Err(Some("it is not a folder")) }
}

/// Reads a folder in another server's file system: it need not exist here.
fn root_elsewhere(item: &Item) -> Result<std::path::PathBuf, Option<&'static str>> {
    let path = Path::new(text(item)?);
    let is_plain = !text(item)?.chars().any(char::is_control);
    if path.is_absolute() && is_plain { Ok(path.to_owned()) } else { Err(None) }
}

fn fallback(item: &Item) -> Result<Fallback, Option<&'static str>> {
    match text(item)? {
        "none" => Ok(Fallback::Nothing),
        path if path.contains('*') => Err(Some("it must be one path, not a pattern")),
        path => match notation::path(path)? {
            path if path.starts_with('/') && !path.ends_with('/') => Ok(Fallback::Path(path)),
            _ => Err(Some("it is not the path of a file")),
        },
    }
}

fn index(item: &Item) -> Result<Vec<String>, Option<&'static str>> {
    let names = texts(item, INDEX_MAX)?;
    let is_name = |name: &&str| {
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0', '*'])
    };
    if !names.iter().all(is_name) {
        return Err(Some("a file name has no `/`, no `*` and no leading dot"));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

fn headers(item: &Item) -> Result<Vec<(String, String)>, Option<&'static str>> {
    let mut headers = pairs(item, HEADERS_MAX, notation::header)?;
    for (name, _) in &mut headers {
        name.make_ascii_lowercase();
    }
    Ok(headers)
}

fn error_pages(base: &Path, item: &Item) -> Result<Vec<ErrorPage>, Option<&'static str>> {
    let table = item.as_table_like().ok_or(None)?;
    let pages = table.iter().map(|(key, item)| {
        let statuses = notation::statuses(key)?;
        let file = base.join(item.as_value().and_then(Value::as_str).ok_or(None)?);
        match file.metadata() {
            Ok(found) if found.is_file() && found.len() <= ERROR_PAGE_BYTES_MAX => {
                Ok(ErrorPage { statuses, file })
            }
            Ok(found) if found.is_file() => Err(Some("a file is too large")),
            _ => Err(Some("there is no such file")),
        }
    });
    let mut pages: Vec<_> = pages.collect::<Result<_, _>>()?;
    // Pages for one status come before pages for many.
    pages.sort_by_key(|page: &ErrorPage| page.statuses.1 - page.statuses.0);
    Ok(pages)
}
