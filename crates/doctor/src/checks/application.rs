//! The application's folder: Composer's autoloader, packages for development, debug mode.

use crate::check::{Check, Checked, Group};
use crate::facts::{ComposerFacts, Facts, Missing, Php};
use crate::finding::Findings;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "root-missing",
        group: Group::Application,
        finds: "a document root that was deleted while the server runs",
        why: "a deploy moved a link or deleted a release: the old one is still served",
        run: root_missing,
    },
    Check {
        code: "app-debug",
        group: Group::Application,
        finds: "the application is in debug mode",
        why: "it shows code and variables to visitors, and collects data in each request",
        run: debug,
    },
    Check {
        code: "composer-dev",
        group: Group::Application,
        finds: "packages for development are installed",
        why: "they make the autoloader larger, and some add routes",
        run: dev_packages,
    },
    Check {
        code: "composer-classmap",
        group: Group::Application,
        finds: "an autoloader that searches folders for classes",
        why: "each class that does not exist is searched in several files",
        run: class_map,
    },
    Check {
        code: "composer-files",
        group: Group::Application,
        finds: "many files that the autoloader includes in each request",
        why: "they are loaded whether they are used or not",
        run: files,
    },
];

/// Number of files included by the autoloader from which on it is a finding.
const FILES_MIN: u64 = 50;
/// Number of names in a text.
const NAMES_MAX: usize = 3;

const NO_COMPOSER: Missing = "there is no vendor/composer";
const NO_ENVIRONMENT: Missing = "the environment of PHP is unknown";

fn root_missing(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_application(|application, _| {
        if !application.has_root.ok_or("the folder cannot be read")? {
            let hint = "run `samovar reload`, which follows symbolic links again, and keep the \
                        serving release until then";
            out.problem("the document root no longer exists", hint)
                .place(&*application.root)
                .pool(&application.pool);
        }
        Ok(())
    })
}

fn debug(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_application(|application, php| {
        let environment =
            php.and_then(|php| php.facts.environment.as_ref()).ok_or(NO_ENVIRONMENT)?;
        // A variable of the environment overrides the file.
        let value = |name: &str| {
            let set = environment.get(name).map(|value| (value, "the environment"));
            set.or_else(|| application.variables.get(name).map(|value| (value, "a .env file")))
        };
        let is_true =
            |value: &str| matches!(&*value.to_ascii_lowercase(), "1" | "true" | "on" | "(true)");
        let (debug, name) = (value("APP_DEBUG"), value("APP_ENV"));
        if debug.is_none() && name.is_none() {
            return Err("the application has no APP_DEBUG and no APP_ENV");
        }
        let found = match (debug, name) {
            (Some((value, origin)), _) if is_true(value) => Some(("APP_DEBUG", value, origin)),
            // Symfony's debug mode follows from the environment, unless it is set.
            (None, Some((value, origin))) if value == "dev" => Some(("APP_ENV", value, origin)),
            _ => None,
        };
        if let Some((name, value, origin)) = found {
            let hint = "set APP_ENV=prod (Laravel: production) and APP_DEBUG=0 in the environment \
                        of the server";
            out.problem("the application is in debug mode", hint)
                .value(format!("{name}={value} in {origin}"))
                .place(&*application.folder)
                .pool(&application.pool);
        }
        Ok(())
    })
}

/// Calls a function for each application with Composer.
fn each_composer(
    facts: &Facts,
    mut check: impl FnMut(&ComposerFacts, &str, Option<Php<'_>>) -> Checked,
) -> Checked {
    facts.each_application(|application, php| {
        let composer = application.composer.as_ref().ok_or(NO_COMPOSER)?;
        check(composer, &application.pool, php)
    })
}

fn dev_packages(facts: &Facts, out: &mut Findings) -> Checked {
    each_composer(facts, |composer, pool, _| {
        let names = &composer.dev_packages;
        if !names.is_empty() {
            let first: Vec<_> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
            let more = if names.len() > NAMES_MAX { " …" } else { "" };
            out.warning(
                format!("packages for development are installed: {}{more}", first.join(", ")),
                "deploy with `composer install --no-dev --optimize-autoloader`",
            )
            .value(format!("{} packages", names.len()))
            .place(&*composer.folder)
            .pool(pool);
        }
        Ok(())
    })
}

/// Returns whether requests load classes. In a booted application the boot does. Without a running
/// server it is assumed.
fn loads_classes(facts: &Facts, php: Option<Php<'_>>) -> Result<bool, Missing> {
    match (facts.status.is_some(), php) {
        (false, _) => Ok(true),
        (true, Some(php)) => php.runs_scripts(),
        (true, None) => Err("the execution model is unknown"),
    }
}

fn class_map(facts: &Facts, out: &mut Findings) -> Checked {
    each_composer(facts, |composer, pool, php| {
        if loads_classes(facts, php)? && !composer.is_authoritative {
            out.note(
                "Composer's class map is not authoritative",
                "deploy with `composer dump-autoload --classmap-authoritative` (`-a`), unless the \
                 application creates classes at run time",
            )
            .value(format!("{} classes in the map", composer.classes))
            .place(&*composer.folder)
            .pool(pool);
        }
        Ok(())
    })
}

fn files(facts: &Facts, out: &mut Findings) -> Checked {
    each_composer(facts, |composer, pool, php| {
        if loads_classes(facts, php)? && composer.files >= FILES_MIN {
            out.note(
                "the autoloader includes many files in each request",
                "boot the application once (`samovar init` shows how), or remove packages that \
                 declare functions",
            )
            .value(format!("{} files", composer.files))
            .place(&*composer.folder)
            .pool(pool);
        }
        Ok(())
    })
}
