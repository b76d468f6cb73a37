//! Selects the worker binary: the named one, or one of the installed ones.
//!
//! A package installs one worker per PHP version, `samovar-php8.2`, into `libexec/samovar`. A build
//! from source has one, `samovar-php`, next to `samovar`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::schema::binary::PhpBinary;
use crate::schema::settings::Settings;

/// Name of a worker that is installed without its PHP version, and the start of the other names.
const NAME: &str = "samovar-php";
/// Folder of the packages' workers, from the folder of `samovar`.
const PACKAGED: &str = "../libexec/samovar";
/// PHP version of the packages named in hints if this machine has no PHP.
const USUAL_VERSION: (u32, u32) = (8, 2);

/// A PHP version: major and minor.
type Version = (u32, u32);

/// Returns the worker binary that the settings select. It exists and is executable.
///
/// Without a selection it is `samovar-php`. If that does not exist, it is the worker for the
/// version of the command `php`, else the one for the newest version.
///
/// # Errors
/// The binary was not found. The error names the searched folders and a hint.
pub fn locate_php(settings: &Settings) -> Result<PathBuf, Problem> {
    locate_worker(settings.php_binary.as_ref())
}

/// Returns the worker binary of a selection. It exists and is executable.
///
/// # Errors
/// As for [`locate_php`].
pub fn locate_worker(selection: Option<&PhpBinary>) -> Result<PathBuf, Problem> {
    let own = std::env::current_exe().ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = Folders::new(own.as_deref().and_then(Path::parent), &path);
    folders.locate(selection)
}

/// Returns all installed worker binaries: the one without a version in its name, and those of the
/// versions, the oldest first.
///
/// # Errors
/// There is none.
pub fn locate_workers() -> Result<Vec<PathBuf>, Problem> {
    let own = std::env::current_exe().ok();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Folders::new(own.as_deref().and_then(Path::parent), &path).all()
}

/// The folders to search, in this order.
struct Folders {
    workers: Vec<PathBuf>,
    /// The absolute folders of `$PATH`.
    path: Vec<PathBuf>,
}

impl Folders {
    fn new(own: Option<&Path>, path: &OsStr) -> Folders {
        let path: Vec<_> =
            std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
        let packaged = own.map(|own| own.join(PACKAGED));
        // A folder without `..` is easier to read in a message.
        let packaged = packaged.map(|folder| folder.canonicalize().unwrap_or(folder));
        let workers =
            own.map(Path::to_owned).into_iter().chain(packaged).chain(path.iter().cloned());
        Folders { workers: workers.collect(), path }
    }

    fn locate(&self, php: Option<&PhpBinary>) -> Result<PathBuf, Problem> {
        match php {
            Some(PhpBinary::Path(named)) => named_binary(named),
            Some(PhpBinary::Version(version)) => {
                let name = format!("{NAME}{version}");
                self.program(&name).ok_or_else(|| self.missing(&name, Some(version)))
            }
            None => {
                let versions = self.versions();
                let of_php = || versions.get(&self.default_php()?).cloned();
                let newest = || versions.values().next_back().cloned();
                let found = self.program(NAME).or_else(of_php).or_else(newest);
                found.ok_or_else(|| self.missing(NAME, None))
            }
        }
    }

    fn all(&self) -> Result<Vec<PathBuf>, Problem> {
        let found: Vec<_> =
            self.program(NAME).into_iter().chain(self.versions().into_values()).collect();
        if found.is_empty() { Err(self.missing(NAME, None)) } else { Ok(found) }
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        self.workers.iter().map(|folder| folder.join(name)).find(|file| is_program(file))
    }

    /// Returns the installed workers with a version in their names.
    fn versions(&self) -> BTreeMap<Version, PathBuf> {
        let mut found = BTreeMap::new();
        for folder in &self.workers {
            for entry in folder.read_dir().into_iter().flatten().flatten() {
                let name = entry.file_name();
                let version = name.to_str().and_then(|name| version(name, NAME));
                if let Some(version) = version.filter(|_| is_program(&entry.path())) {
                    found.entry(version).or_insert_with(|| entry.path());
                }
            }
        }
        found
    }

    /// Returns the version of the command `php`: on Debian it is a link to `php8.2`.
    fn default_php(&self) -> Option<Version> {
        let file = self.path.iter().map(|folder| folder.join("php")).find(|file| is_program(file));
        version(file?.canonicalize().ok()?.file_name()?.to_str()?, "php")
    }

    fn missing(&self, name: &str, wanted: Option<&str>) -> Problem {
        let looked: Vec<_> = self.workers.iter().map(|f| format!("`{}`", f.display())).collect();
        let installed: Vec<_> =
            self.versions().keys().map(|(major, minor)| format!("{major}.{minor}")).collect();
        let (major, minor) = self.default_php().unwrap_or(USUAL_VERSION);
        let usual = format!("{major}.{minor}");
        let package = format!("{NAME}{}", wanted.unwrap_or(&usual));
        let installed = if installed.is_empty() {
            String::new()
        } else {
            format!("; installed: {}", installed.join(", "))
        };
        Problem::new(
            format!("cannot find the worker `{name}`; looked in {}", looked.join(", ")),
            format!(
                "install the package with `apt install {package}`, build it with `cargo build -p \
                 samovar-php`, or name a worker with --php-binary{installed}"
            ),
        )
    }
}

/// Returns the version in a name such as `php8.2`.
fn version(name: &str, before: &str) -> Option<Version> {
    let (major, minor) = name.strip_prefix(before)?.split_once('.')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let parse = |text: &str| text.parse().ok().filter(|_| is_number(text));
    Some((parse(major)?, parse(minor)?))
}

fn named_binary(file: &Path) -> Result<PathBuf, Problem> {
    if is_program(file) {
        return Ok(file.to_owned());
    }
    let wrong = if file.exists() { "is not an executable file" } else { "does not exist" };
    Err(Problem::new(
        format!("the worker `{}` {wrong}", file.display()),
        "--php-binary takes the path of a worker binary, or a version such as 8.2",
    ))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn program(file: &Path) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    #[test]
    fn worker_binary_is_searched_next_to_samovar_then_in_package_then_on_path() {
        let folder = tempfile::tempdir().unwrap();
        let (own, bin) = (folder.path().join("own"), folder.path().join("bin"));
        program(&bin.join("samovar-php"));
        program(&bin.join("samovar-php8.2"));
        fs::create_dir_all(&own).unwrap();
        let look = |php: Option<&PhpBinary>| Folders::new(Some(&own), bin.as_os_str()).locate(php);
        let version = |text: &str| PhpBinary::Version(text.to_owned());

        assert_eq!(look(None), Ok(bin.join("samovar-php")));
        assert_eq!(look(Some(&version("8.2"))), Ok(bin.join("samovar-php8.2")));
        let packaged = folder.path().join("libexec/samovar/samovar-php8.2");
        program(&packaged);
        assert_eq!(look(Some(&version("8.2"))), Ok(packaged.canonicalize().unwrap()));
        program(&own.join("samovar-php"));
        assert_eq!(look(None), Ok(own.join("samovar-php")));

        let error = look(Some(&version("7.4"))).unwrap_err();
        let packaged = packaged.canonicalize().unwrap();
        let packaged = packaged.parent().unwrap().display();
        let looked = format!("`{}`, `{packaged}`, `{}`", own.display(), bin.display());
        let message = format!("cannot find the worker `samovar-php7.4`; looked in {looked}");
        assert_eq!(error.message, message);
        let hint = error.hint.clone();
        assert!(
            hint.starts_with("install the package with `apt install samovar-php7.4`"),
            "{hint}"
        );
        assert!(hint.ends_with("--php-binary; installed: 8.2"), "{hint}");
    }

    #[test]
    fn worker_of_php_command_is_preferred_to_newest_one() {
        let folder = tempfile::tempdir().unwrap();
        let (own, bin) = (folder.path().join("own"), folder.path().join("bin"));
        fs::create_dir_all(&own).unwrap();
        let look = || Folders::new(Some(&own), bin.as_os_str()).locate(None);
        let hint = look().unwrap_err().hint;
        assert!(hint.contains("`apt install samovar-php8.2`"), "{hint}");
        let hint = Folders::new(Some(&own), bin.as_os_str()).all().unwrap_err().hint;
        assert!(hint.contains("`apt install samovar-php8.2`"), "{hint}");

        program(&bin.join("php8.4"));
        std::os::unix::fs::symlink("php8.4", bin.join("php")).unwrap();
        let hint = look().unwrap_err().hint;
        assert!(hint.contains("`apt install samovar-php8.4`"), "{hint}");

        for name in ["samovar-php8.2", "samovar-php8.10", "samovar-php8.4", "samovar-phpx.y"] {
            program(&own.join(name));
        }
        assert_eq!(look(), Ok(own.join("samovar-php8.4")));
        let all = || Folders::new(Some(&own), bin.as_os_str()).all().unwrap();
        let paths = |names: &[&str]| names.iter().map(|name| own.join(name)).collect::<Vec<_>>();
        let versions = ["samovar-php8.2", "samovar-php8.4", "samovar-php8.10"];
        assert_eq!(all(), paths(&versions));
        program(&own.join("samovar-php"));
        assert_eq!(all(), [paths(&["samovar-php"]), paths(&versions)].concat());
        fs::remove_file(own.join("samovar-php")).unwrap();
        fs::remove_file(own.join("samovar-php8.4")).unwrap();
        assert_eq!(look(), Ok(own.join("samovar-php8.10")));
    }

    #[test]
    fn named_binary_must_be_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker");
        let look =
            || Folders::new(None, OsStr::new("")).locate(Some(&PhpBinary::Path(file.clone())));
        let message = |wrong| format!("the worker `{}` {wrong}", file.display());

        assert_eq!(look().unwrap_err().message, message("does not exist"));
        fs::write(&file, "").unwrap();
        assert_eq!(look().unwrap_err().message, message("is not an executable file"));
        program(&file);
        assert_eq!(look(), Ok(file.clone()));
    }
}
