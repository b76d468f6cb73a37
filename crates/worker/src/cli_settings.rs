//! PHP's settings of the command line, for `samovar test` and `samovar lint`.

use crate::boundary;
use std::path::Path;

/// Folder of Debian's configuration, by PHP version.
const DEBIAN: &str = "/etc/php";
/// Variables that name PHP's configuration.
const INI_VARIABLES: [&str; 2] = ["PHPRC", "PHP_INI_SCAN_DIR"];

/// Makes PHP read the files that the command `php` reads. Only Debian has separate ones. Returns
/// the variables that were set for it, which [`remove`] removes after PHP's start.
pub(crate) fn use_files_of_cli(php_ini: Option<&Path>) -> Vec<&'static str> {
    let built = boundary::php_built_for();
    let folder = Path::new(DEBIAN).join(minor(&built)).join("cli");
    let mut set = Vec::new();
    for (name, value) in INI_VARIABLES.into_iter().zip([folder.clone(), folder.join("conf.d")]) {
        let is_given = std::env::var_os(name).is_some() || (name == "PHPRC" && php_ini.is_some());
        if !is_given && value.is_dir() {
            // SAFETY: the process has one thread.
            unsafe { std::env::set_var(name, value) };
            set.push(name);
        }
    }
    set
}

/// Removes the variables again: programs that PHP starts do not get them.
pub(crate) fn remove(variables: &[&str]) {
    for variable in variables {
        // SAFETY: the process has one thread.
        unsafe { std::env::remove_var(variable) };
    }
}

/// Fails if libphp is not the version that this program was built for.
pub(crate) fn check_version() -> Result<(), String> {
    let (loaded, built) = (boundary::php_version(), boundary::php_built_for());
    if loaded == built {
        return Ok(());
    }
    Err(format!(
        "built for PHP {built}, but libphp is {loaded}\nhint: rebuild samovar-php for this PHP"
    ))
}

/// Returns `8.2` for `8.2.31`.
pub(crate) fn minor(version: &str) -> String {
    version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}
