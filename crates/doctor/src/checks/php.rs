//! Settings and extensions of PHP, and its version.

use super::figures::size;
use crate::check::{Check, Checked, Group};
use crate::facts::{Facts, Missing, NO_PHP, Php};
use crate::finding::{Findings, Severity};

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "php-version",
        group: Group::Php,
        finds: "a version of PHP without security support by php.net, or soon without it",
        why: "security errors stay open, unless a distribution corrects them",
        run: version,
    },
    Check {
        code: "display-errors",
        group: Group::Php,
        finds: "errors that visitors see",
        why: "messages contain paths, queries and arguments",
        run: display_errors,
    },
    Check {
        code: "log-errors",
        group: Group::Php,
        finds: "errors that no log receives",
        why: "they cannot be investigated",
        run: log_errors,
    },
    Check {
        code: "xdebug",
        group: Group::Php,
        finds: "Xdebug is loaded",
        why: "it slows down all code, even without a debugger",
        run: xdebug,
    },
    Check {
        code: "coverage-extension",
        group: Group::Php,
        finds: "an extension for code coverage or debugging is loaded",
        why: "it is of use only in development",
        run: coverage,
    },
    Check {
        code: "assertions",
        group: Group::Php,
        finds: "assertions are compiled and executed",
        why: "they are for development",
        run: assertions,
    },
    Check {
        code: "jit",
        group: Group::Php,
        finds: "the JIT is on",
        why: "that of PHP 8.2 has computed wrong numbers; pages that wait gain nothing",
        run: jit,
    },
    Check {
        code: "jit-conflict",
        group: Group::Php,
        finds: "the JIT is on, and an extension switches it off",
        why: "its memory is used for nothing",
        run: jit_conflict,
    },
    Check {
        code: "realpath-cache",
        group: Group::Php,
        finds: "a cache of paths that is off or too small",
        why: "each include then looks up every folder of its path",
        run: realpath_cache,
    },
    Check {
        code: "output-compression",
        group: Group::Php,
        finds: "PHP compresses responses, or does it at a high level",
        why: "a worker is busy meanwhile; the server compresses in threads",
        run: output_compression,
    },
    Check {
        code: "implicit-flush",
        group: Group::Php,
        finds: "each output of PHP is sent at once",
        why: "a response becomes many small writes",
        run: implicit_flush,
    },
    Check {
        code: "session-auto-start",
        group: Group::Php,
        finds: "each request starts a session",
        why: "requests of one visitor run one after another",
        run: session_auto_start,
    },
    Check {
        code: "session-lazy-write",
        group: Group::Php,
        finds: "unchanged sessions are written",
        why: "each request writes a file or to a server",
        run: session_lazy_write,
    },
    Check {
        code: "remote-includes",
        group: Group::Php,
        finds: "code may be included from a URL",
        why: "an error in the application lets clients run code",
        run: remote_includes,
    },
    Check {
        code: "superglobals",
        group: Group::Php,
        finds: "`$_SERVER` and `$_ENV` are filled for every request",
        why: "PHP can fill them at their first use",
        run: superglobals,
    },
];

/// Ends of the security support of PHP's versions by php.net, in seconds since 1970. A version that
/// is missing is newer than this table, or so old that [`OLDEST`] applies.
const SUPPORT: &[(u32, u32, i64)] = &[
    (7, 4, 1_669_680_000), // 2022-11-28
    (8, 0, 1_701_043_200), // 2023-11-26
    (8, 1, 1_767_225_600), // 2025-12-31
    (8, 2, 1_798_761_600), // 2026-12-31
    (8, 3, 1_830_297_600), // 2027-12-31
    (8, 4, 1_861_920_000), // 2028-12-31
    (8, 5, 1_893_456_000), // 2029-12-31
];
/// Versions before this one have ended.
const OLDEST: (u32, u32) = (7, 4);
/// Time before the end at which it is noted.
const NOTICE_DAYS: i64 = 90;
const DAY_S: i64 = 86_400;

/// Extensions for development, next to Xdebug.
const DEVELOPMENT: &[&str] = &["pcov", "phpdbg_webhelper", "uopz", "vld"];
/// Extensions that replace the engine's execution, so that the JIT is switched off.
const REPLACING: &[&str] = &["xdebug", "pcov", "uopz", "ionCube Loader", "SourceGuardian"];
/// Bytes of an entry of the cache of paths: its fields, and two paths of a project.
const PATH_BYTES: u64 = 250;
/// Level of zlib from which on a higher one saves few bytes.
const LEVEL_MAX: u64 = 6;

fn version(facts: &Facts, out: &mut Findings) -> Checked {
    let now = i64::try_from(facts.now).map_err(|_| "the time is unknown")?;
    facts.each_php(|php| {
        let version = &php.facts.version;
        let mut parts = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (parts.next(), parts.next()) else {
            return Err("PHP's version is unknown");
        };
        let known = SUPPORT.iter().find(|(of, minor_of, _)| (*of, *minor_of) == (major, minor));
        let end = match known {
            Some((.., end)) => *end,
            None if (major, minor) < OLDEST => 0,
            None => return Err("this version is newer than the table of supported versions"),
        };
        let left = (end - now).div_euclid(DAY_S);
        let hint = "check your code with `samovar migrate check --to VERSION`, and upgrade; a \
                    distribution may support its own package for longer";
        if left < 0 {
            let text = format!("php.net no longer supports PHP {major}.{minor}");
            out.warning(text, hint).value(&**version).pool(php.pool());
        } else if left < NOTICE_DAYS {
            let text = format!("the security support of PHP {major}.{minor} by php.net ends soon");
            out.note(text, hint).value(format!("in {left} d")).pool(php.pool());
        }
        Ok(())
    })
}

/// Adds a finding for each pool in which a switch has this state.
fn switch(
    facts: &Facts,
    out: &mut Findings,
    (name, is_bad): (&str, bool),
    (severity, text, hint): (Severity, &str, &str),
) -> Checked {
    facts.each_php(|php| {
        if php.is_on(name)? == is_bad {
            let value = php.directive(name).unwrap_or("off");
            let value = if value.is_empty() { "off" } else { value };
            out.add(severity, text, hint)
                .value(format!("{name} = {value}"))
                .place(name)
                .pool(php.pool());
        }
        Ok(())
    })
}

fn display_errors(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "visitors see PHP's error messages";
    let hint = "set display_errors = false in `[php]`; `samovar dev` shows errors to the developer";
    facts.each_php(|php| {
        let value = php.directive("display_errors")?;
        // `stderr` goes to the log.
        if php.is_on("display_errors")? && !value.eq_ignore_ascii_case("stderr") {
            out.problem(text, hint)
                .value(format!("display_errors = {value}"))
                .place("display_errors")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn log_errors(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "PHP's errors are not logged";
    let hint = "set log_errors = true in `[php]`";
    switch(facts, out, ("log_errors", false), (Severity::Warning, text, hint))
}

fn xdebug(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if php.has("xdebug")? {
            let mode = php.directive("xdebug.mode").unwrap_or("unknown");
            let hint = "load it only where it is needed: remove it from the conf.d folder of this \
                        PHP (Debian: `phpdismod -s embed xdebug`)";
            out.warning("Xdebug is loaded", hint)
                .value(format!("xdebug.mode = {mode}"))
                .place("xdebug.mode")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn coverage(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        for name in DEVELOPMENT {
            if php.has(name)? {
                let hint = "remove it from the conf.d folder of this PHP";
                let text = format!("the extension {name} is loaded");
                out.warning(text, hint).value(*name).pool(php.pool());
            }
        }
        Ok(())
    })
}

fn assertions(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if php.directive("zend.assertions")?.trim() == "1" {
            let hint = "set zend.assertions = -1 in php.ini, which only PHP's start reads";
            out.warning("assertions are executed", hint)
                .value("zend.assertions = 1")
                .place("zend.assertions")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn jit(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.has_jit()? {
            return Ok(());
        }
        let mode = php.directive("opcache.jit")?;
        let hint = "set opcache.jit = disable in `[php]`, or measure it with your own pages";
        let found = if php.facts.version.starts_with("8.2.") {
            out.warning("the JIT is on: that of PHP 8.2 has computed wrong numbers", hint)
        } else {
            out.note("the JIT is on: profiles have no lines of the code that it compiles", hint)
        };
        found.value(format!("opcache.jit = {mode}")).place("opcache.jit").pool(php.pool());
        Ok(())
    })
}

fn jit_conflict(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.has_jit()? {
            return Ok(());
        }
        for name in REPLACING {
            if php.has(name)? {
                let text = format!("the extension {name} switches the JIT off");
                let hint = "remove the extension, or set opcache.jit = disable in `[php]`";
                out.warning(text, hint).place("opcache.jit").pool(php.pool());
            }
        }
        Ok(())
    })
}

fn realpath_cache(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.directive("open_basedir")?.is_empty() {
            let hint = "use `sandbox`, which the kernel enforces, and leave out open_basedir";
            out.warning("open_basedir switches the cache of paths off", hint)
                .place("open_basedir")
                .pool(php.pool());
            return Ok(());
        }
        let room = php.bytes("realpath_cache_size")?.ok_or(NO_PHP)?;
        if room == 0 {
            let hint = "leave out realpath_cache_size: its default is 4 MiB";
            out.warning("the cache of paths is off", hint)
                .place("realpath_cache_size")
                .pool(php.pool());
            return Ok(());
        }
        let scripts = php.opcache()?.scripts;
        if scripts.saturating_mul(PATH_BYTES) > room {
            let hint = "raise realpath_cache_size in `[php]`";
            out.warning("the cache of paths is too small for the files in use", hint)
                .value(format!("{} for {scripts} files", size(room)))
                .place("realpath_cache_size")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn output_compression(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.is_on("zlib.output_compression")? {
            return Ok(());
        }
        let level = php.directive("zlib.output_compression_level").unwrap_or("-1");
        let hint = "set zlib.output_compression = false in `[php]`, and `compression.codings`";
        let is_high = level.trim().parse::<u64>().is_ok_and(|level| level > LEVEL_MAX);
        let text = if is_high {
            "PHP compresses responses at a high level"
        } else {
            "PHP compresses responses"
        };
        out.warning(text, hint)
            .value(format!("level {level}"))
            .place("zlib.output_compression")
            .pool(php.pool());
        Ok(())
    })
}

fn implicit_flush(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "each output of PHP is sent at once";
    let hint = "set implicit_flush = false in `[php]`; call flush() where it is intended";
    switch(facts, out, ("implicit_flush", true), (Severity::Warning, text, hint))
}

fn session_auto_start(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "each request starts a session";
    let hint = "set session.auto_start = false in `[php]`, and start sessions where they are used";
    switch(facts, out, ("session.auto_start", true), (Severity::Warning, text, hint))
}

fn session_lazy_write(facts: &Facts, out: &mut Findings) -> Checked {
    let has_sessions = |php: Php<'_>| -> Result<bool, Missing> { php.has("session") };
    facts.each_php(|php| {
        if has_sessions(php)? && !php.is_on("session.lazy_write")? {
            let hint = "set session.lazy_write = true in `[php]`";
            out.warning("sessions are written even if they have not changed", hint)
                .place("session.lazy_write")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn remote_includes(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "PHP may include code from a URL";
    let hint = "set allow_url_include = false in `[php]`";
    switch(facts, out, ("allow_url_include", true), (Severity::Problem, text, hint))
}

fn superglobals(facts: &Facts, out: &mut Findings) -> Checked {
    let text = "superglobals are filled for every request";
    let hint = "set auto_globals_jit = true in php.ini";
    switch(facts, out, ("auto_globals_jit", false), (Severity::Note, text, hint))
}
