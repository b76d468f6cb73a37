//! User and rights of the server: root only on request; another user after the listeners are bound.

use anyhow::{Result, anyhow, bail};
use rustix::fs::{Access, access};
use samovar_config::Settings;
use samovar_supervisor::identity::{self, Identity, effective_uid};
use std::path::Path;

/// Returns the user to switch to; `None`: the server keeps the user that started it.
pub fn identity(settings: &Settings) -> Result<Option<Identity>> {
    let now = effective_uid();
    let Some(user) = &settings.user else {
        if now == 0 && !settings.allow_root {
            return Err(refusal());
        }
        return Ok(None);
    };
    let hint = "hint: `user` and `group` must be names or numbers known to `getent passwd` and \
                `getent group`";
    let identity = Identity::find(user, settings.group.as_deref())
        .map_err(|error| anyhow!("cannot switch to the user `{user}`: {error}\n{hint}"))?;
    if identity.uid == 0 && !settings.allow_root {
        return Err(refusal());
    }
    match now {
        0 => Ok(Some(identity)),
        same if same == identity.uid => Ok(None),
        _ => bail!(
            "cannot switch to the user `{user}`: only root can\nhint: start the server as root or \
             as `{user}`, or leave out `user`"
        ),
    }
}

fn refusal() -> anyhow::Error {
    anyhow!(
        "PHP would run as root, and a vulnerability of the application would give root \
         access\nhint: set `user = \"www-data\"` (--user www-data) to switch to that user after \
         the listeners are bound; pass --allow-root to run as root"
    )
}

/// Protects this process's memory, which holds keys and requests, from PHP, which runs as the same
/// user.
pub(crate) fn conceal_memory() -> Result<()> {
    identity::conceal_memory().map_err(|error| {
        anyhow!("cannot protect the server's memory from other processes: {error}")
    })
}

/// Switches to the user, and checks that it can access the paths in the settings.
pub(crate) fn assume(identity: &Identity, settings: &Settings, php: &Path) -> Result<()> {
    identity
        .assume()
        .map_err(|error| anyhow!("cannot switch to the user `{}`: {error}", identity.name))?;
    // The switch resets the protection, depending on the machine's `fs.suid_dumpable`.
    conceal_memory()?;
    tracing::info!(
        user = identity.name,
        uid = identity.uid,
        gid = identity.gid,
        "switched to another user"
    );
    match obstacles(settings, Some(php)).as_slice() {
        [] => {
            if let Some(file) = unreadable_file(settings) {
                tracing::warn!(
                    file = %file.display(),
                    user = identity.name,
                    "reloads will fail: this user cannot read the settings file"
                );
            }
            Ok(())
        }
        [first, ..] => bail!(
            "`{}` {first}\nhint: grant the permission, or choose another `user`",
            identity.name
        ),
    }
}

/// Returns the file of settings if this process may not read it: the server starts with the
/// settings it has read, but cannot read them again.
pub(crate) fn unreadable_file(settings: &Settings) -> Option<&Path> {
    settings.config_file.as_deref().filter(|file| access(*file, Access::READ_OK).is_err())
}

/// Returns the paths of the settings, and the worker's program, that this process may not access,
/// each as the end of a sentence.
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
    // A process cannot inspect itself, as a rollback does, if it may not read its program.
    if let Some(program) = php {
        look(program, folder, "read and run");
    }
    let booted = [&settings.checkpoint_after, &settings.checkpoint_resume];
    let files = [&settings.front_controller, &settings.php_ini, &settings.php_engine]
        .into_iter()
        .chain(booted);
    files.flatten().for_each(|file| look(file, read, "read"));
    settings.consoles.iter().for_each(|console| look(&console.script, read, "read"));
    for schedule in &settings.schedules {
        if let samovar_config::Work::Command { command, .. } = &schedule.work {
            look(&command.script, read, "read");
        }
    }
    look(&settings.temp_dir, write, "write to `temp_dir`,");
    found
}

/// Returns the environment variables of PHP that change with the user.
pub(crate) fn environment(identity: Option<&Identity>) -> Vec<(String, Option<String>)> {
    let Some(Identity { name, home, .. }) = identity else { return Vec::new() };
    let home = (!home.is_empty()).then(|| home.clone());
    vec![
        ("USER".to_owned(), Some(name.clone())),
        ("LOGNAME".to_owned(), Some(name.clone())),
        ("HOME".to_owned(), home),
        // The value would be root's.
        ("XDG_RUNTIME_DIR".to_owned(), None),
    ]
}
