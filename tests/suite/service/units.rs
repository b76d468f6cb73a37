//! The units for systemd that the repository and its Debian package contain.

use super::{samovar, text};
use samovar_testkit::{is_root, workspace};
use std::collections::BTreeSet;

/// The units of deploy/systemd contain only arguments that the command line accepts, and the
/// settings that systemd needs.
#[test]
fn shipped_systemd_units_are_accepted() {
    let unit = std::fs::read_to_string(workspace().join("deploy/systemd/samovar@.service"));
    let unit = unit.expect("a unit");
    let value_of = |key: &str| {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or_else(|| panic!("{key} in {unit}"))
    };
    assert_eq!(value_of("Type"), "notify");
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display();
    std::fs::write(folder.path().join("index.php"), "<?php echo 'served';").expect("our folder");
    let settings = format!("root = \"{place}\"\nlisten = \"127.0.0.1:0\"\n");
    std::fs::write(folder.path().join("shop.toml"), settings).expect("our folder");
    let arguments = |line: &str, command: &str| -> Vec<String> {
        let line = line.replace("%i", "shop").replace("/etc/samovar", &place.to_string());
        let line = line.replace("/run/samovar-shop", &place.to_string());
        let mut words = line.split(' ').map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("/usr/local/bin/samovar"));
        assert_eq!(words.next().as_deref(), Some(command));
        words.collect()
    };
    let serve = arguments(value_of("ExecStart"), "serve");
    let root = if is_root() { &["--allow-root"][..] } else { &[] };
    let check: Vec<_> = ["check"].into_iter().chain(serve.iter().map(String::as_str)).collect();
    let found = samovar(&[&check, root].concat(), folder.path());
    assert!(found.status.success(), "{}{}", text(&found.stdout), text(&found.stderr));
    // No server listens there; the command only has to accept the arguments.
    let reload = arguments(value_of("ExecReload"), "reload");
    let reload: Vec<_> = ["reload"].into_iter().chain(reload.iter().map(String::as_str)).collect();
    let said = text(&samovar(&reload, folder.path()).stderr);
    assert!(said.contains("cannot reach the server"), "{said}");
    let socket = std::fs::read_to_string(workspace().join("deploy/systemd/samovar@.socket"));
    assert!(socket.expect("a unit").contains("Service=samovar@%i.service"));
}

/// Keys of a unit that name the site, its user or its files.
const OF_SITE: [&str; 11] = [
    "Description=",
    "Documentation=",
    "RequiresMountsFor=",
    "User=",
    "Group=",
    "ExecStart=",
    "ExecReload=",
    "RuntimeDirectory=",
    "StateDirectory=",
    "LogsDirectory=",
    "ReadWritePaths=",
];

/// The unit of the Debian package restricts the server like the units for several sites.
#[test]
fn packaged_systemd_unit_has_same_restrictions() {
    let lines = |file: &str| -> BTreeSet<String> {
        let unit = std::fs::read_to_string(workspace().join(file)).expect("a unit");
        let lines = unit.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
        lines
            .filter(|line| !OF_SITE.iter().any(|start| line.starts_with(start)))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(lines("deploy/debian/samovar.service"), lines("deploy/systemd/samovar@.service"));
}
