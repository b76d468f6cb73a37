//! Formats included files for people: tables of routes and files, and the shared start.

#![allow(clippy::cast_precision_loss)] // Times and shares.

use samovar_profile::loads::{Candidate, Includes, SharedStart};
use std::fmt::Write as _;

/// Maximum number of rows of a table, unless all are requested.
const ROUTES_MAX: usize = 10;
const FILES_MAX: usize = 40;
const NS_PER_MS: f64 = 1e6;

fn ms(ns: u64) -> String {
    format!("{:.2} ms", ns as f64 / NS_PER_MS)
}

/// Appends to a string, which cannot fail.
macro_rules! line {
    ($to:expr, $($text:tt)*) => {{ let _ = writeln!($to, $($text)*); }};
}

fn more(out: &mut String, all: usize, shown: usize, of: &str) {
    if all > shown {
        line!(out, "… and {} {of} more: --all", all - shown);
    }
}

pub(super) fn text(includes: &Includes, all: bool) -> String {
    let (routes_max, files_max) =
        if all { (usize::MAX, usize::MAX) } else { (ROUTES_MAX, FILES_MAX) };
    let mut out = format!("{} requests were recorded\n", includes.requests);
    if includes.lost > 0 {
        line!(out, "{} inclusions exceeded the tables and are missing", includes.lost);
    }
    if includes.route.is_empty() {
        line!(out, "\nREQUESTS   FILES   TIME, EACH  ROUTE");
        for route in includes.routes.iter().take(routes_max) {
            let name = &*route.route;
            line!(out, "{:>8} {:>7} {:>12}  {name}", route.requests, route.files, ms(route.ns));
        }
        more(&mut out, includes.routes.len(), routes_max, "routes");
    }
    line!(out, "\nREQUESTS  UNCACHED        FIRST    COMPILING     OWN CODE  FILE");
    for file in includes.files.iter().take(files_max) {
        let by = match (&*file.class, &*file.place) {
            ("", "") => String::new(),
            ("", place) => format!("  by {place}"),
            (class, _) => format!("  for {class}"),
        };
        line!(
            out,
            "{:>8} {:>9} {:>12} {:>12} {:>12}  {}{by}",
            file.requests,
            file.compiled,
            ms(file.at_ns),
            ms(file.compiling_ns),
            ms(file.own_ns),
            file.file
        );
    }
    more(&mut out, includes.files.len(), files_max, "files");
    if !includes.warmup.is_empty() {
        line!(out, "\nthe requests that include most of these files, by time:");
        line!(out, "  {}", warmup_line(&includes.warmup));
    }
    if let Some(shared) = &includes.shared {
        out.push('\n');
        out.push_str(&shared_start(shared));
    }
    out
}

/// Formats the list of warm-up requests as a line for samovar.toml.
pub(crate) fn warmup_line(paths: &[String]) -> String {
    let quoted = |path: &String| format!("{path:?}");
    format!("warmup = [{}]", paths.iter().map(quoted).collect::<Vec<_>>().join(", "))
}

/// Formats the start that all routes share, with a line for `checkpoint_after`.
fn shared_start(shared: &SharedStart) -> String {
    let SharedStart { routes, candidates, files_shared, files_min, differs_at } = shared;
    let mut out = format!(
        "the scripts of {routes} routes begin with the same {files_shared} files, of at least \
         {files_min}"
    );
    if !differs_at.is_empty() {
        let _ = write!(out, "; they differ first at {differs_at}");
    }
    out.push('\n');
    match candidates.first() {
        None => out.push_str("none of these files ends before the routes differ\n"),
        Some(Candidate { file, files }) => {
            line!(
                out,
                "the last one to end, after {files} files, is a candidate for samovar.toml:"
            );
            line!(out, "  checkpoint_after = {file:?}");
            line!(out, "(`samovar preload --checkpoint` tries it, and measures its gain)");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_profile::loads::{IncludedFile, RouteIncludes};

    #[test]
    fn text_contains_routes_files_and_shared_start() {
        let file = IncludedFile {
            file: "/srv/a.php".into(),
            class: "A".into(),
            requests: 3,
            at_ns: 1_250_000,
            ..IncludedFile::default()
        };
        let by = IncludedFile { class: String::new(), place: "/i.php:3".into(), ..file.clone() };
        let route =
            RouteIncludes { route: "/cart".into(), requests: 3, files: 50, ..Default::default() };
        let mut includes = Includes {
            requests: 3,
            routes: vec![route],
            files: [vec![file; 44], vec![by]].concat(),
            ..Includes::default()
        };
        let said = text(&includes, false);
        assert!(said.starts_with("3 requests were recorded\n\nREQUESTS"), "{said}");
        assert!(said.contains("       3      50      0.00 ms  /cart\n"), "{said}");
        assert!(said.contains("      1.25 ms"), "{said}");
        assert!(said.ends_with("… and 5 files more: --all\n"), "{said}");
        assert!(text(&includes, true).ends_with("/srv/a.php  by /i.php:3\n"));
        includes.warmup = vec!["/cart".into(), "/".into()];
        assert!(text(&includes, true).ends_with("\n  warmup = [\"/cart\", \"/\"]\n"));
        includes.shared = Some(SharedStart {
            routes: 2,
            candidates: vec![Candidate { file: "/srv/vendor/autoload.php".into(), files: 9 }],
            files_shared: 12,
            files_min: 40,
            differs_at: "/srv/k.php:7".into(),
        });
        let said = text(&includes, true);
        assert!(said.contains("at least 40; they differ first at /srv/k.php:7\n"), "{said}");
        assert!(said.contains("\n  checkpoint_after = \"/srv/vendor/autoload.php\"\n"), "{said}");
    }
}
