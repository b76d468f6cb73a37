//! Whose rights the server has: root only on request, another user once the listeners are bound.

use anyhow::{Result, anyhow, bail};
use rustix::fs::{Access, access};
use samovar_config::Settings;
use samovar_supervisor::identity::{self, Identity, effective_uid};
use std::path::Path;

/// The user to become; `None`: the one that the server has been started by.
pub(crate) fn identity(settings: &Settings) -> Result<Option<Identity>> {
    let now = effective_uid();
    let Some(user) = &settings.user else {
        if now == 0 && !settings.allow_root {
            return Err(refusal());
        }
        return Ok(None);
    };
    let hint = "hint: `user` and `group` take names or numbers that `getent passwd` and `getent group` know";
    let identity = Identity::find(user, settings.group.as_deref())
        .map_err(|error| anyhow!("cannot become `{user}`: {error}\n{hint}"))?;
    if identity.uid == 0 && !settings.allow_root {
        return Err(refusal());
    }
    match now {
        0 => Ok(Some(identity)),
        same if same == identity.uid => Ok(None),
        _ => bail!(
            "cannot become `{user}`: only root can\n\
             hint: start the server as root or as `{user}`, or leave `user` out"
        ),
    }
}

fn refusal() -> anyhow::Error {
    anyhow!(
        "PHP would run as root, and each hole in the application would be one in the machine\n\
         hint: `user = \"www-data\"` (--user www-data) has the server become that user once it listens; \
         --allow-root if root is meant"
    )
}

/// Whatever it holds of keys and requests is for itself, and not for PHP, which runs as the same user.
pub(crate) fn conceal_memory() -> Result<()> {
    identity::conceal_memory()
        .map_err(|error| anyhow!("cannot keep the server's memory from other processes: {error}"))
}

/// Becomes it, and looks whether it can use what the settings name.
pub(crate) fn assume(identity: &Identity, settings: &Settings, php: &Path) -> Result<()> {
    identity.assume().map_err(|error| anyhow!("cannot become `{}`: {error}", identity.name))?;
    // The change has undone it where a machine's `fs.suid_dumpable` says so.
    conceal_memory()?;
    tracing::info!(user = identity.name, uid = identity.uid, gid = identity.gid, "root no more");
    match obstacles(settings, Some(php)).as_slice() {
        [] => {
            if let Some(file) = unreadable_file(settings) {
                tracing::warn!(
                    file = %file.display(),
                    user = identity.name,
                    "no reload will work: this user cannot read the file of settings"
                );
            }
            Ok(())
        }
        [first, ..] => bail!(
            "`{}` {first}\nhint: give that user the right, or choose another `user`",
            identity.name
        ),
    }
}

/// The file of settings, where this process may not read it: the server starts by what it has read, and cannot again.
pub(crate) fn unreadable_file(settings: &Settings) -> Option<&Path> {
    settings.config_file.as_deref().filter(|file| access(*file, Access::READ_OK).is_err())
}

/// What of the settings, and of the worker's program, this process may not use, each as the end of a sentence.
pub(crate) fn obstacles(settings: &Settings, php: Option<&Path>) -> Vec<String> {
    let read = Access::READ_OK;
    let folder = Access::READ_OK | Access::EXEC_OK;
    let write = Access::WRITE_OK | Access::EXEC_OK;
    let mut found = Vec::new();
    let mut look = |path: &Path, rights: Access, verb: &str| {
        if let Err(error) = access(path, rights) {
            let reason = std::io::Error::from(error).kind();
            found.push(format!("cannot {verb} `{}`: {reason}", path.display()));
        }
    };
    look(&settings.root, folder, "read the folder");
    // A process whose program it cannot read may not look at itself, as a rollback does.
    if let Some(program) = php {
        look(program, folder, "read and run");
    }
    let booted = [&settings.checkpoint_after, &settings.checkpoint_resume];
    let files = [&settings.front_controller, &settings.php_ini, &settings.php_engine]
        .into_iter()
        .chain(booted);
    files.flatten().for_each(|file| look(file, read, "read"));
    settings.consoles.iter().for_each(|console| look(&console.script, read, "read"));
    look(&settings.temp_dir, write, "write into `temp_dir`,");
    found
}

/// What PHP and its children see of the change.
pub(crate) fn environment(identity: Option<&Identity>) -> Vec<(String, Option<String>)> {
    let Some(Identity { name, home, .. }) = identity else { return Vec::new() };
    let home = (!home.is_empty()).then(|| home.clone());
    vec![
        ("USER".to_owned(), Some(name.clone())),
        ("LOGNAME".to_owned(), Some(name.clone())),
        ("HOME".to_owned(), home),
        // Root's, if it has one.
        ("XDG_RUNTIME_DIR".to_owned(), None),
    ]
}
