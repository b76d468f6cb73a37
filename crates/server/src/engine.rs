//! The setting `php_engine`: makes workers load that libphp, and checks it before any worker is
//! started.

use crate::binary;
use anyhow::{Result, anyhow, bail};
use samovar_channel::{ENGINE_FLAG, ENGINE_VARIABLE, EngineFacts};
use samovar_config::Settings;
use std::path::Path;

/// Hint for a library with which the worker does not start.
const HINT: &str =
    "use a libphp of the worker's version, built like Debian's; `make php-engine` builds one";

/// Returns the environment variable that makes the dynamic linker load `engine` before it searches
/// for a libphp. The template removes the variable again.
pub(crate) fn environment(engine: Option<&Path>) -> Option<(String, Option<String>)> {
    let engine = engine?.to_str()?;
    let before = std::env::var(ENGINE_VARIABLE).ok().filter(|before| !before.is_empty());
    let value = before.map_or_else(|| engine.to_owned(), |before| format!("{engine}:{before}"));
    Some((ENGINE_VARIABLE.to_owned(), Some(value)))
}

/// The engine of the settings, with findings.
#[derive(Debug)]
pub(crate) struct Examined {
    /// Description, such as `/opt/engine/libphp8.2.so, PHP 8.2.36 made of 8.2.36-1~deb12u1`.
    pub(crate) text: String,
    /// Warning that it is older than the installed libphp, with a hint.
    pub(crate) outdated: Option<String>,
}

/// Runs the worker's program with the engine to identify it. Returns `None` if the settings name no
/// engine.
pub(crate) fn examine(settings: &Settings, program: &Path) -> Result<Option<Examined>> {
    let Some(engine) = settings.php_engine.as_deref() else { return Ok(None) };
    let what = || format!("cannot use `{}` as the PHP engine", engine.display());
    let said = ask(program, Some(engine)).map_err(|error| anyhow!("{}: {error:#}", what()))?;
    let Some(facts) = EngineFacts::from_words(&said) else {
        bail!(
            "{}: `{}` does not report its libphp\nhint: its version differs; install server and \
             worker from the same release",
            what(),
            program.display()
        );
    };
    if let Err(why) = facts.fits(engine) {
        // The dynamic linker prints why it could not load the engine, and continues without it.
        let told = linker_words(&said).map_or_else(String::new, |words| format!("{words}; "));
        bail!("{}: {told}{why}", what());
    }
    // If the program does not run with the installed libphp, there is no comparison.
    let installed = ask(program, None).ok().and_then(|said| EngineFacts::from_words(&said));
    let made = if facts.source.is_empty() {
        String::new()
    } else {
        format!(" built from {}", facts.source)
    };
    Ok(Some(Examined {
        text: format!("`{}` is PHP {}{made}", engine.display(), facts.php),
        outdated: installed.and_then(|installed| facts.outdated(&installed)),
    }))
}

/// Like [`examine`]; logs the warning.
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

/// Returns the dynamic linker's message from the output, such as `object '/x' from LD_PRELOAD
/// cannot be preloaded (file too short)`.
fn linker_words(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.starts_with("ERROR: ld.so: "))?;
    let words = line.strip_prefix("ERROR: ld.so: ")?;
    Some(words.trim_end_matches('.').trim_end_matches(": ignored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linker_message_is_extracted() {
        let said = "ERROR: ld.so: object '/x' from LD_PRELOAD cannot be preloaded (file too \
                    short): ignored.\n{}\n";
        let words = "object '/x' from LD_PRELOAD cannot be preloaded (file too short)";
        assert_eq!(linker_words(said), Some(words));
        assert_eq!(linker_words("{}\n"), None);
    }
}
