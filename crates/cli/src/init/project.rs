//! Recognizes the framework of a project, its public folder and its execution model.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum number of bytes read of a script.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of composer.json.
const COMPOSER_BYTES_MAX: u64 = 16 << 20;
/// Names of public folders, in order of preference.
const PUBLIC: [&str; 5] = ["public", "web", "htdocs", "public_html", "www"];

/// A kind of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framework {
    Symfony,
    Laravel,
    Slim,
    WordPress,
    /// One script handles all requests.
    FrontController,
    /// Each path is a script.
    Scripts,
}

impl Framework {
    /// Name in a sentence.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Framework::Symfony => "a Symfony application",
            Framework::Laravel => "a Laravel application",
            Framework::Slim => "a Slim application",
            Framework::WordPress => "WordPress",
            Framework::FrontController => "an application with a front controller",
            Framework::Scripts => "plain scripts",
        }
    }
}

/// Execution model that the front controller selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    Script,
    Checkpoint,
    Resident,
    /// A worker script of FrankenPHP.
    FrankenPhp,
}

/// Properties of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    pub(crate) framework: Framework,
    /// Public folder, from the folder of the project.
    pub(crate) root: PathBuf,
    pub(super) model: Model,
    /// Reason for the framework, such as ``composer.json requires `slim/slim` ``.
    pub(super) evidence: String,
    /// Whether composer.json requires `samovar/runtime`.
    pub(super) has_runtime: bool,
    /// Whether composer.json requires `symfony/messenger`.
    pub(super) has_messenger: bool,
    /// Extensions that composer.json requires.
    pub(super) extensions: Vec<String>,
    /// Path of files that visitors of WordPress upload.
    pub(super) uploads: &'static str,
    /// Files of the project that the public folder contains but no visitor needs.
    pub(super) private: Vec<&'static str>,
}

impl Project {
    /// Recognizes the project in this folder.
    pub(crate) fn of(folder: &Path) -> Result<Project> {
        let composer = Composer::read(folder)?;
        let has = |name: &str| folder.join(name).exists();
        let required = |package: &str| composer.requires(package);
        let by_package = [
            ("symfony/framework-bundle", Framework::Symfony),
            ("laravel/framework", Framework::Laravel),
            ("slim/slim", Framework::Slim),
            ("johnpbloch/wordpress", Framework::WordPress),
            ("roots/wordpress", Framework::WordPress),
        ];
        let by_file = [
            ("config/bundles.php", Framework::Symfony),
            ("src/Kernel.php", Framework::Symfony),
            ("artisan", Framework::Laravel),
            ("wp-load.php", Framework::WordPress),
            ("public/wp-load.php", Framework::WordPress),
            ("web/wp-load.php", Framework::WordPress),
        ];
        let package = by_package.into_iter().find(|(package, _)| required(package));
        let file = by_file.into_iter().find(|(file, _)| has(file));
        // WordPress is served from its own folder, also if there is another public one.
        let of_wordpress = file.and_then(|(file, _)| file.strip_suffix("wp-load.php"));
        let root = match of_wordpress {
            Some("") => PathBuf::from("."),
            Some(parent) => PathBuf::from(parent.trim_end_matches('/')),
            None => public_folder(folder),
        };
        let (framework, evidence) = match (package, file) {
            (Some((package, framework)), _) => {
                (framework, format!("composer.json requires {package}"))
            }
            (None, Some((file, framework))) => (framework, format!("{file} exists")),
            (None, None) => plain(folder, &root)
                .with_context(|| format!("no PHP application in `{}`", folder.display()))?,
        };
        let is_public = root != Path::new(".");
        let mut root = root;
        let mut index = text(&folder.join(&root).join("index.php"), SCRIPT_BYTES_MAX)?;
        if index.is_none() && framework == Framework::Slim {
            // Slim prescribes no name for the front controller.
            if let [only] = scripts(&folder.join(&root)).as_slice() {
                root.push(only);
                index = text(&folder.join(&root), SCRIPT_BYTES_MAX)?;
            }
        }
        if index.is_none() && (package.is_some() || file.is_some()) {
            bail!(
                "{} in `{}` has no index.php in {}\nhint: write or install its front controller, \
                 such as public/index.php, or write samovar.toml with `root`",
                framework.title(),
                folder.display(),
                PUBLIC.join("/, ") + "/ or the folder itself"
            );
        }
        let index = index.unwrap_or_default();
        let private = ["vendor", "composer.json", "composer.lock", "node_modules", "tests"];
        Ok(Project {
            framework,
            model: model(&index),
            evidence,
            has_runtime: required("samovar/runtime"),
            has_messenger: required("symfony/messenger"),
            extensions: composer.extensions(),
            // Bedrock renames wp-content.
            uploads: if folder.join(&root).join("app").is_dir() {
                "/app/uploads/*"
            } else {
                "/wp-content/uploads/*"
            },
            private: private.into_iter().filter(|name| !is_public && has(name)).collect(),
            root,
        })
    }
}

/// composer.json; an empty object if there is none.
struct Composer(Value);

impl Composer {
    fn read(folder: &Path) -> Result<Composer> {
        let file = folder.join("composer.json");
        let Some(text) = text(&file, COMPOSER_BYTES_MAX + 1)? else {
            return Ok(Composer(Value::Null));
        };
        if text.len() as u64 > COMPOSER_BYTES_MAX {
            bail!(
                "`{}` is larger than {} MiB\nhint: write samovar.toml without samovar init: \
                 `root` is the only setting that most projects need",
                file.display(),
                COMPOSER_BYTES_MAX >> 20
            );
        }
        // Some editors write a byte order mark, which Composer ignores, too.
        let text = text.trim_start_matches('\u{feff}');
        let parsed = serde_json::from_str(text).with_context(|| {
            format!("cannot parse `{}`; `composer validate` shows its errors", file.display())
        })?;
        Ok(Composer(parsed))
    }

    fn requires(&self, package: &str) -> bool {
        self.0["require"].get(package).is_some()
    }

    fn extensions(&self) -> Vec<String> {
        let required = self.0["require"].as_object();
        let names = required.into_iter().flatten().map(|(name, _)| name);
        let mut names: Vec<_> =
            names.filter_map(|name| name.strip_prefix("ext-")).map(str::to_lowercase).collect();
        names.sort();
        names
    }
}

/// Returns the text of a file, up to the limit; `None`: there is no such file.
fn text(file: &Path, bytes_max: u64) -> Result<Option<String>> {
    if !file.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let open = File::open(file).with_context(|| format!("cannot read `{}`", file.display()))?;
    open.take(bytes_max)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read `{}`", file.display()))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns the first usual folder with a script or a page; `.` if there is none.
fn public_folder(folder: &Path) -> PathBuf {
    let is_public = |name: &&str| {
        let public = folder.join(name);
        ["index.php", "wp-load.php", "index.html"].iter().any(|file| public.join(file).is_file())
            || !scripts(&public).is_empty()
    };
    PUBLIC.iter().find(|name| is_public(name)).map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// Returns the names of the `.php` files in the folder.
fn scripts(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "php")).collect()
}

/// Distinguishes a front controller from scripts that are requested by their names.
fn plain(folder: &Path, root: &Path) -> Result<(Framework, String)> {
    let scripts = scripts(&folder.join(root));
    let has_code_outside = root != Path::new(".")
        && ["src", "app", "vendor"].iter().any(|name| folder.join(name).is_dir());
    let root = root.display();
    match scripts.as_slice() {
        [] => bail!(
            "neither a framework nor a .php file\nhint: run samovar init in the folder of the \
             project, or pass it"
        ),
        [only] if only == "index.php" => {
            Ok((Framework::FrontController, format!("index.php is the only script in {root}")))
        }
        several if has_code_outside && several.iter().any(|name| name == "index.php") => Ok((
            Framework::FrontController,
            format!("{root} has an index.php, and the code is outside"),
        )),
        several => Ok((Framework::Scripts, format!("{} scripts in {root}", several.len()))),
    }
}

fn model(index: &str) -> Model {
    // A comment may mention a function; the result is a remark, not a setting.
    let calls = |names: &[&str]| names.iter().any(|name| index.contains(name));
    if calls(&["frankenphp_handle_request("]) {
        Model::FrankenPhp
    } else if calls(&["Samovar\\checkpoint", "checkpoint()"]) {
        Model::Checkpoint
    } else if calls(&["Samovar\\serve"]) {
        Model::Resident
    } else if calls(&["Samovar\\Runtime\\"]) {
        Model::Checkpoint
    } else {
        Model::Script
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn frameworks_are_recognized() {
        use Framework::{FrontController, Laravel, Scripts, Slim, Symfony, WordPress};
        let require = |package: &str| format!("{{\"require\": {{\"{package}\": \"*\"}}}}");
        for (name, files, framework, root) in [
            (
                "symfony",
                &[("composer.json", "symfony/framework-bundle"), ("public/index.php", "")][..],
                Symfony,
                "public",
            ),
            ("kernel", &[("src/Kernel.php", ""), ("public/index.php", "")], Symfony, "public"),
            (
                "laravel",
                &[("composer.json", "laravel/framework"), ("public/index.php", "")],
                Laravel,
                "public",
            ),
            ("artisan", &[("artisan", ""), ("public/index.php", "")], Laravel, "public"),
            ("slim", &[("composer.json", "slim/slim"), ("htdocs/index.php", "")], Slim, "htdocs"),
            (
                "blog",
                &[("wp-load.php", ""), ("index.php", ""), ("wp-login.php", "")],
                WordPress,
                ".",
            ),
            (
                "blog with pages",
                &[("wp-load.php", ""), ("index.php", ""), ("web/index.html", "")],
                WordPress,
                ".",
            ),
            (
                "bedrock",
                &[("composer.json", "roots/wordpress"), ("web/index.php", ""), ("web/app/a", "")],
                WordPress,
                "web",
            ),
            ("front", &[("public/index.php", "")], FrontController, "public"),
            (
                "code",
                &[("public/index.php", ""), ("public/a.php", ""), ("src/a.php", "")],
                FrontController,
                "public",
            ),
            ("pages", &[("web/a.php", ""), ("web/b.php", "")], Scripts, "web"),
            ("page", &[("contact.php", "")], Scripts, "."),
        ] {
            let texts: Vec<_> = files
                .iter()
                .map(|(file, text)| match text {
                    &"" => (*file, String::new()),
                    package => (*file, require(package)),
                })
                .collect();
            let files: Vec<_> = texts.iter().map(|(file, text)| (*file, text.as_str())).collect();
            let sample = Sample::new(name, &files);
            let project = Project::of(&sample.0).expect("a project");
            assert_eq!((project.framework, &*project.root), (framework, Path::new(root)), "{name}");
        }
    }

    #[test]
    fn folder_without_application_is_an_error() {
        let sample = Sample::new("empty", &[("readme.md", "")]);
        let error = format!("{:#}", Project::of(&sample.0).unwrap_err());
        assert!(error.contains("neither a framework nor a .php file\nhint: run"), "{error}");
        let json = r#"{"require": {"laravel/framework": "*"}}"#;
        let sample = Sample::new("no-public", &[("composer.json", json), (".env", "SECRET=1")]);
        let error = format!("{:#}", Project::of(&sample.0).unwrap_err());
        assert!(error.contains("a Laravel application in"), "{error}");
        assert!(error.contains("has no index.php in public/, web/"), "{error}");
        let sample = Sample::new("broken", &[("composer.json", "{"), ("index.php", "")]);
        let error = format!("{:#}", Project::of(&sample.0).unwrap_err());
        assert!(error.contains("`composer validate` shows its errors"), "{error}");
    }

    #[test]
    fn composer_json_may_have_a_mark_and_be_long() {
        let filler = "x".repeat(2 << 20);
        let json = format!(
            "\u{feff}{{\"description\": \"{filler}\", \"require\": {{\"slim/slim\": \"*\"}}}}"
        );
        let sample = Sample::new("long", &[("composer.json", &json), ("public/index.php", "")]);
        let project = Project::of(&sample.0).expect("a project");
        assert_eq!(project.framework, Framework::Slim);
    }

    #[test]
    fn slim_project_needs_a_script_of_any_name() {
        let json = r#"{"require": {"slim/slim": "*"}}"#;
        let app = [("composer.json", json), ("public/app.php", "<?php\nSamovar\\checkpoint();")];
        let sample = Sample::new("slim-app", &app);
        let project = Project::of(&sample.0).expect("a project");
        assert_eq!(
            (&*project.root, project.model),
            (Path::new("public/app.php"), Model::Checkpoint)
        );
        let sample = Sample::new("slim-none", &[("composer.json", json), ("src/a.php", "")]);
        let error = format!("{:#}", Project::of(&sample.0).unwrap_err());
        assert!(error.contains("a Slim application in"), "{error}");
        assert!(error.contains("hint: write or install its front controller"), "{error}");
    }

    #[test]
    fn front_controller_selects_model() {
        for (index, expected) in [
            ("<?php\nSamovar\\checkpoint();", Model::Checkpoint),
            ("<?php\nuse function Samovar\\serve;", Model::Resident),
            ("<?php\nfrankenphp_handle_request($handler);", Model::FrankenPhp),
            (
                "<?php\n$_SERVER['APP_RUNTIME'] = 'Samovar\\Runtime\\SymfonyRuntime';",
                Model::Checkpoint,
            ),
            ("<?php\necho 1;", Model::Script),
        ] {
            assert_eq!(model(index), expected, "{index}");
        }
    }

    #[test]
    fn private_files_are_listed_if_project_folder_is_public() {
        let json = r#"{"require": {"ext-intl": "*", "ext-PDO_mysql": "*", "php": ">=8.2"}}"#;
        let files = [("composer.json", json), ("index.php", ""), ("vendor/autoload.php", "")];
        let sample = Sample::new("private", &files);
        let project = Project::of(&sample.0).expect("a project");
        assert_eq!(project.private, ["vendor", "composer.json"]);
        assert_eq!(project.extensions, ["intl", "pdo_mysql"]);
    }
}
