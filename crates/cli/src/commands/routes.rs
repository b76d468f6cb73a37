//! `samovar routes`: shows the rules that apply to a path, and the result. Reads settings and
//! checks files. Does not query a server or run PHP.

use crate::terminal;
use anyhow::{Result, anyhow};
use samovar_config::{DEFAULT_POOL, Pool, Settings};
use samovar_front::{Explained, ValidSettings};
use serde::Serialize;
use std::fmt::Write as _;

/// Options of the command.
#[derive(Debug)]
pub(crate) struct RoutesOptions {
    /// A path, or a URL whose host and path are used.
    pub(crate) url: String,
    /// Whether the output is JSON.
    pub(crate) json: bool,
}

#[derive(Debug, Serialize)]
struct Rule<'a> {
    line: usize,
    says: &'a str,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    host: &'a str,
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<&'a str>,
    tables: &'a [usize],
    rules: Vec<Rule<'a>>,
    status: Option<u16>,
    response: &'a str,
}

/// Prints the rules and the result.
pub(crate) fn run(settings: &Settings, asked: &RoutesOptions) -> Result<()> {
    let (host, path) = parts(&asked.url).ok_or_else(|| {
        anyhow!(
            "`{}` is neither a path nor a URL\nhint: pass /a/b or https://example.com/a/b",
            asked.url
        )
    })?;
    let host = host.or(settings.server_name.as_deref()).unwrap_or("localhost");
    let all = ValidSettings::new(settings.clone())?;
    let own = all.pool_of(host, path).and_then(|(at, ..)| settings.pools.get(at));
    let explained = match own {
        Some(pool) => ValidSettings::new(pool.settings.clone())?.explain(host, path),
        None => all.explain(host, path),
    };
    let text = if asked.json {
        json(settings, own, host, &explained)
    } else {
        text(settings, own, host, path, &explained)
    };
    terminal::print(&text)
}

/// Returns host and path, without port, query and fragment.
fn parts(url: &str) -> Option<(Option<&str>, &str)> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let url = &url[..end];
    if url.starts_with('/') {
        return Some((None, url));
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let host = match authority.rfind([':', ']']) {
        Some(at) if authority.as_bytes()[at] == b':' => &authority[..at],
        _ => authority,
    };
    (!host.is_empty()).then_some((Some(host), path))
}

/// Returns the pool's name; `None`: there is one pool.
fn name<'a>(settings: &Settings, pool: Option<&'a Pool>) -> Option<&'a str> {
    let is_one = settings.pools.is_empty();
    (!is_one).then(|| pool.map_or(DEFAULT_POOL, |pool| &pool.name))
}

fn json(settings: &Settings, pool: Option<&Pool>, host: &str, explained: &Explained) -> String {
    let rules = explained.rules.iter().map(|(line, says)| Rule { line: *line, says }).collect();
    let report = Report {
        host,
        path: explained.path.as_deref(),
        pool: name(settings, pool),
        tables: &explained.tables,
        rules,
        status: explained.status,
        response: &explained.response,
    };
    serde_json::to_string(&report).unwrap_or_default() + "\n"
}

fn text(
    settings: &Settings,
    pool: Option<&Pool>,
    host: &str,
    path: &str,
    explained: &Explained,
) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "host     {}", host.escape_debug());
    let _ = writeln!(out, "path     {}", path.escape_debug());
    if let Some(normal) = explained.path.as_ref().filter(|normal| *normal != path) {
        let _ = writeln!(out, "         normalized to {}", normal.escape_debug());
    }
    let file = settings.config_file.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_default();
    if let Some(name) = name(settings, pool) {
        let line = pool.map(|pool| format!(" ({file}:{})", pool.line)).unwrap_or_default();
        let _ = writeln!(out, "pool     {name}{line}");
    }
    for line in &explained.tables {
        let _ = writeln!(out, "match    {file}:{line}");
    }
    for (line, rule) in &explained.rules {
        let _ = writeln!(out, "rule     {file}:{line}: {}", rule.escape_debug());
    }
    let status = explained.status.map(|status| format!("{status}, ")).unwrap_or_default();
    let _ = writeln!(out, "response {status}{}", explained.response.escape_debug());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_is_split_into_host_and_path() {
        for (url, expected) in [
            ("/a?b", Some((None, "/a"))),
            ("/", Some((None, "/"))),
            ("https://a.example:8443/b/c#d", Some((Some("a.example"), "/b/c"))),
            ("http://[::1]:80", Some((Some("[::1]"), "/"))),
            ("http://a.example?b", Some((Some("a.example"), "/"))),
            ("a/b", None),
            ("http:///a", None),
        ] {
            assert_eq!(parts(url), expected, "{url}");
        }
    }
}
