//! The execution model that fits a project, and the next commands.

use super::project::{Framework, Model, Project};
use std::fmt::Write as _;
use std::path::Path;

/// Debian's package of an extension, if it is not part of every PHP.
const PACKAGES: [(&str, &str); 24] = [
    ("amqp", "amqp"),
    ("apcu", "apcu"),
    ("bcmath", "bcmath"),
    ("curl", "curl"),
    ("dom", "xml"),
    ("gd", "gd"),
    ("gmp", "gmp"),
    ("imagick", "imagick"),
    ("imap", "imap"),
    ("intl", "intl"),
    ("ldap", "ldap"),
    ("mbstring", "mbstring"),
    ("mongodb", "mongodb"),
    ("mysqli", "mysql"),
    ("pdo_mysql", "mysql"),
    ("pdo_pgsql", "pgsql"),
    ("pdo_sqlite", "sqlite3"),
    ("pgsql", "pgsql"),
    ("redis", "redis"),
    ("simplexml", "xml"),
    ("soap", "soap"),
    ("xml", "xml"),
    ("xsl", "xml"),
    ("zip", "zip"),
];

/// Returns the text that follows the writing of `file`.
pub(super) fn text(project: &Project, folder: &Path, file: &Path) -> String {
    let mut out = format!(
        "wrote {}: {} ({}), root {}\n\n",
        file.display(),
        project.framework.title(),
        project.evidence,
        project.root.display()
    );
    let (model, why) = fitting(project);
    // Writing to a string cannot fail.
    let _ = write!(out, "model: {model}\n{why}\n\nnext:\n");
    let packages = packages(&project.extensions);
    if !packages.is_empty() {
        let _ = writeln!(out, "  apt-get install {}", packages.join(" "));
    }
    if folder != Path::new(".") {
        let _ = writeln!(out, "  cd {}", shell_word(&folder.to_string_lossy()));
    }
    out.push_str("  samovar check\n");
    let environment = environment(project);
    let _ = writeln!(out, "  {environment}samovar serve");
    if project.model == Model::Script && project.framework != Framework::Scripts {
        out.push_str("  samovar compare --urls /    (compares the models, after the change)\n");
    }
    let _ = writeln!(out, "guide: docs/start/{}", guide(project.framework));
    out
}

/// Quotes a path for a shell, if that is necessary.
fn shell_word(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/-_.+@%,:=".contains(c);
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', "'\\''")) }
}

/// Returns the model, and the reason in lines of at most 100 characters.
fn fitting(project: &Project) -> (&'static str, &'static str) {
    match (project.model, project.framework) {
        (Model::Checkpoint, _) => (
            "checkpoint",
            "The front controller marks the end of the boot. Each request starts from that state.",
        ),
        (Model::Resident, _) => (
            "resident",
            "The front controller calls Samovar\\serve(). Its handler runs for each request, and\n\
             its state stays.",
        ),
        (Model::FrankenPhp, _) => (
            "resident",
            "The front controller is a worker script of FrankenPHP, and runs unchanged. With\n\
             rollback_every = 1 no state stays between requests.",
        ),
        (_, Framework::Symfony) if project.has_runtime => (
            "checkpoint",
            "samovar/runtime boots the kernel once. Each request starts from that state, so\n\
             services need no reset.",
        ),
        (_, Framework::Symfony | Framework::Laravel) => (
            "script now, checkpoint recommended",
            "It runs unchanged, as under php-fpm. The boot of the framework takes most of the\n\
             time of a request, and the checkpoint model boots once: see the guide, after\n\
             composer require samovar/runtime.",
        ),
        (_, Framework::Slim | Framework::FrontController) => (
            "script now, checkpoint recommended",
            "It runs unchanged, as under php-fpm. With a call of Samovar\\checkpoint() below the\n\
             boot in index.php, the code above it runs once.",
        ),
        (_, Framework::WordPress) => (
            "script",
            "Plugins and themes expect a new state for each request, as under php-fpm. The guide\n\
             shows when a checkpoint is safe.",
        ),
        (_, Framework::Scripts) => (
            "script",
            "Each script runs from its first line for each request, as under php-fpm. There is no\n\
             common boot that a checkpoint could follow.",
        ),
    }
}

/// Returns the variables with which the server is started.
fn environment(project: &Project) -> &'static str {
    match (project.framework, project.has_runtime, project.model) {
        (Framework::Symfony, true, Model::Script) => {
            "APP_ENV=prod APP_RUNTIME='Samovar\\Runtime\\SymfonyRuntime' "
        }
        (Framework::Symfony, ..) => "APP_ENV=prod ",
        _ => "",
    }
}

fn guide(framework: Framework) -> &'static str {
    match framework {
        Framework::Symfony => "symfony.md",
        Framework::Laravel => "laravel.md",
        Framework::Slim => "slim.md",
        Framework::WordPress => "wordpress.md",
        Framework::FrontController | Framework::Scripts => "plain-php.md",
    }
}

fn packages(extensions: &[String]) -> Vec<String> {
    let package = |extension: &String| {
        let found = PACKAGES.iter().find(|(name, _)| name == extension);
        found.map(|(_, package)| format!("php-{package}"))
    };
    let mut packages: Vec<_> = extensions.iter().filter_map(package).collect();
    packages.sort();
    packages.dedup();
    packages
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn folder_is_quoted_for_a_shell() {
        for (path, expected) in [
            ("/srv/shop", "/srv/shop"),
            ("my shop", "'my shop'"),
            ("it's", "'it'\\''s'"),
            ("-shop", "./-shop"),
            ("$HOME", "'$HOME'"),
            ("~", "'~'"),
        ] {
            assert_eq!(shell_word(path), expected);
        }
    }

    #[test]
    fn advice_names_model_packages_and_commands() {
        let json = r#"{"require": {"symfony/framework-bundle": "*", "samovar/runtime": "*",
            "ext-intl": "*", "ext-dom": "*", "ext-xml": "*", "ext-json": "*"}}"#;
        let sample =
            Sample::new("advice", &[("composer.json", json), ("public/index.php", "<?php")]);
        let project = Project::of(&sample.0).expect("a project");
        let text = text(&project, Path::new("."), Path::new("samovar.toml"));
        for part in [
            "wrote samovar.toml: a Symfony application (composer.json requires \
             symfony/framework-bundle), root public\n",
            "model: checkpoint\n",
            "  apt-get install php-intl php-xml\n",
            "  APP_ENV=prod APP_RUNTIME='Samovar\\Runtime\\SymfonyRuntime' samovar serve\n",
            "guide: docs/start/symfony.md\n",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }
}
