//! `samovar routes`: shows the rules that apply to a path, and the result. Reads settings and
//! checks files. Does not query a server or run PHP.

use crate::arguments::{json_argument, settings, with_settings};
use crate::subcommand::{Prepared, Run, Subcommand, no_hint};
use anyhow::{Result, anyhow};
use clap::{Arg, ArgMatches, Command};
use samovar_config::{DEFAULT_POOL, Pool, Settings, Sources};
use samovar_front::{Explained, ValidSettings};
use samovar_server::{Predecessor, terminal};
use serde::Serialize;
use std::fmt::Write as _;
use std::process::ExitCode;

pub(crate) const SUBCOMMAND: Subcommand = Subcommand { define, prepare, hint: no_hint };

const HELP: &str = "\
Accepts the flags of samovar serve after the URL, and reads the same file. Each `match` line is a
[[location]] that matches, with its line in the file. Each `rule` line is a setting that applies.
See docs/guide/locations.md.";

#[derive(Debug)]
struct Routes {
    /// Settings with the rules.
    settings: Settings,
    /// A path, or a URL whose host and path are used.
    url: String,
    /// Whether the output is JSON.
    json: bool,
}

fn define() -> Command {
    let url = Arg::new("url").value_name("URL").required(true);
    let command = Command::new("routes")
        .about("Shows the rules that match a path, and the response; starts nothing")
        .arg(url.help("A path such as /a/b, or a URL (only its host and path are used)"));
    with_settings(command.after_help(HELP)).arg(json_argument())
}

fn prepare(matches: &ArgMatches, sources: Sources) -> Prepared {
    Ok(Box::new(Routes {
        settings: settings(matches, sources).resolve()?,
        url: matches.get_one::<String>("url").cloned().unwrap_or_default(),
        json: matches.get_flag("json"),
    }))
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

impl Run for Routes {
    /// Prints the rules and the result.
    fn run(&self, _: Option<&Predecessor>) -> Result<ExitCode> {
        show(&self.settings, &self.url, self.json).map(|()| ExitCode::SUCCESS)
    }
}

fn show(settings: &Settings, url: &str, is_json: bool) -> Result<()> {
    let (host, path) = parts(url).ok_or_else(|| {
        anyhow!("`{url}` is neither a path nor a URL\nhint: pass /a/b or https://example.com/a/b")
    })?;
    let host = host.or(settings.server_name.as_deref()).unwrap_or("localhost");
    let all = ValidSettings::new(settings.clone())?;
    let own = all.pool_of(host, path).and_then(|(at, ..)| settings.pools.get(at));
    let explained = match own {
        Some(pool) => ValidSettings::new(pool.settings.clone())?.explain(host, path),
        None => all.explain(host, path),
    };
    let text = if is_json {
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
