//! Warnings about a root that was probably not intended, and about surprising defaults.

use samovar_config::{AdminToken, Settings};
use samovar_front::private;
use samovar_ring::SLOTS_MAX;
use samovar_wire::SettingsFacts;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Programs that `sendmail` may run to queue mail with their own rights: those of Postfix, Exim,
/// and sendmail.
const MAILERS: [&str; 3] = ["/usr/sbin/postdrop", "/usr/sbin/exim4", "/usr/sbin/sendmail"];

/// Logs warnings about settings that are surely not intended.
pub(super) fn advise(settings: &Settings) {
    advise_on_root(settings);
    for exposure in exposures(settings) {
        tracing::warn!("{}", exposure.replace("\nhint: ", " (hint: ") + ")");
    }
    if let Some(surplus) = surplus(settings) {
        tracing::warn!("{surplus}");
    }
    if let Some(mailer) = settings.no_new_privileges.then(|| needing_rights(&MAILERS)).flatten() {
        tracing::warn!(
            mailer,
            "mail() does not work with this program and `no_new_privileges` (hint: send mail by \
             SMTP, or set it to false)"
        );
    }
}

/// Returns the settings that `samovar doctor` checks.
pub(crate) fn facts(settings: &Settings) -> SettingsFacts {
    let pools = settings.pools.iter().map(|pool| &pool.settings);
    let all: Vec<_> = std::iter::once(settings).chain(pools).collect();
    let mut exposed: Vec<_> = all.iter().flat_map(|settings| exposures(settings)).collect();
    // Pools inherit settings, and with them their exposures.
    exposed.sort();
    exposed.dedup();
    SettingsFacts {
        listen_backlog: settings.listen_backlog as u64,
        connections_max: settings.limits.connections_max as u64,
        codings: settings.compression.codings.iter().map(|one| one.name().to_owned()).collect(),
        has_proxy: !settings.trusted_proxies.is_empty(),
        exposures: exposed,
        surplus: all.iter().filter_map(|settings| surplus(settings)).collect(),
    }
}

/// Returns a warning about workers that can never get a request, because there are fewer request
/// slots; requests in workers occupy slots, too.
pub(crate) fn surplus(settings: &Settings) -> Option<String> {
    let places = (settings.limits.queue_max * settings.front_threads).min(SLOTS_MAX);
    let workers = settings.workers.max;
    (workers > places).then(|| {
        format!(
            "of {workers} workers, {} never have a request: `limits.queue_max`, which includes \
             the requests in workers, is {}\nhint: raise `limits.queue_max` above the number of \
             workers, or lower `workers`",
            workers - places,
            settings.limits.queue_max,
        )
    })
}

/// Returns warnings about settings that expose all files or trust all clients, each with a hint.
pub(crate) fn exposures(settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(all) = settings.trusted_proxies.iter().find(|network| network.prefix_len() == 0) {
        found.push(format!(
            "`trusted_proxies` contains `{all}`: every client can forge its address and protocol\n\
             hint: list only the addresses of your proxies"
        ));
    }
    let aliases = settings.locations.iter().filter_map(|location| location.alias.as_deref());
    let sendfile = settings.sendfile.values().map(|folder| folder.found.as_path());
    let links = settings.link_targets.iter().map(PathBuf::as_path);
    let root = std::iter::once(settings.root.as_path());
    let folders = [("root", root.collect::<Vec<_>>()), ("alias", aliases.collect())];
    let further = [("sendfile", sendfile.collect::<Vec<_>>()), ("link_targets", links.collect())];
    for (key, paths) in folders.into_iter().chain(further) {
        if paths.iter().any(|path| path.canonicalize().is_ok_and(|path| path == Path::new("/"))) {
            found.push(format!(
                "`{key}` names the folder `/`: all files of this machine that the server may read \
                 can be requested\nhint: name the folder with the public files"
            ));
        }
    }
    if !settings.admin.is_empty() && settings.admin_token == AdminToken::Open {
        found.push(
            "the admin listener requires no token: every program of this machine can read its \
             pages, and so can PHP code that fetches URLs for its clients\nhint: leave out \
             `admin_token`, and use the token of `admin_token_file`"
                .to_owned(),
        );
    }
    found
}

/// Returns the first program that exists and runs with other rights than its caller's.
fn needing_rights<'a>(programs: &[&'a str]) -> Option<&'a str> {
    let is_raised = |mode: u32| mode & (SETUID | SETGID) != 0;
    programs.iter().copied().find(|program| {
        std::fs::metadata(program).is_ok_and(|found| found.is_file() && is_raised(found.mode()))
    })
}

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// Warns about a root that was probably not meant to be public.
fn advise_on_root(settings: &Settings) {
    let root = &settings.root;
    if !private::is_project(root) {
        return;
    }
    let public = private::public_folder(root);
    // If the pages of an application are in the same folder as its `composer.json`, there is no
    // better root.
    if public.is_none() && root.join("index.php").is_file() {
        tracing::info!(root = %root.display(), "project files next to the public pages are not \
                                                served");
        return;
    }
    let folder = public.unwrap_or_else(|| root.join("public"));
    tracing::warn!(
        root = %root.display(),
        "the root looks like a project folder (hint: serve its public folder: `samovar serve {}`)",
        folder.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn workers_without_request_slot_give_warning() {
        let mut settings = Settings::defaults(std::env::temp_dir()).expect("defaults");
        settings.limits.queue_max = 16;
        for (workers, front_threads, expected) in [(16, 1, None), (17, 1, Some(1)), (17, 2, None)] {
            (settings.workers.max, settings.front_threads) = (workers, front_threads);
            let found = surplus(&settings);
            let expected = expected.map(|n: usize| format!("of {workers} workers, {n} never"));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().starts_with(&expected.unwrap_or_default()));
        }
    }

    #[test]
    fn setuid_program_is_found() {
        let folder = std::env::temp_dir().join(format!("samovar-mailers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let paths = ["none", "plain", "raised"].map(|name| folder.join(name));
        for (path, mode) in paths[1..].iter().zip([0o755, 0o2755]) {
            std::fs::write(path, "").expect("our own folder");
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("our own file");
        }
        let names = paths.each_ref().map(|path| path.to_str().expect("text"));
        assert_eq!(needing_rights(&names[..2]), None);
        assert_eq!(needing_rights(&names), Some(names[2]));
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
