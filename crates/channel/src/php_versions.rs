//! PHP versions that the worker can be built for. crates/worker/build.rs includes this file.

/// The oldest and the newest version, as major and minor number.
pub const PHP_OLDEST: (u32, u32) = (8, 2);
/// A newer PHP has other structures in its memory, which csrc/compat.h does not know.
pub const PHP_NEWEST: (u32, u32) = (8, 5);

/// Returns why the worker cannot be built for `version` (as `php-config --version` prints it), with
/// a hint; `None` if it can.
pub fn php_version_problem(version: &str) -> Option<String> {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return Some(format!(
            "`{version}` is no version of PHP\nhint: set PHP_CONFIG to a php-config"
        ));
    };
    let found = (major, minor);
    let hint = if found < PHP_OLDEST {
        "build for a newer PHP: PHP_CONFIG=php-config8.4"
    } else if found > PHP_NEWEST {
        "update Samovar, or build for an older PHP: PHP_CONFIG=php-config8.4"
    } else {
        return None;
    };
    let ((from, from_minor), (to, to_minor)) = (PHP_OLDEST, PHP_NEWEST);
    Some(format!(
        "cannot build for PHP {version}: this Samovar supports PHP {from}.{from_minor} to \
         {to}.{to_minor}\nhint: {hint}"
    ))
}

#[cfg(test)]
mod tests {
    use super::php_version_problem;

    #[test]
    fn version_outside_range_is_refused_with_all_versions() {
        for (version, expected) in [
            ("8.2.36", None),
            ("8.3.0-dev", None),
            ("8.4.27", None),
            ("8.5.7", None),
            (
                "8.6.0RC3",
                Some("cannot build for PHP 8.6.0RC3: this Samovar supports PHP 8.2 to 8.5"),
            ),
            ("9.0.0", Some("cannot build for PHP 9.0.0: this Samovar supports PHP 8.2 to 8.5")),
            ("8.10.1", Some("cannot build for PHP 8.10.1: this Samovar supports PHP 8.2 to 8.5")),
            ("8.1.34", Some("cannot build for PHP 8.1.34: this Samovar supports PHP 8.2 to 8.5")),
            ("7.4.33", Some("cannot build for PHP 7.4.33: this Samovar supports PHP 8.2 to 8.5")),
            ("", Some("`` is no version of PHP")),
            ("eight", Some("`eight` is no version of PHP")),
            ("8", Some("`8` is no version of PHP")),
        ] {
            let problem = php_version_problem(version);
            let first = problem.as_deref().and_then(|text| text.lines().next());
            assert_eq!(first, expected, "{version}");
            assert!(problem.is_none_or(|text| text.contains("\nhint: ")), "{version}");
        }
    }
}
