//! Paths that start at the folder of the settings file.

use super::Folder;

#[test]
fn every_path_may_be_relative_to_the_file() {
    let folder = Folder::new().with("site/index.php", "").with(
        "etc/samovar.toml",
        "root = '../site'\nlink_targets = ['links']\n[sendfile]\n'/a/' = '../site'\n\
         [sandbox]\nread = ['r']\nwrite = ['w']\n[shared.publish]\ngeo = 'geo.json'\n\
         [tls]\ncertificates = ['a.pem']\nkeys = ['a.key']\nclient_ca = 'ca.pem'\n\
         client_crls = ['crl.pem']",
    );
    let etc = folder.path().join("etc");
    let settings = folder.sources().config("etc/samovar.toml").resolve().expect("settings");
    assert_eq!(settings.link_targets, [etc.join("links")]);
    assert_eq!(settings.sendfile["/a/"].found, folder.path().join("site"));
    assert_eq!(
        (settings.sandbox.read, settings.sandbox.write),
        (vec![etc.join("r")], vec![etc.join("w")])
    );
    assert_eq!(settings.shared.publish["geo"], etc.join("geo.json"));
    assert_eq!(settings.tls.certificates, [etc.join("a.pem")]);
    assert_eq!(settings.tls.keys, [etc.join("a.key")]);
    assert_eq!(settings.tls.client_ca, Some(etc.join("ca.pem")));
    assert_eq!(settings.tls.client_crls, [etc.join("crl.pem")]);
}
