//! Describes the response to a path and the rules that lead to it. For users of `samovar routes`.

use super::files::Files;
use super::locations::{Held, Pass, Refused, Said};
use super::path::normalise;
use super::site::{Route, Script, Site, Why};
use samovar_config::Fallback;
use samovar_ring::Lane;

/// Description of the response to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The path that rules are matched against: decoded and normalized. `None` if it is invalid.
    pub path: Option<String>,
    /// The tables that match, each by its first line.
    pub tables: Vec<usize>,
    /// Their settings that take effect, in the order of evaluation: line and description.
    pub rules: Vec<(usize, String)>,
    /// Status of a response by the server itself; `None` if a file or a script provides the
    /// response.
    pub status: Option<u16>,
    /// Description of the response.
    pub response: String,
}

impl Explained {
    pub(crate) fn new(site: &Site, files: &impl Files, host: &str, path: &str) -> Explained {
        let host = host.as_bytes();
        let routed = site.route(files, host, path.as_bytes());
        let (status, response) = words(&routed.route);
        let Ok(normal) = normalise(path.as_bytes()) else {
            return Explained { path: None, tables: vec![], rules: vec![], status, response };
        };
        let locations = &site.locations;
        let mut rules = said(site, host, &normal);
        // These settings also match the script's own name, so tables that do not match the path may
        // be listed.
        let pass = match &routed.route {
            Route::Script(script) => script.pass.clone(),
            _ => locations.pass(host, &[&normal]),
        };
        let mut of_script: Vec<_> = pass.as_deref().map(runner).into_iter().collect();
        if let Route::Script(script) = &routed.route {
            of_script.extend(told(site, host, &[&normal, &script.name]));
        }
        let mut tables = locations.lines(host, &normal);
        tables.extend(of_script.iter().map(|(line, _)| line));
        tables.sort_unstable();
        tables.dedup();
        rules.extend(of_script);
        if let Some(effects) = &routed.effects {
            rules.extend(effects.switches().map(|(line, words)| (line, words.to_owned())));
            rules
                .extend(effects.headers().map(|(line, header)| (line, format!("header {header}"))));
        }
        let path = Some(String::from_utf8_lossy(&normal).into_owned());
        Explained { path, tables, rules, status, response }
    }
}

fn said(site: &Site, host: &[u8], path: &[u8]) -> Vec<(usize, String)> {
    let mut rules = Vec::new();
    if let Some(Said { line, what }) = site.locations.refusal(host, path) {
        let what = match what {
            Refused::Denied => "access denied",
            Refused::Script => "no PHP scripts",
        };
        rules.push((line, what.to_owned()));
    }
    let Held { redirect, status, alias, fallback, index } = site.locations.held(host, path);
    if let Some(Said { line, what: (to, status) }) = redirect {
        rules.push((line, format!("redirect with {status} to {to}")));
    }
    if let Some(Said { line, what: code }) = status {
        rules.push((line, format!("response with status {code}")));
    }
    if let Some(Said { line, what }) = alias
        && let Some(folder) = site.folders.get(what.folder - 1)
    {
        rules.push((line, format!("files from {}", folder.path.display())));
    }
    if let Some(Said { line, what }) = index {
        rules.push((line, format!("index files: {}", what.join(", "))));
    }
    if let Some(Said { line, what }) = fallback {
        let target = match what {
            Fallback::Nothing => "404",
            Fallback::Path(path) => path,
        };
        rules.push((line, format!("fallback for missing files: {target}")));
    }
    rules
}

fn told(site: &Site, host: &[u8], names: &[&[u8]]) -> Vec<(usize, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let variables = site.locations.variables(host, names).into_iter();
    let mut rules: Vec<_> = variables
        .map(|Said { line, what: (name, value) }| {
            (line, format!("PHP variable {}={}", text(name), text(value)))
        })
        .collect();
    let limit = site.locations.body_bytes_max(host, names);
    rules.extend(
        limit.map(|Said { line, what: bytes }| {
            (line, format!("request bodies up to {bytes} bytes"))
        }),
    );
    rules
}

fn runner(pass: &Pass) -> (usize, String) {
    let root = pass.root.as_ref().map(|root| format!(", with scripts in {}", root.display()));
    let (root, addresses) = (root.unwrap_or_default(), pass.addresses());
    (pass.line, format!("scripts run by the php-fpm at {addresses}{root}"))
}

fn words(route: &Route) -> (Option<u16>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (status, response) = match route {
        Route::Static(file) => return (None, format!("the file {}", file.display())),
        Route::Script(Script { filename, path_info, lane, pass, .. }) => {
            let app = if *lane == Lane::App { ", the front controller" } else { "" };
            let info = match path_info.as_slice() {
                b"" => String::new(),
                info => format!(", with PATH_INFO {}", text(info)),
            };
            let by =
                pass.as_ref().map(|pass| format!(", run by the php-fpm at {}", pass.addresses()));
            let by = by.unwrap_or_default();
            return (None, format!("the script {}{app}{info}{by}", text(filename)));
        }
        Route::Redirect(to) => (301, format!("redirect to {to}: it is a folder")),
        Route::Moved(to, status) => (*status, format!("redirect to {to}")),
        Route::Status(status, line) => {
            (*status, format!("fixed status, from the location in line {line}"))
        }
        Route::Forbidden(Why::Outside) => (
            403,
            "rejected: a symbolic link leads out of the folder (hint: link_targets)".to_owned(),
        ),
        Route::Forbidden(Why::NoIndex) => {
            (403, "rejected: folder without an index file".to_owned())
        }
        Route::Forbidden(Why::Denied(line)) => {
            (403, format!("rejected: access denied by the location in line {line}"))
        }
        Route::Forbidden(Why::NoScripts(line)) => {
            (403, format!("rejected: PHP scripts disabled by the location in line {line}"))
        }
        Route::NotFound => (404, "not found: no such file, and no front controller".to_owned()),
        Route::Absent => (404, "not found: no such file, and no fallback".to_owned()),
        Route::BadRequest(why) => (400, format!("rejected: {why}")),
    };
    (Some(status), response)
}
