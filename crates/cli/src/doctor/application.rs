//! Reads the folder of an application: Composer's autoloader and `.env` files. The files are only
//! searched for words, never run.

use samovar_doctor::{ApplicationFacts, ComposerFacts};
use samovar_wire::PhpFacts;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Maximum bytes of a file that is read. A class map of 100,000 classes has 15 MB.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// Number of folders above the document root that may be the project's.
const PARENTS_MAX: usize = 4;
/// Files and folders of a project.
const PROJECT: [&str; 5] =
    ["composer.json", "vendor/composer", "vendor/autoload.php", "bin/console", "artisan"];
/// Variables that are read from `.env` files.
const VARIABLES: [&str; 2] = ["APP_ENV", "APP_DEBUG"];
/// Maximum number of packages in a list.
const PACKAGES_MAX: usize = 200;

/// Returns the facts about the application of a PHP; `None` if its root is unknown.
pub(super) fn of_php(php: &PhpFacts) -> Option<ApplicationFacts> {
    if php.root.is_empty() {
        return None;
    }
    let root = Path::new(&php.root);
    let has_root = match root.metadata() {
        Ok(_) => Some(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(false),
        Err(_) => None,
    };
    let script = Path::new(&php.script).parent().filter(|_| !php.script.is_empty());
    let project = project(script.unwrap_or(root)).or_else(|| project(root));
    let folder = project.clone().unwrap_or_else(|| root.to_owned());
    let set = php.environment.as_ref().and_then(|all| all.get("APP_ENV"));
    Some(ApplicationFacts {
        pool: php.pool.clone(),
        folder: folder.display().to_string(),
        root: php.root.clone(),
        has_root,
        composer: composer(&folder),
        variables: variables(&folder, set.map(String::as_str)),
    })
}

/// Returns the nearest folder that is a project's.
fn project(below: &Path) -> Option<PathBuf> {
    let is_project = |folder: &&Path| PROJECT.iter().any(|name| folder.join(name).exists());
    below.ancestors().take(PARENTS_MAX).find(is_project).map(Path::to_owned)
}

/// Returns a regular file's text, up to the limit; `None` if it cannot be read.
fn read(path: &Path) -> Option<String> {
    // A pipe would wait for a writer.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn composer(project: &Path) -> Option<ComposerFacts> {
    let folder = project.join("vendor/composer");
    let real = read(&folder.join("autoload_real.php"))?;
    let count = |name: &str| {
        let text = read(&folder.join(name)).unwrap_or_default();
        text.lines().filter(|line| line.contains(" => ")).count() as u64
    };
    let is_authoritative =
        real.contains("setClassMapAuthoritative(true)") || real.contains("setApcuPrefix(");
    Some(ComposerFacts {
        is_authoritative,
        classes: count("autoload_classmap.php"),
        files: count("autoload_files.php"),
        dev_packages: dev_packages(&read(&folder.join("installed.json")).unwrap_or_default()),
        folder: folder.display().to_string(),
    })
}

/// Returns the packages for development of `installed.json`, if they are installed.
fn dev_packages(text: &str) -> Vec<String> {
    let Ok(installed) = serde_json::from_str::<serde_json::Value>(text) else { return Vec::new() };
    if installed["dev"] != true {
        return Vec::new();
    }
    let names = installed["dev-package-names"].as_array().into_iter().flatten();
    names.filter_map(|name| name.as_str()).take(PACKAGES_MAX).map(str::to_owned).collect()
}

/// Returns the variables of the `.env` files, in the order in which Symfony and Laravel read them.
/// `name` is `APP_ENV` of the environment.
fn variables(project: &Path, name: Option<&str>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // Laravel then reads no .env file, but a file of values.
    if project.join("bootstrap/cache/config.php").is_file() {
        return found;
    }
    if let Some(dumped) = read(&project.join(".env.local.php")) {
        add(&mut found, &dumped.replace("' => ", "=").replace([',', ' ', '"'], ""), "'");
        return found;
    }
    for file in [".env", ".env.local"] {
        add(&mut found, &read(&project.join(file)).unwrap_or_default(), "");
    }
    let name = name.map(str::to_owned).or_else(|| found.get("APP_ENV").cloned());
    let is_plain =
        |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some(name) = name.filter(is_plain) {
        for file in [format!(".env.{name}"), format!(".env.{name}.local")] {
            add(&mut found, &read(&project.join(file)).unwrap_or_default(), "");
        }
    }
    found
}

/// Adds the variables of one file. Names begin after `quote`.
fn add(to: &mut BTreeMap<String, String>, text: &str, quote: &str) {
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.strip_prefix(quote).and_then(|line| line.split_once('='))
        else {
            continue;
        };
        if let Some(name) = VARIABLES.iter().find(|known| **known == name.trim()) {
            let value = value.split(" #").next().unwrap_or_default();
            let value = value.trim().trim_matches(['"', '\'']);
            to.insert((*name).to_owned(), value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{add, composer, dev_packages, of_php, variables};
    use samovar_wire::PhpFacts;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("samovar-doctor-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("our own folder");
            fs::write(file, text).expect("our own file");
        }
        folder
    }

    #[test]
    fn later_files_override_earlier_ones() {
        let folder = folder(
            "env",
            &[
                (".env", "# APP_DEBUG=1\nAPP_ENV=\"dev\" # default\nSECRET=x\n"),
                (".env.local", "export APP_ENV=prod\nAPP_DEBUG=1\n"),
                (".env.prod", "APP_DEBUG='0'\n"),
            ],
        );
        let found = |name| {
            let all = variables(&folder, name);
            assert!(!all.contains_key("SECRET"));
            (all["APP_ENV"].clone(), all["APP_DEBUG"].clone())
        };
        assert_eq!(found(None), ("prod".to_owned(), "0".to_owned()));
        assert_eq!(found(Some("../x")), ("prod".to_owned(), "1".to_owned()), "no other folder");
        fs::write(folder.join(".env.local.php"), "<?php return [\n  'APP_ENV' => 'test',\n];")
            .expect("our own file");
        let dumped = variables(&folder, None);
        assert_eq!(dumped, BTreeMap::from([("APP_ENV".to_owned(), "test".to_owned())]));
        fs::remove_dir_all(&folder).expect("our own folder");
    }

    #[test]
    fn autoloader_of_composer_is_read() {
        let names = r#"{"packages": [], "dev": true, "dev-package-names": ["a/debug", 7]}"#;
        assert_eq!(dev_packages(names), ["a/debug"]);
        for none in ["", "[]", r#"{"dev": false, "dev-package-names": ["a/debug"]}"#] {
            assert!(dev_packages(none).is_empty(), "{none}");
        }
        let folder = folder(
            "composer",
            &[
                ("vendor/composer/autoload_real.php", "$loader->register(true);"),
                ("vendor/composer/autoload_classmap.php", "[\n 'A' => $b,\n 'C' => $d,\n];"),
                ("vendor/composer/autoload_files.php", "[\n 'x' => $vendorDir . '/a.php',\n];"),
                ("public/index.php", ""),
            ],
        );
        let found = composer(&folder).expect("Composer");
        assert_eq!((found.is_authoritative, found.classes, found.files), (false, 2, 1));
        fs::write(
            folder.join("vendor/composer/autoload_real.php"),
            "$loader->setClassMapAuthoritative(true);",
        )
        .expect("our own file");
        assert!(composer(&folder).expect("Composer").is_authoritative);
        let root = folder.join("public").display().to_string();
        let php = PhpFacts { root: root.clone(), ..PhpFacts::default() };
        let found = of_php(&php).expect("facts");
        assert_eq!((found.has_root, found.folder), (Some(true), folder.display().to_string()));
        fs::remove_dir_all(&folder).expect("our own folder");
        assert_eq!(of_php(&php).expect("facts").has_root, Some(false));
        assert!(of_php(&PhpFacts::default()).is_none(), "an unknown root");
    }

    #[test]
    fn hostile_lines_are_skipped() {
        let mut found = BTreeMap::new();
        add(&mut found, "=\nAPP_ENV\n APP_ENV = '' \nAPP_ENVX=1\n\u{0}=\u{0}\n", "");
        assert_eq!(found, BTreeMap::from([("APP_ENV".to_owned(), String::new())]));
    }
}
