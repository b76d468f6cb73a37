//! Changed files: which ones matter, and in which way. Pure.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names of folders that are not watched: dependencies, caches, logs, and data of tools.
const IGNORED: [&str; 16] = [
    "bower_components",
    "cache",
    "caches",
    "coverage",
    "log",
    "logs",
    "node_modules",
    "sessions",
    "storage",
    "target",
    "temp",
    "templates_c",
    "tmp",
    "uploads",
    "var",
    "vendor",
];

/// Endings of files that PHP reads: code, templates, translations, settings of the application.
const CODE: [&str; 22] = [
    "blade", "engine", "graphql", "inc", "install", "latte", "module", "mo", "mustache", "neon",
    "php", "phtml", "po", "profile", "sql", "theme", "tpl", "twig", "xlf", "xml", "yaml", "yml",
];
/// Endings of files that the server or PHP reads once.
const SETTINGS: [&str; 2] = ["toml", "ini"];
/// Endings of files that browsers load.
const ASSETS: [&str; 7] = ["css", "htm", "html", "js", "map", "mjs", "svg"];
/// Names of JSON files that matter. Others are often data that the application writes.
const JSON: [&str; 4] = ["composer.json", "entrypoints.json", "importmap.json", "manifest.json"];
/// Maximum number of names in a summary.
const NAMED_MAX: usize = 3;

/// Effect of a changed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The application must boot again, if it is booted in advance.
    Code,
    /// The application and the server's settings must be read again.
    Settings,
    /// Pages must be loaded again.
    Asset,
}

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// Its effect.
    pub kind: Kind,
}

/// Whether a folder with this name is watched.
pub(super) fn is_watched(name: &OsStr, ignored: &[String]) -> bool {
    let name = name.to_string_lossy();
    let is_hidden = name.starts_with('.');
    !is_hidden && !IGNORED.contains(&&*name) && !ignored.iter().any(|other| *other == name)
}

/// Returns the effect of a file; `None`: it does not matter.
pub(super) fn kind(path: &Path) -> Option<Kind> {
    let name = path.file_name()?.to_str()?;
    // Editors write `.#name`, `#name#`, `name~`, `.name.swp`, `4913`, `name___jb_tmp___`.
    if name.ends_with(['~', '#']) || name.starts_with(['#']) || name.contains("___jb_") {
        return None;
    }
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default().to_ascii_lowercase();
    if name == ".env" || name.starts_with(".env.") {
        return (ending != "swp").then_some(Kind::Settings);
    }
    if name == ".user.ini" {
        return Some(Kind::Code);
    }
    if name.starts_with('.') {
        return None;
    }
    if JSON.contains(&name) || name == "composer.lock" {
        return Some(Kind::Code);
    }
    let is_in = |list: &[&str]| list.contains(&ending.as_str());
    // PHP message catalogues of some frameworks.
    let is_translation = ending == "json"
        && path
            .components()
            .any(|part| matches!(part.as_os_str().to_str(), Some("lang" | "translations")));
    if is_in(&CODE) || is_translation {
        Some(Kind::Code)
    } else if is_in(&SETTINGS) {
        Some(Kind::Settings)
    } else if is_in(&ASSETS) {
        Some(Kind::Asset)
    } else {
        None
    }
}

/// Names the changed files for people: `src/A.php, src/B.php and 4 more`.
pub(super) fn summary(changed: &[Change], project: &Path) -> String {
    let name = |change: &Change| {
        let path = change.path.strip_prefix(project).unwrap_or(&change.path);
        path.display().to_string().escape_debug().to_string()
    };
    let named: Vec<_> = changed.iter().take(NAMED_MAX).map(name).collect();
    match changed.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_effect_of_their_names() {
        for (path, expected) in [
            ("src/Controller/Shop.php", Some(Kind::Code)),
            ("templates/shop.html.twig", Some(Kind::Code)),
            ("resources/views/shop.blade.php", Some(Kind::Code)),
            ("config/services.yaml", Some(Kind::Code)),
            ("lang/de.json", Some(Kind::Code)),
            ("composer.lock", Some(Kind::Code)),
            (".env.local", Some(Kind::Settings)),
            ("samovar.toml", Some(Kind::Settings)),
            ("public/app.css", Some(Kind::Asset)),
            ("public/build/manifest.json", Some(Kind::Code)),
            ("data/counter.json", None),
            ("data/app.sqlite", None),
            ("public/photo.jpg", None),
            ("src/.Shop.php.swp", None),
            ("src/.#Shop.php", None),
            ("src/Shop.php~", None),
            ("src/#Shop.php#", None),
            ("src/Shop.php___jb_tmp___", None),
            ("4913", None),
            ("Makefile", None),
        ] {
            assert_eq!(kind(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn folders_of_dependencies_and_data_are_not_watched() {
        let watched = |name: &str| is_watched(OsStr::new(name), &["fixtures".to_owned()]);
        for name in ["vendor", "node_modules", "cache", "log", ".git", "var", "storage", "fixtures"]
        {
            assert!(!watched(name), "{name}");
        }
        for name in ["src", "config", "templates", "public", "variables"] {
            assert!(watched(name), "{name}");
        }
    }

    #[test]
    fn summary_names_the_first_files() {
        let change = |path: &str| Change { path: path.into(), kind: Kind::Code };
        let all: Vec<_> = ["/p/a.php", "/p/b.php", "/q/c.php", "/p/d.php"].map(change).into();
        assert_eq!(summary(&all[..1], Path::new("/p")), "a.php");
        assert_eq!(summary(&all, Path::new("/p")), "a.php, b.php, /q/c.php and 1 more");
    }
}
