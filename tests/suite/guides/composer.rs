//! `composer require` without a registry: the libraries come from Debian's packages.
//!
//! The result equals Composer's: `vendor/autoload.php`, which also loads the application's own
//! classes according to `autoload.psr-4` and `autoload.files` in its composer.json. If
//! symfony/runtime is named, `vendor/autoload_runtime.php` is created from its template.

use crate::guides::walk::{Outcome, Walk};
use samovar_testkit::workspace;
use std::fmt::Write as _;
use std::path::Path;

/// Debian's loaders, below `/usr/share/php`. Paths that begin with a dot are in this workspace.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("samovar/runtime", &["./php/autoload.php"]),
    ("symfony/runtime", &["Symfony/Component/Runtime/autoload.php"]),
    ("doctrine/dbal", &["Doctrine/DBAL/autoload.php"]),
    ("laravel/framework", &["Illuminate/autoload.php"]),
    ("nyholm/psr7", &["Nyholm/Psr7/autoload.php"]),
    // Debian has no package of these interfaces; the file declares them as in PSR-15.
    ("psr/http-server-handler", &["Psr/Http/Message/autoload.php", "./php/tests/fakes/psr15.php"]),
];
const DEBIAN: &str = "/usr/share/php";
const RUNTIME_TEMPLATE: &str =
    "/usr/share/php/Symfony/Component/Runtime/Internal/autoload_runtime.template";

/// Adds libraries to the application in the walk's folder.
pub(crate) fn require(walk: &mut Walk, names: &str) -> Result<Outcome, String> {
    require_in(&walk.folder, names)?;
    Ok(Outcome::good(""))
}

/// Adds libraries to the application in `folder`.
pub(crate) fn require_in(folder: &Path, names: &str) -> Result<(), String> {
    let mut files = Vec::new();
    for name in names.split_whitespace() {
        let known = LIBRARIES.iter().find(|(known, _)| *known == name);
        let (_, loaders) = known.ok_or_else(|| format!("composer.rs does not know `{name}`"))?;
        files.extend(loaders.iter().map(|loader| match loader.strip_prefix("./") {
            Some(own) => workspace().join(own).display().to_string(),
            None => format!("{DEBIAN}/{loader}"),
        }));
    }
    let vendor = folder.join("vendor");
    std::fs::create_dir_all(&vendor).map_err(|e| format!("`{}`: {e}", vendor.display()))?;
    let autoload = vendor.join("autoload.php");
    let mut text = match std::fs::read_to_string(&autoload) {
        Ok(text) => text,
        Err(_) => format!("<?php\n\n{}", own_classes(folder)?),
    };
    for file in files {
        let line = format!("require_once '{file}';\n");
        if !Path::new(&file).is_file() {
            return Err(format!("`{file}` is missing: scripts/packages-test.txt"));
        }
        if !text.contains(&line) {
            text.push_str(&line);
        }
    }
    std::fs::write(&autoload, text).map_err(|e| format!("`{}`: {e}", autoload.display()))?;
    if names.contains("symfony/runtime") {
        write_runtime(&vendor)?;
    }
    Ok(())
}

/// Loader code for the application's own classes and files.
fn own_classes(folder: &Path) -> Result<String, String> {
    let Ok(json) = std::fs::read_to_string(folder.join("composer.json")) else {
        return Ok(String::new());
    };
    let json: serde_json::Value =
        serde_json::from_str(&json).map_err(|e| format!("composer.json: {e}"))?;
    let mut text = String::new();
    for file in json["autoload"]["files"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "require_once dirname(__DIR__) . '/' . {file};");
    }
    for (prefix, source) in json["autoload"]["psr-4"].as_object().into_iter().flatten() {
        let prefix = format!("'{}'", prefix.replace('\\', "\\\\"));
        let _ = writeln!(
            text,
            "spl_autoload_register(static function (string $class): void {{
    $name = strtr(substr($class, strlen({prefix})), '\\\\', '/');
    $file = dirname(__DIR__) . '/' . {source} . \"$name.php\";
    if (str_starts_with($class, {prefix}) && is_file($file)) {{
        require $file;
    }}
}});"
        );
    }
    Ok(text)
}

fn write_runtime(vendor: &Path) -> Result<(), String> {
    let template = std::fs::read_to_string(RUNTIME_TEMPLATE)
        .map_err(|e| format!("`{RUNTIME_TEMPLATE}`: {e}"))?;
    let class = "Symfony\\\\Component\\\\Runtime\\\\SymfonyRuntime";
    let text = template
        .replace("%runtime_class%", &format!("'{class}'"))
        .replace("%runtime_options%", "['project_dir' => dirname(__DIR__)]");
    let file = vendor.join("autoload_runtime.php");
    std::fs::write(&file, text).map_err(|e| format!("`{}`: {e}", file.display()))
}
