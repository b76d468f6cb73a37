//! The PHP under test: the one that the worker is built for, from `PHP_CONFIG` as in its build.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

static CONFIG: LazyLock<String> =
    LazyLock::new(|| std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".to_owned()));

/// Output of its `php-config` for that flag.
pub fn config(flag: &str) -> String {
    let config = &*CONFIG;
    let output = Command::new(config).arg(flag).output();
    let output = output.unwrap_or_else(|e| panic!("cannot run `{config}`: {e}"));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let version = config("--version");
    let mut parts = version.split('.');
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => format!("{major}.{minor}"),
        _ => panic!("`{} --version` answered `{version}`, not a version", &*CONFIG),
    }
});

/// Major and minor version, such as `8.2`.
pub fn version() -> &'static str {
    &VERSION
}

/// Value of that PHP's `E_ALL`: php-fpm's settings do not know constants.
pub fn all_errors() -> u32 {
    static ALL: LazyLock<u32> = LazyLock::new(|| {
        let output = Command::new(program("php")).args(["-n", "-r", "echo E_ALL;"]).output();
        let output = output.expect("PHP's command line is there");
        String::from_utf8_lossy(&output.stdout).parse().expect("`E_ALL` is a number")
    });
    *ALL
}

/// `E_ALL & ~E_DEPRECATED`, for features that a later version deprecates.
pub fn all_but_deprecations() -> String {
    const E_DEPRECATED: u32 = 8192;
    (all_errors() & !E_DEPRECATED).to_string()
}

/// A program of that PHP: the one next to a `php-config` given with its folder, else the one with
/// Debian's name: `php8.2`, `php-fpm8.2`.
pub fn program(name: &str) -> String {
    let beside = Path::new(&*CONFIG).parent().filter(|folder| !folder.as_os_str().is_empty());
    let beside = beside.map(|folder| folder.join(name)).filter(|program| program.is_file());
    let debian = || format!("{name}{}", version());
    beside.map_or_else(debian, |program| program.to_string_lossy().into_owned())
}
