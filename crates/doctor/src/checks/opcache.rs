//! The opcode cache: its memory, its tables, and its settings.

use super::figures::{percent, share, size};
use crate::check::{Check, Checked, Group};
use crate::facts::Facts;
use crate::finding::Findings;

pub(super) const CHECKS: &[Check] = &[
    Check {
        code: "opcache-off",
        group: Group::Opcache,
        finds: "opcache is off or not loaded",
        why: "each request compiles its files",
        run: off,
    },
    Check {
        code: "opcache-full",
        group: Group::Opcache,
        finds: "opcache's memory is full or nearly full",
        why: "further files are compiled by each request",
        run: full,
    },
    Check {
        code: "opcache-wasted",
        group: Group::Opcache,
        finds: "memory of files that have changed",
        why: "only a reload frees it",
        run: wasted,
    },
    Check {
        code: "opcache-keys",
        group: Group::Opcache,
        finds: "the table of files is nearly full",
        why: "a full table restarts opcache or refuses files",
        run: keys,
    },
    Check {
        code: "opcache-strings",
        group: Group::Opcache,
        finds: "the memory for interned strings is full",
        why: "each process then keeps its own copies",
        run: strings,
    },
    Check {
        code: "opcache-restarts",
        group: Group::Opcache,
        finds: "opcache was emptied",
        why: "all files are compiled again",
        run: restarts,
    },
    Check {
        code: "opcache-misses",
        group: Group::Opcache,
        finds: "many files are compiled, although opcache is on",
        why: "files change all the time, or cannot be cached",
        run: misses,
    },
    Check {
        code: "opcache-timestamps",
        group: Group::Opcache,
        finds: "files whose changes whole scripts look for",
        why: "a reload makes new files visible without it",
        run: timestamps,
    },
    Check {
        code: "opcache-debugging",
        group: Group::Opcache,
        finds: "settings of opcache for debugging",
        why: "code is not optimized, or memory is protected by system calls",
        run: debugging,
    },
    Check {
        code: "opcache-file-only",
        group: Group::Opcache,
        finds: "only the file cache is used",
        why: "each request reads compiled files from the disk",
        run: file_only,
    },
];

/// Free share of memory below which opcache is nearly full.
const FREE_SHARE_MIN: f64 = 0.05;
/// Wasted share of memory; half of the default of `opcache.max_wasted_percentage`.
const WASTED_SHARE_MAX: f64 = 0.025;
/// Used share of the table of files.
const KEYS_SHARE_MAX: f64 = 0.9;
/// Free share of the memory for interned strings.
const STRINGS_FREE_SHARE_MIN: f64 = 0.02;
/// Share of lookups that compile a file.
const MISSES_SHARE_MAX: f64 = 0.1;
/// Lookups below which the first compilations distort that share.
const LOOKUPS_MIN: u64 = 10_000;
/// Number of cached files from which on looking for changes is noticeable.
const SCRIPTS_MIN: u64 = 50;
/// Compiled files per cached file from which on they were compiled again.
const AGAIN_MIN: u64 = 2;

fn off(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let is_loaded = php.has("Zend OPcache")?;
        if !is_loaded {
            out.warning("opcache is not loaded", "install PHP's opcache, and load it in php.ini")
                .pool(php.pool());
        } else if !php.is_on("opcache.enable")? {
            out.warning("opcache is off", "set opcache.enable = true in `[php]`")
                .place("opcache.enable")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn full(facts: &Facts, out: &mut Findings) -> Checked {
    const HINT: &str = "raise opcache.memory_consumption in `[php]`, and restart or reload";
    facts.each_php(|php| {
        let figures = php.opcache()?;
        let all = figures
            .used_bytes
            .saturating_add(figures.free_bytes)
            .saturating_add(figures.wasted_bytes);
        let free = share(figures.free_bytes, all);
        let value = format!("{} of {} are free", size(figures.free_bytes), size(all));
        let found = if figures.full {
            out.problem("opcache is full: requests compile files that are not in it", HINT)
        } else if free < FREE_SHARE_MIN {
            out.warning("opcache is nearly full", HINT)
        } else {
            return Ok(());
        };
        found.value(value).place("opcache.memory_consumption").pool(php.pool());
        Ok(())
    })
}

fn wasted(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let figures = php.opcache()?;
        let all = figures
            .used_bytes
            .saturating_add(figures.free_bytes)
            .saturating_add(figures.wasted_bytes);
        let part = share(figures.wasted_bytes, all);
        if part > WASTED_SHARE_MAX {
            let hint = "run `samovar reload` after each deploy: a new generation has an empty \
                        opcache; keep generated files out of it (opcache.blacklist_filename)";
            out.warning("opcache holds files that have changed since", hint)
                .value(format!("{} of {}", size(figures.wasted_bytes), size(all)))
                .pool(php.pool());
        }
        Ok(())
    })
}

fn keys(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let figures = php.opcache()?;
        if share(figures.keys, figures.keys_max) > KEYS_SHARE_MAX {
            let hint = "raise opcache.max_accelerated_files in `[php]`, and restart or reload";
            out.warning("opcache's table of files is nearly full", hint)
                .value(format!("{} of {} entries", figures.keys, figures.keys_max))
                .place("opcache.max_accelerated_files")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn strings(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let figures = php.opcache()?;
        let all = figures.strings_used_bytes.saturating_add(figures.strings_free_bytes);
        if all == 0 {
            return Err("opcache shares no interned strings");
        }
        if share(figures.strings_free_bytes, all) < STRINGS_FREE_SHARE_MIN {
            let hint = "raise opcache.interned_strings_buffer (MiB) in `[php]`, and restart or \
                        reload";
            out.warning("the memory for interned strings is full", hint)
                .value(format!("{} of {} are free", size(figures.strings_free_bytes), size(all)))
                .place("opcache.interned_strings_buffer")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn restarts(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let figures = php.opcache()?;
        for (count, why, hint) in [
            (
                figures.restarts_memory_total,
                "because its memory was full",
                "raise opcache.memory_consumption, and reload after each deploy",
            ),
            (
                figures.restarts_keys_total,
                "because its table of files was full",
                "raise opcache.max_accelerated_files",
            ),
            (
                figures.restarts_manual_total,
                "by opcache_reset()",
                "use `samovar reload`, which boots next to the serving workers",
            ),
        ] {
            if count > 0 {
                let times = if count == 1 { "time" } else { "times" };
                out.warning(format!("opcache was emptied {why}"), hint)
                    .value(format!("{count} {times} since the last reload"))
                    .pool(php.pool());
            }
        }
        Ok(())
    })
}

fn misses(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        let figures = php.opcache()?;
        let (hits, misses) = (figures.hits_total, figures.misses_total);
        let all = hits.saturating_add(misses);
        if all < LOOKUPS_MIN {
            return Err("too few lookups in opcache");
        }
        let is_again = misses > figures.scripts.saturating_mul(AGAIN_MIN);
        if is_again && share(misses, all) > MISSES_SHARE_MAX {
            let hint = "look for generated files (caches of templates), files outside \
                        open_basedir, and clocks that differ; a full opcache has its own check";
            out.warning("files are compiled again and again", hint)
                .value(format!("{} of {all} lookups", percent(share(misses, all))))
                .pool(php.pool());
        }
        Ok(())
    })
}

fn timestamps(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.is_on("opcache.enable")? || !php.is_on("opcache.validate_timestamps")? {
            return Ok(());
        }
        if php.runs_scripts()? && php.opcache()?.scripts >= SCRIPTS_MIN {
            let hint = "set opcache.validate_timestamps = false in `[php]`, and run `samovar \
                        reload` after each deploy; `samovar dev` needs it on";
            out.note("whole scripts check their files for changes", hint)
                .value(format!(
                    "every {} s",
                    php.directive("opcache.revalidate_freq").unwrap_or("2")
                ))
                .place("opcache.validate_timestamps")
                .pool(php.pool());
        }
        Ok(())
    })
}

fn debugging(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if !php.is_on("opcache.enable")? {
            return Ok(());
        }
        if php.is_on("opcache.protect_memory")? {
            out.warning(
                "opcache protects its memory, which takes system calls in each request",
                "set opcache.protect_memory = false in `[php]`",
            )
            .place("opcache.protect_memory")
            .pool(php.pool());
        }
        let level = php.directive("opcache.optimization_level").unwrap_or("default");
        if matches!(level.trim(), "0" | "0x0" | "0x00000000") {
            out.warning(
                "opcache does not optimize code",
                "leave out opcache.optimization_level: its default is all safe passes",
            )
            .value(level)
            .place("opcache.optimization_level")
            .pool(php.pool());
        }
        Ok(())
    })
}

fn file_only(facts: &Facts, out: &mut Findings) -> Checked {
    facts.each_php(|php| {
        if php.is_on("opcache.enable")? && php.is_on("opcache.file_cache_only")? {
            out.warning(
                "opcache uses only files, not shared memory",
                "set opcache.file_cache_only = false in `[php]`",
            )
            .place("opcache.file_cache_only")
            .pool(php.pool());
        }
        Ok(())
    })
}
