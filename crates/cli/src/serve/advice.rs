//! What a person might have meant by another root, or does not expect of a preset.

use samovar_config::Settings;
use samovar_front::private;
use samovar_ring::SLOTS_MAX;
use std::os::unix::fs::MetadataExt;

/// Programs behind `sendmail` that put mail into a queue with rights of their own: Postfix's, Exim's, sendmail's.
const MAILERS: [&str; 3] = ["/usr/sbin/postdrop", "/usr/sbin/exim4", "/usr/sbin/sendmail"];

/// What is surely not meant.
pub(super) fn advise(settings: &Settings) {
    advise_on_root(settings);
    if let Some(surplus) = surplus(settings) {
        tracing::warn!("{surplus}");
    }
    if let Some(mailer) = settings.no_new_privileges.then(|| needing_rights(&MAILERS)).flatten() {
        tracing::warn!(
            mailer,
            "mail() by this program does not work below `no_new_privileges` (hint: send mail by SMTP, or set it to false)"
        );
    }
}

/// Workers that never have a request, because there are not as many places for requests: those in workers count, too.
pub(crate) fn surplus(settings: &Settings) -> Option<String> {
    let places = (settings.limits.queue_max * settings.front_threads).min(SLOTS_MAX);
    let workers = settings.workers.max;
    (workers > places).then(|| {
        format!(
            "of {workers} workers {} never have a request: `limits.queue_max` counts those in workers, too, and is {}\n\
             hint: raise `limits.queue_max` above the number of workers, or lower `workers`",
            workers - places,
            settings.limits.queue_max,
        )
    })
}

/// The first that is there and runs with other rights than its caller's.
fn needing_rights<'a>(programs: &[&'a str]) -> Option<&'a str> {
    let is_raised = |mode: u32| mode & (SETUID | SETGID) != 0;
    programs.iter().copied().find(|program| {
        std::fs::metadata(program).is_ok_and(|found| found.is_file() && is_raised(found.mode()))
    })
}

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// What is served was probably not meant to be.
fn advise_on_root(settings: &Settings) {
    let root = &settings.root;
    if !private::is_project(root) {
        return;
    }
    let public = private::public_folder(root);
    // An application whose pages lie beside its `composer.json` has no other folder to name.
    if public.is_none() && root.join("index.php").is_file() {
        tracing::info!(root = %root.display(), "what a project keeps beside its pages is not served");
        return;
    }
    let folder = public.unwrap_or_else(|| root.join("public"));
    tracing::warn!(
        root = %root.display(),
        "this looks like a project's folder: name its public folder (hint: `samovar serve {}`)",
        folder.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn workers_without_a_place_for_a_request_are_told_of() {
        let mut settings = Settings::defaults(std::env::temp_dir()).expect("defaults");
        settings.limits.queue_max = 16;
        for (workers, front_threads, expected) in [(16, 1, None), (17, 1, Some(1)), (17, 2, None)] {
            (settings.workers.max, settings.front_threads) = (workers, front_threads);
            let found = surplus(&settings);
            let expected = expected.map(|n: usize| format!("of {workers} workers {n} never"));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().starts_with(&expected.unwrap_or_default()));
        }
    }

    #[test]
    fn a_program_that_needs_its_rights_is_found() {
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
