//! Checks and completions of resolved values that depend on the machine: whether a file exists,
//! which folder the root is.

use std::io;
use std::path::{Path, PathBuf};

use crate::problem::reason;
use crate::schema::notation;
use crate::schema::setting::Surroundings;
use crate::schema::settings::{Compat, Limits, Settings};

/// A description of the mistake, as the end of a sentence, and a hint.
type Wrong = (String, String);

/// Resolves a folder or a `.php` file to the root and the front controller.
pub(crate) fn root(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint =
        || "name the folder to serve, or a `.php` file in it that handles requests".to_owned();
    let path = match &settings.root {
        unset if unset.as_os_str().is_empty() => default_root(around.cwd),
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
    // The script itself may be a symbolic link: it keeps its name in the root.
    let index = settings.root.join("index.php");
    settings.front_controller = match script {
        Some(name) => Some(settings.root.join(name)),
        None => index.is_file().then_some(index),
    };
    Ok(())
}

/// Minimum for PHP's processes to start: each inherits descriptors with low numbers.
const OPEN_FILES_MIN: usize = 256;

pub(crate) fn open_files(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    match settings.limits.open_files {
        0 | OPEN_FILES_MIN.. => Ok(()),
        _ => Err((
            format!("is less than {OPEN_FILES_MIN}, which PHP processes need"),
            "use at least 256, or 0 for the limit that the server was started with".to_owned(),
        )),
    }
}

/// Minimum file size: the limit also applies to files in memory, such as the image of an
/// application and the output of relinking.
const FILE_BYTES_MIN: u64 = 64 << 20;

pub(crate) fn file_bytes(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    match settings.limits.file_bytes {
        0 | FILE_BYTES_MIN.. => Ok(()),
        _ => Err((
            "is less than 64M, which the image of a booted application may need".to_owned(),
            "use at least 64M, or 0 for the limit that the server was started with".to_owned(),
        )),
    }
}

/// An unset limit must not be read as a limit of 0.
#[expect(clippy::unnecessary_wraps, reason = "as all of them")]
pub(crate) fn core_bytes(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if !around.is_given {
        settings.limits.core_bytes = Limits::CORE_AS_IT_IS;
    }
    Ok(())
}

/// An unset limit depends on the number of all connections.
#[expect(clippy::unnecessary_wraps, reason = "as all of them")]
pub(crate) fn client_connections_max(
    settings: &mut Settings,
    around: &Surroundings<'_>,
) -> Result<(), Wrong> {
    if !around.is_given {
        settings.limits.client_connections_max = Limits::CLIENT_CONNECTIONS_DERIVED;
    }
    Ok(())
}

fn default_root(cwd: &Path) -> PathBuf {
    let public = cwd.join("public");
    if public.is_dir() { public } else { cwd.to_owned() }
}

/// Checks that the folders exist.
pub(crate) fn sendfile(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    for (path, folder) in &mut settings.sendfile {
        let found = folder.named.canonicalize().ok().filter(|found| found.is_dir());
        folder.found = found.ok_or_else(|| {
            let name = folder.named.display();
            let wrong = format!("names `{name}` for `{path}`, which is not a folder");
            (wrong, "create the folder, or name another one".to_owned())
        })?;
    }
    Ok(())
}

/// Only `listen = []` leads here with an empty list that was set. If the setting is unset, its
/// default depends on the domains (`domain`).
pub(crate) fn listen(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.listen.is_empty() && around.is_given {
        return Err(("is not allowed".to_owned(), "name at least one address".to_owned()));
    }
    Ok(())
}

/// A listener with TLS needs a certificate.
pub(crate) fn certificates(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let needs_one = settings.listen.iter().find(|listener| listener.is_tls());
    let has_none = settings.tls.certificates.is_empty() && settings.acme.domains.is_empty();
    match needs_one {
        Some(listener) if has_none => Err((
            format!("has no certificate for `{listener}`"),
            "name a PEM file: `certificates = [\"/etc/ssl/example.pem\"]` in `[tls]`; or let the \
             server obtain one: `domains = [\"example.com\"]` in `[acme]`"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Either there is one key per certificate, or there are no keys.
pub(crate) fn keys(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let (keys, certificates) = (settings.tls.keys.len(), settings.tls.certificates.len());
    if keys != 0 && keys != certificates {
        return Err((
            format!("has the wrong number of keys: {keys} for {certificates} certificates"),
            "name one key for each of `tls.certificates`, in the same order, or none".to_owned(),
        ));
    }
    Ok(())
}

/// Revocation lists apply to client certificates, which are only requested if an authority is set.
pub(crate) fn client_crls(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if !settings.tls.client_crls.is_empty() && settings.tls.client_ca.is_none() {
        return Err((
            "needs `tls.client_ca`".to_owned(),
            "set `tls.client_ca` to the file with the authorities of client certificates"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The cache of `apcu_fetch()` is part of the shared memory.
pub(crate) fn apcu_bytes(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let (cache, all) = (settings.shared.apcu_bytes, settings.shared.bytes_max);
    if settings.compat.contains(&Compat::Apcu) && cache > all {
        let all = notation::show_bytes(all);
        return Err((
            format!("is more than `shared.bytes_max`, {all}"),
            "increase `shared.bytes_max`: it includes this cache and all tables and caches"
                .to_owned(),
        ));
    }
    Ok(())
}

/// A group without a user is rejected: the server would still run as the user that it should not
/// run as.
pub(crate) fn group(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.group.is_some() && settings.user.is_none() {
        return Err(("needs a `user`".to_owned(), "set `user` too".to_owned()));
    }
    Ok(())
}

/// Checks that the folder for temporary files exists.
pub(crate) fn temp_dir(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.temp_dir.as_os_str().is_empty() {
        let system = around.temp_dir.map_or("/tmp".into(), PathBuf::from);
        settings.temp_dir = around.cwd.join(system);
    }
    let hint = || "`temp_dir` takes a folder that exists".to_owned();
    match settings.temp_dir.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(("is not a folder".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

pub(crate) fn checkpoint_after(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    settings.checkpoint_after = php_file(settings, settings.checkpoint_after.as_deref())?;
    Ok(())
}

pub(crate) fn checkpoint_resume(
    settings: &mut Settings,
    _: &Surroundings<'_>,
) -> Result<(), Wrong> {
    settings.checkpoint_resume = php_file(settings, settings.checkpoint_resume.as_deref())?;
    Ok(())
}

/// Resolves a path relative to the root, else relative to the working directory.
fn php_file(settings: &Settings, file: Option<&Path>) -> Result<Option<PathBuf>, Wrong> {
    let Some(file) = file else { return Ok(None) };
    let places = [settings.root.join(file), file.to_owned()];
    let found = places.iter().find(|p| p.is_file()).and_then(|p| p.canonicalize().ok());
    found.map(Some).ok_or_else(|| {
        let root = settings.root.display();
        (
            "does not name a file".to_owned(),
            format!("use a path relative to the root `{root}` or to the working directory"),
        )
    })
}

/// PHP would silently ignore a missing php.ini.
pub(crate) fn php_ini(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint = || "`php_ini` takes a file that exists".to_owned();
    let Some(path) = &settings.php_ini else { return Ok(()) };
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(("is not a file".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// Characters that the dynamic linker treats as the end of a path or as a substitution.
const LINKER_STOPS: [char; 3] = [':', '$', '"'];

pub(crate) fn php_engine(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint =
        || "`php_engine` takes the path of a libphp; `make php-engine` builds one".to_owned();
    let Some(path) = &settings.php_engine else { return Ok(()) };
    let is_plain =
        |text: &str| !text.contains(|c: char| c.is_whitespace() || LINKER_STOPS.contains(&c));
    if !path.to_str().is_some_and(is_plain) {
        let why =
            "has a space, a colon or another character that the dynamic linker does not accept";
        return Err((
            why.to_owned(),
            "rename the file, or use a link with another name".to_owned(),
        ));
    }
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(("is not a file".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// The kernel's limit for the path of a socket, without the final NUL byte.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path that is too long would only fail at the bind.
pub(crate) fn control(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    match &settings.control {
        Some(path) if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX => Err((
            format!("is too long for the path of a socket: {} bytes", path.as_os_str().len()),
            format!(
                "use a path of at most {SOCKET_PATH_BYTES_MAX} bytes, in a folder such as `/run`"
            ),
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
