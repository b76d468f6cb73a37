//! Selects the worker binary: the named one, or `samovar-php` from the usual folders.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::schema::binary::PhpBinary;
use crate::schema::settings::Settings;

/// Returns the worker binary that the settings select. It exists and is executable.
///
/// # Errors
/// The binary was not found. The error names the searched folders and a hint.
pub fn locate_php(settings: &Settings) -> Result<PathBuf, Problem> {
    let own = std::env::current_exe().ok();
    let own_folder = own.as_deref().and_then(Path::parent);
    let path = std::env::var_os("PATH").unwrap_or_default();
    locate(settings.php_binary.as_ref(), own_folder, &path)
}

fn locate(
    php: Option<&PhpBinary>,
    own_folder: Option<&Path>,
    path: &OsStr,
) -> Result<PathBuf, Problem> {
    let name = match php {
        Some(PhpBinary::Path(named)) => return named_binary(named),
        Some(PhpBinary::Version(version)) => format!("samovar-php{version}"),
        None => "samovar-php".to_owned(),
    };
    let on_path = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let folders: Vec<PathBuf> = own_folder.map(Path::to_owned).into_iter().chain(on_path).collect();
    let found = folders.iter().map(|folder| folder.join(&name)).find(|file| is_program(file));
    found.ok_or_else(|| {
        let looked: Vec<_> = folders.iter().map(|f| format!("`{}`", f.display())).collect();
        Problem::new(
            format!("cannot find the worker `{name}`; looked in {}", looked.join(", ")),
            "build it for this PHP with `cargo build -p samovar-php`, or name it with --php-binary \
             PATH",
        )
    })
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
    fn worker_binary_is_searched_next_to_samovar_then_on_path() {
        let folder = tempfile::tempdir().unwrap();
        let (own, bin) = (folder.path().join("own"), folder.path().join("bin"));
        program(&bin.join("samovar-php"));
        program(&bin.join("samovar-php8.2"));
        let look = |php: Option<&PhpBinary>| locate(php, Some(&own), bin.as_os_str());
        let version = |text: &str| PhpBinary::Version(text.to_owned());

        assert_eq!(look(None), Ok(bin.join("samovar-php")));
        assert_eq!(look(Some(&version("8.2"))), Ok(bin.join("samovar-php8.2")));
        program(&own.join("samovar-php"));
        assert_eq!(look(None), Ok(own.join("samovar-php")));

        let error = look(Some(&version("7.4"))).unwrap_err();
        let looked = format!("`{}`, `{}`", own.display(), bin.display());
        let message = format!("cannot find the worker `samovar-php7.4`; looked in {looked}");
        assert_eq!(error.message, message);
    }

    #[test]
    fn named_binary_must_be_a_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("worker");
        let look = || locate(Some(&PhpBinary::Path(file.clone())), None, OsStr::new(""));
        let message = |wrong| format!("the worker `{}` {wrong}", file.display());

        assert_eq!(look().unwrap_err().message, message("does not exist"));
        fs::write(&file, "").unwrap();
        assert_eq!(look().unwrap_err().message, message("is not an executable file"));
        program(&file);
        assert_eq!(look(), Ok(file.clone()));
    }
}
