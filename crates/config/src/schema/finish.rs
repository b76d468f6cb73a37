//! What only the machine knows about a value that won: whether the file exists, which folder the root is.

use std::io;
use std::path::{Path, PathBuf};

use crate::problem::reason;
use crate::schema::notation;
use crate::schema::setting::Surroundings;
use crate::schema::settings::{Compat, Limits, Settings};

/// What is wrong, as the end of a sentence, and a hint.
type Wrong = (String, String);

/// From a folder or a `.php` file to the root and the script that answers the rest.
pub(crate) fn root(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint = || "name the folder to serve, or a `.php` file in it that answers".to_owned();
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
    // The script itself may be a symbolic link: it is called by the name it has in the root.
    let index = settings.root.join("index.php");
    settings.front_controller = match script {
        Some(name) => Some(settings.root.join(name)),
        None => index.is_file().then_some(index),
    };
    Ok(())
}

/// Fewer than which PHP's processes do not start: those that each inherits have low numbers.
const OPEN_FILES_MIN: usize = 256;

pub(crate) fn open_files(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    match settings.limits.open_files {
        0 | OPEN_FILES_MIN.. => Ok(()),
        _ => Err((
            format!("is less than {OPEN_FILES_MIN}, which PHP's processes need"),
            "0 is as many as the server was started with".to_owned(),
        )),
    }
}

/// Files in memory, which count, are made as large: the image of an application, and what relinking writes.
const FILE_BYTES_MIN: u64 = 64 << 20;

pub(crate) fn file_bytes(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    match settings.limits.file_bytes {
        0 | FILE_BYTES_MIN.. => Ok(()),
        _ => Err((
            "is less than 64M, which the image of a booted application may need".to_owned(),
            "0 is what the server was started with".to_owned(),
        )),
    }
}

/// A limit that nobody has set is no limit of 0.
#[expect(clippy::unnecessary_wraps, reason = "as all of them")]
pub(crate) fn core_bytes(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if !around.is_given {
        settings.limits.core_bytes = Limits::CORE_AS_IT_IS;
    }
    Ok(())
}

fn default_root(cwd: &Path) -> PathBuf {
    let public = cwd.join("public");
    if public.is_dir() { public } else { cwd.to_owned() }
}

/// The folders are there.
pub(crate) fn sendfile(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    for (path, folder) in &mut settings.sendfile {
        let found = folder.named.canonicalize().ok().filter(|found| found.is_dir());
        folder.found = found.ok_or_else(|| {
            let name = folder.named.display();
            let what = format!("names `{name}` for `{path}`, which is no folder");
            (what, "make the folder, or name another one".to_owned())
        })?;
    }
    Ok(())
}

/// `listen = []` is the one way to get here with none that somebody has given. Where nobody has, it depends on the
/// domains (`domain`).
pub(crate) fn listen(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.listen.is_empty() && around.is_given {
        return Err(("is not allowed".to_owned(), "it takes at least one address".to_owned()));
    }
    Ok(())
}

/// What is to speak TLS needs a certificate.
pub(crate) fn certificates(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let needs_one = settings.listen.iter().find(|listener| listener.is_tls());
    match needs_one {
        Some(listener) if settings.tls.certificates.is_empty() && settings.acme.domains.is_empty() => Err((
            format!("is not enough for `{listener}`"),
            "name a PEM file: `certificates = [\"/etc/ssl/example.pem\"]` below `[tls]`; or have one fetched: \
             `domains = [\"example.com\"]` below `[acme]`"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// They go with the certificates one by one, or not at all.
pub(crate) fn keys(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let (keys, certificates) = (settings.tls.keys.len(), settings.tls.certificates.len());
    if keys != 0 && keys != certificates {
        return Err((
            format!("names {keys} for {certificates} certificates"),
            "name one for each of `tls.certificates`, in the same order, or none".to_owned(),
        ));
    }
    Ok(())
}

/// They speak of the certificates of clients, which nobody is asked for without an authority.
pub(crate) fn client_crls(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if !settings.tls.client_crls.is_empty() && settings.tls.client_ca.is_none() {
        return Err((
            "needs `tls.client_ca`".to_owned(),
            "name the file with the authorities of clients' certificates, too".to_owned(),
        ));
    }
    Ok(())
}

/// The cache behind `apcu_fetch()` is one of those that have the memory together.
pub(crate) fn apcu_bytes(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let (cache, all) = (settings.shared.apcu_bytes, settings.shared.bytes_max);
    if settings.compat.contains(&Compat::Apcu) && cache > all {
        let all = notation::show_bytes(all);
        return Err((
            format!("is more than `shared.bytes_max`, {all}"),
            "make `shared.bytes_max` larger: it is for this cache and all tables and caches"
                .to_owned(),
        ));
    }
    Ok(())
}

/// A group alone would leave the user that the server is to get away from.
pub(crate) fn group(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.group.is_some() && settings.user.is_none() {
        return Err(("stands without a `user`".to_owned(), "name the user too".to_owned()));
    }
    Ok(())
}

/// The folder for temporary files must be there.
pub(crate) fn temp_dir(settings: &mut Settings, around: &Surroundings<'_>) -> Result<(), Wrong> {
    if settings.temp_dir.as_os_str().is_empty() {
        let system = around.temp_dir.map_or("/tmp".into(), PathBuf::from);
        settings.temp_dir = around.cwd.join(system);
    }
    let hint = || "`temp_dir` takes a folder that exists".to_owned();
    match settings.temp_dir.metadata() {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(("is no folder".to_owned(), hint())),
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

/// Below the root, or where the server was started.
fn php_file(settings: &Settings, file: Option<&Path>) -> Result<Option<PathBuf>, Wrong> {
    let Some(file) = file else { return Ok(None) };
    let places = [settings.root.join(file), file.to_owned()];
    let found = places.iter().find(|p| p.is_file()).and_then(|p| p.canonicalize().ok());
    found.map(Some).ok_or_else(|| {
        let root = settings.root.display();
        (
            "names no file".to_owned(),
            format!("a path is looked for below the root `{root}`, then where you are"),
        )
    })
}

/// A php.ini that is not there would be passed over in silence by PHP.
pub(crate) fn php_ini(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint = || "`php_ini` takes a file that exists".to_owned();
    let Some(path) = &settings.php_ini else { return Ok(()) };
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(("is no file".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// What the dynamic linker takes for the end of a path, or for something to replace.
const LINKER_STOPS: [char; 3] = [':', '$', '"'];

pub(crate) fn php_engine(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
    let hint = || "`php_engine` takes a libphp's file, such as `make php-engine` makes".to_owned();
    let Some(path) = &settings.php_engine else { return Ok(()) };
    let is_plain =
        |text: &str| !text.contains(|c: char| c.is_whitespace() || LINKER_STOPS.contains(&c));
    if !path.to_str().is_some_and(is_plain) {
        let why = "has a space, a colon or another character that the dynamic linker does not take";
        return Err((why.to_owned(), "give it another name, or a link with one".to_owned()));
    }
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(("is no file".to_owned(), hint())),
        Err(error) => Err((failed(&error), hint())),
    }
}

/// The kernel's limit on the path of a socket, without the byte that ends it.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path that is too long would fail as late as at the bind.
pub(crate) fn control(settings: &mut Settings, _: &Surroundings<'_>) -> Result<(), Wrong> {
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
