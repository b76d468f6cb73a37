//! The second stage: what was typed for one setting, laid over its default and checked.

use std::io;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::setting::{Kind, Preset, Setting};
use crate::settings::Settings;
use crate::sources::Sources;
use crate::typed::{Shape, Typed};

/// Lays `setting`'s values over each other, weakest first; returns what is wrong with them.
///
/// Values that a stronger source replaces are read all the same: a mistake in the file should not
/// wait for the day on which the flag is left out.
pub(crate) fn lay(
    setting: &'static Setting,
    typed: &[Typed],
    settings: &mut Settings,
    sources: &Sources,
) -> Vec<Problem> {
    if let Preset::Text(text) = setting.default {
        let read = setting.kind.set(settings, text, sources.cwd());
        debug_assert!(read.is_some(), "the default of {} is not allowed", setting.key);
    }
    let given: Vec<&Typed> =
        typed.iter().filter(|typed| std::ptr::eq(typed.setting, setting)).collect();
    let mut problems = Vec::new();
    let mut layer = None;
    for typed in &given {
        if let Kind::List { clear, .. } = setting.kind
            && layer.replace(typed.layer()) != Some(typed.layer())
        {
            clear(settings);
        }
        problems.extend(read(typed, settings));
    }
    if problems.is_empty() {
        problems.extend(finish(setting, given.last().copied(), settings, sources));
    }
    problems
}

fn read(typed: &Typed, settings: &mut Settings) -> Option<Problem> {
    let kind = &typed.setting.kind;
    let allowed = kind.takes(typed.shape)
        && (typed.shape == Shape::Empty || kind.set(settings, &typed.text, &typed.base).is_some());
    (!allowed).then(|| typed.refused())
}

fn finish(
    setting: &'static Setting,
    winner: Option<&Typed>,
    settings: &mut Settings,
    sources: &Sources,
) -> Option<Problem> {
    let (what, hint) = (setting.finish?)(settings, sources).err()?;
    Some(match winner {
        Some(typed) => typed.problem(&what, hint),
        None => Problem::new(format!("the default of `{}` {what}", setting.key), hint),
    })
}

/// What is wrong, as the end of a sentence, and a hint.
type Wrong = (String, String);

/// From a folder or a `.php` file to the root and the script that answers the rest.
pub(crate) fn root(settings: &mut Settings, sources: &Sources) -> Result<(), Wrong> {
    let hint = || "name the folder to serve, or a `.php` file in it that answers".to_owned();
    let path = match &settings.root {
        unset if unset.as_os_str().is_empty() => default_root(sources.cwd()),
        path => path.clone(),
    };
    let found = path.metadata().map_err(|error| (failed(&error), hint()))?;
    let is_php = found.is_file() && path.extension().is_some_and(|end| end == "php");
    let (folder, script) = match (found.is_dir(), path.parent(), path.file_name()) {
        (true, _, _) => (path.as_path(), None),
        (false, Some(folder), Some(name)) if is_php => (folder, Some(name)),
        _ => return Err(("is neither a folder nor a `.php` file".to_owned(), hint())),
    };
    settings.root = folder.canonicalize().map_err(|error| (failed(&error), hint()))?;
    // The script itself may be a symbolic link: it is called by the name it has in the root.
    let index = settings.root.join("index.php");
    settings.front_controller = match script {
        Some(name) => Some(settings.root.join(name)),
        None => index.is_file().then_some(index),
    };
    Ok(())
}

fn default_root(cwd: &Path) -> PathBuf {
    let public = cwd.join("public");
    if public.is_dir() { public } else { cwd.to_owned() }
}

/// `listen = []` is the one way to get here with none.
pub(crate) fn listen(settings: &mut Settings, _: &Sources) -> Result<(), Wrong> {
    if settings.listen.is_empty() {
        return Err(("is not allowed".to_owned(), "it takes at least one address".to_owned()));
    }
    Ok(())
}

/// The folder for temporary files must be there.
pub(crate) fn temp_dir(settings: &mut Settings, sources: &Sources) -> Result<(), Wrong> {
    if settings.temp_dir.as_os_str().is_empty() {
        let system = sources.variable("TMPDIR").map_or("/tmp".into(), PathBuf::from);
        settings.temp_dir = sources.cwd().join(system);
    }
    let hint = || "`temp_dir` takes a folder that exists".to_owned();
    match settings.temp_dir.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(("is no folder".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// Below the root, or where the server was started.
pub(crate) fn checkpoint_after(settings: &mut Settings, _: &Sources) -> Result<(), Wrong> {
    let Some(file) = &settings.checkpoint_after else { return Ok(()) };
    let places = [settings.root.join(file), file.clone()];
    let found = places.iter().find(|p| p.is_file()).and_then(|p| p.canonicalize().ok());
    if found.is_none() {
        let root = settings.root.display();
        return Err((
            "names no file".to_owned(),
            format!("a path is looked for below the root `{root}`, then where you are"),
        ));
    }
    settings.checkpoint_after = found;
    Ok(())
}

/// A php.ini that is not there would be passed over in silence by PHP.
pub(crate) fn php_ini(settings: &mut Settings, _: &Sources) -> Result<(), Wrong> {
    let hint = || "`php_ini` takes a file that exists".to_owned();
    let Some(path) = &settings.php_ini else { return Ok(()) };
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(("is no file".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// The kernel's limit on the path of a socket, without the byte that ends it.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path that is too long would fail as late as at the bind.
pub(crate) fn control(settings: &mut Settings, _: &Sources) -> Result<(), Wrong> {
    match &settings.control {
        Some(path) if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX => Err((
            format!("is longer than a socket's path may be: {} bytes", path.as_os_str().len()),
            format!("the kernel takes {SOCKET_PATH_BYTES_MAX} bytes; use a folder such as `/run`"),
        )),
        _ => Ok(()),
    }
}

fn failed(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be used: {}", reason(error)),
    }
}

/// The system's words without the error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        kind => kind.to_string(),
    }
}
