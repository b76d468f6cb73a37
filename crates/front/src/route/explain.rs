//! What would be answered, and by which rules: for people, who ask with `samovar routes`.

use super::files::Files;
use super::locations::{Held, Pass, Refused, Said};
use super::path::normalise;
use super::site::{Route, Script, Site, Why};
use samovar_config::Fallback;
use samovar_ring::Lane;

/// What is said of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The path as rules see it: decoded and normal. `None`: it is no path.
    pub path: Option<String>,
    /// The tables that fit, each by the line that it begins in.
    pub tables: Vec<usize>,
    /// What they say that counts, in the order in which it is looked at: a line and a sentence.
    pub rules: Vec<(usize, String)>,
    /// The status that the server itself answers with; `None`: a file or a script does.
    pub status: Option<u16>,
    /// What happens, in words.
    pub answer: String,
}

impl Explained {
    pub(crate) fn new(site: &Site, files: &impl Files, host: &str, path: &str) -> Explained {
        let host = host.as_bytes();
        let routed = site.route(files, host, path.as_bytes());
        let (status, answer) = words(&routed.route);
        let Ok(normal) = normalise(path.as_bytes()) else {
            return Explained { path: None, tables: vec![], rules: vec![], status, answer };
        };
        let locations = &site.locations;
        let mut rules = said(site, host, &normal);
        // The script's own name counts for these, too, so tables may be told that do not fit the path.
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
        Explained { path, tables, rules, status, answer }
    }
}

fn said(site: &Site, host: &[u8], path: &[u8]) -> Vec<(usize, String)> {
    let mut rules = Vec::new();
    if let Some(Said { line, what }) = site.locations.refusal(host, path) {
        let what = match what {
            Refused::Denied => "it is denied",
            Refused::Script => "no PHP runs there",
        };
        rules.push((line, what.to_owned()));
    }
    let Held { redirect, status, alias, fallback, index } = site.locations.held(host, path);
    if let Some(Said { line, what: (to, status) }) = redirect {
        rules.push((line, format!("it is elsewhere: {status} {to}")));
    }
    if let Some(Said { line, what }) = status {
        rules.push((line, format!("it is answered with {what}")));
    }
    if let Some(Said { line, what }) = alias
        && let Some(folder) = site.folders.get(what.folder - 1)
    {
        rules.push((line, format!("its files lie in {}", folder.path.display())));
    }
    if let Some(Said { line, what }) = index {
        rules.push((line, format!("for a folder: {}", what.join(", "))));
    }
    if let Some(Said { line, what }) = fallback {
        let what = match what {
            Fallback::Nothing => "404",
            Fallback::Path(path) => path,
        };
        rules.push((line, format!("where there is no file: {what}")));
    }
    rules
}

fn told(site: &Site, host: &[u8], names: &[&[u8]]) -> Vec<(usize, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let variables = site.locations.variables(host, names).into_iter();
    let mut rules: Vec<_> = variables
        .map(|Said { line, what: (name, value) }| {
            (line, format!("PHP is told {}={}", text(name), text(value)))
        })
        .collect();
    let limit = site.locations.body_bytes_max(host, names);
    rules.extend(limit.map(|Said { line, what }| (line, format!("bodies of up to {what} bytes"))));
    rules
}

fn runner(pass: &Pass) -> (usize, String) {
    let root = pass.root.as_ref().map(|root| format!(", which has them in {}", root.display()));
    let (root, addresses) = (root.unwrap_or_default(), pass.addresses());
    (pass.line, format!("its scripts are run by the php-fpm at {addresses}{root}"))
}

fn words(route: &Route) -> (Option<u16>, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (status, answer) = match route {
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
        Route::Redirect(to) => (301, format!("a redirect to {to}: it is a folder")),
        Route::Moved(to, status) => (*status, format!("a redirect to {to}")),
        Route::Status(status, line) => {
            (*status, format!("refused: so says the location of line {line}"))
        }
        Route::Forbidden(Why::Outside) => (
            403,
            "refused: a symbolic link leads out of the folder (hint: link_targets)".to_owned(),
        ),
        Route::Forbidden(Why::NoIndex) => (403, "refused: a folder without a page".to_owned()),
        Route::Forbidden(Why::Denied(line)) => {
            (403, format!("refused: denied by the location of line {line}"))
        }
        Route::Forbidden(Why::NoScripts(line)) => {
            (403, format!("refused: no PHP runs there, by the location of line {line}"))
        }
        Route::NotFound => (404, "not found: neither file nor front controller".to_owned()),
        Route::Absent => (404, "not found: no file, and nothing to fall back to".to_owned()),
        Route::BadRequest(why) => (400, format!("refused: {why}")),
    };
    (Some(status), answer)
}
