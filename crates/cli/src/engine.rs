//! The setting `php_engine`: how workers come to load that libphp, and whether it is one for them, asked before any is started.

use crate::binary;
use anyhow::{Result, anyhow, bail};
use samovar_channel::{ENGINE_FLAG, ENGINE_VARIABLE, EngineFacts};
use samovar_config::Settings;
use std::path::Path;

/// What is wrong with one that the worker does not start with.
const HINT: &str =
    "it must be a libphp of the worker's version, built like Debian's; `make php-engine` makes one";

/// What the template is started with so that the dynamic linker takes `engine` before it looks for a libphp. The template
/// takes it out again.
pub(crate) fn environment(engine: Option<&Path>) -> Option<(String, Option<String>)> {
    let engine = engine?.to_str()?;
    let before = std::env::var(ENGINE_VARIABLE).ok().filter(|before| !before.is_empty());
    let value = before.map_or_else(|| engine.to_owned(), |before| format!("{engine}:{before}"));
    Some((ENGINE_VARIABLE.to_owned(), Some(value)))
}

/// The engine that the settings name, and what should be known of it.
#[derive(Debug)]
pub(crate) struct Examined {
    /// `/opt/engine/libphp8.2.so, PHP 8.2.36 made of 8.2.36-1~deb12u1`.
    pub(crate) text: String,
    /// That it is older than the libphp that is installed, with a hint.
    pub(crate) outdated: Option<String>,
}

/// Starts the worker's program with it, to tell what it is; `None`: the settings name none.
pub(crate) fn examine(settings: &Settings, program: &Path) -> Result<Option<Examined>> {
    let Some(engine) = settings.php_engine.as_deref() else { return Ok(None) };
    let what = || format!("cannot use `{}` as PHP's engine", engine.display());
    let said = ask(program, Some(engine)).map_err(|error| anyhow!("{}: {error:#}", what()))?;
    let Some(facts) = EngineFacts::from_words(&said) else {
        bail!(
            "{}: `{}` does not say which libphp it has\nhint: it is of another version; install server and worker from \
             the same release",
            what(),
            program.display()
        );
    };
    if let Err(why) = facts.fits(engine) {
        // The dynamic linker says why it did not take it, and goes on.
        let told = linker_words(&said).map_or_else(String::new, |words| format!("{words}; "));
        bail!("{}: {told}{why}", what());
    }
    // One that does not run has no say.
    let installed = ask(program, None).ok().and_then(|said| EngineFacts::from_words(&said));
    let made =
        if facts.source.is_empty() { String::new() } else { format!(" made of {}", facts.source) };
    Ok(Some(Examined {
        text: format!("`{}` is PHP {}{made}", engine.display(), facts.php),
        outdated: installed.and_then(|installed| facts.outdated(&installed)),
    }))
}

/// As [`examine`], with what should be known in the log.
pub(crate) fn recognise(settings: &Settings, program: &Path) -> Result<()> {
    let examined = examine(settings, program)?;
    if let Some(why) = examined.and_then(|examined| examined.outdated) {
        tracing::warn!("php_engine: {why}");
    }
    Ok(())
}

fn ask(program: &Path, engine: Option<&Path>) -> Result<String> {
    let environment = environment(engine);
    binary::ask(program, &[ENGINE_FLAG.into()], environment.as_ref(), HINT)
}

/// `object '/x' from LD_PRELOAD cannot be preloaded (file too short)`, of what the dynamic linker said.
fn linker_words(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.starts_with("ERROR: ld.so: "))?;
    let words = line.strip_prefix("ERROR: ld.so: ")?;
    Some(words.trim_end_matches('.').trim_end_matches(": ignored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_linker_says() {
        let said = "ERROR: ld.so: object '/x' from LD_PRELOAD cannot be preloaded (file too short): ignored.\n{}\n";
        let words = "object '/x' from LD_PRELOAD cannot be preloaded (file too short)";
        assert_eq!(linker_words(said), Some(words));
        assert_eq!(linker_words("{}\n"), None);
    }
}
