//! Differences between two versions of the settings, by the keys of the file.

use super::*;
use crate::schema::table::needs_restart;

fn with(flags: &[(&str, &str)]) -> Settings {
    let typed =
        flags.iter().fold(Sources::new(env!("CARGO_MANIFEST_DIR")), |sources, (flag, value)| {
            sources.flag(names::by_flag(flag), *value)
        });
    typed.resolve().expect("good settings")
}

#[test]
fn needs_restart_lists_settings_fixed_at_start() {
    let old = with(&[]);
    assert_eq!(needs_restart(&old, &old), Vec::<&str>::new());
    let new = with(&[("workers", "7"), ("drain-timeout", "3s"), ("php", "a=b")]);
    assert_eq!(needs_restart(&old, &new), Vec::<&str>::new());
    let new = with(&[("listen", ":81"), ("queue-max", "99"), ("log-level", "debug")]);
    assert_eq!(needs_restart(&old, &new), ["listen", "limits.queue_max", "log_level"]);
}

#[test]
fn changed_lists_each_key_once() {
    let old = with(&[]);
    let new = with(&[("trusted-proxies", "unix:"), ("tls-hsts", "max-age=300")]);
    assert_eq!(old.changed(&new), ["trusted_proxies", "tls.hsts"]);
    let new = with(&[("trusted-proxies", "unix:"), ("trusted-proxies", "10.0.0.0/8")]);
    assert_eq!(old.changed(&new), ["trusted_proxies"]);
}
