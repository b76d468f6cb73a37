//! Which settings a reload cannot change: what they stand for is made once, when the server starts.

use crate::settings::Settings;

/// Keys of the settings that differ and wait for a restart.
pub fn needs_restart(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let differs = [
        ("listen", old.listen != new.listen),
        ("control", old.control != new.control),
        ("limits.queue_max", old.limits.queue_max != new.limits.queue_max),
        ("access_log", old.access_log != new.access_log),
        ("access_log_format", old.access_log_format != new.access_log_format),
        ("log_level", old.log_level != new.log_level),
        ("log_format", old.log_format != new.log_format),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::needs_restart;
    use crate::names::by_flag;
    use crate::sources::Sources;

    #[test]
    fn what_has_changed_and_cannot_change_is_named() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let with = |flags: &[(&str, &str)]| {
            let typed = flags.iter().fold(Sources::new(folder), |sources, (flag, value)| {
                sources.flag(by_flag(flag), *value)
            });
            typed.resolve().expect("good settings")
        };
        let old = with(&[]);
        assert_eq!(needs_restart(&old, &old), Vec::<&str>::new());
        let new = with(&[("workers", "7"), ("drain-timeout", "3s"), ("define", "a=b")]);
        assert_eq!(needs_restart(&old, &new), Vec::<&str>::new());
        let new = with(&[("listen", ":81"), ("queue-max", "99"), ("log-level", "debug")]);
        assert_eq!(needs_restart(&old, &new), ["listen", "limits.queue_max", "log_level"]);
    }
}
