//! `samovar dev --tls` and `samovar dev trust`: certificates of an authority of one's own.

use samovar_testkit::{Server, Start, binary, is_root};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A user without rights.
const NOBODY: u32 = 65_534;
/// curl: the peer's certificate cannot be authenticated.
const UNTRUSTED: i32 = 60;

fn data() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn start(data: &Path) -> Start {
    let start = Server::script(
        "<?php echo $_SERVER['HTTPS'] ?? 'plain', ' ', $_SERVER['SERVER_PROTOCOL'];",
    );
    let start = start.dev().env("XDG_DATA_HOME", &data.display().to_string());
    start.args(["--tls", "--listen", "https://127.0.0.1:0"])
}

fn port(server: &Server) -> u16 {
    server.addresses("https://").first().expect("an address").port()
}

/// Output of curl for a page at `host`, and its exit code.
fn curl(server: &Server, host: &str, args: &[&str]) -> (Option<i32>, String) {
    let url = format!("https://{host}:{}/", port(server));
    let output = Command::new("curl").args(["-sSi", "-m", "60"]).args(args).arg(url).output();
    let output = output.expect("curl is installed");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn client_that_trusts_the_authority_accepts_the_certificate() {
    let data = data();
    let server = start(data.path()).config("[tls]\nhsts = \"max-age=300\"\n").start();
    let folder = data.path().join("samovar/dev");
    let authority = folder.join("authority.pem");
    let trusted = authority.display().to_string();
    let args = ["--cacert", &trusted];
    for host in ["localhost", "127.0.0.1"] {
        let (code, text) = curl(&server, host, &args);
        assert_eq!(code, Some(0), "{host}: {text}");
        assert!(text.ends_with("on HTTP/2.0"), "{text}");
        assert!(!text.to_lowercase().contains("strict-transport-security"), "{text}");
    }
    assert_eq!(curl(&server, "localhost", &[]).0, Some(UNTRUSTED));
    for file in ["authority.pem", "authority-key.pem", "localhost.pem"] {
        let mode = fs::metadata(folder.join(file)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let lines = server.stdout();
    assert!(lines.contains("run `samovar dev trust`"), "{lines}");
    assert!(lines.contains(&format!("curl --cacert {trusted}")), "{lines}");
    server.stop();

    let before = fs::read(&authority).expect("a file");
    let server = start(data.path()).start();
    assert_eq!(fs::read(&authority).expect("a file"), before, "it is trusted already");
    assert_eq!(curl(&server, "localhost", &args).0, Some(0));
    server.stop();
}

#[test]
fn tls_without_address_or_folder_is_refused() {
    let data = data();
    let plain = Server::script("<?php").dev().args(["--tls", "--listen", "127.0.0.1:0"]);
    let (code, log) = plain.env("XDG_DATA_HOME", &data.path().display().to_string()).refuse();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("--tls has no effect"), "{log}");
    assert!(log.contains("hint: use an address such as --listen https://"), "{log}");

    let file = data.path().join("file");
    fs::write(&file, "").expect("our folder");
    let (code, log) = start(&file).refuse();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("cannot create a certificate in `") && log.contains("hint: "), "{log}");
}

/// A home folder with a database of Chromium, and a `certutil` that writes down its arguments.
fn home(folder: &Path) -> PathBuf {
    let home = folder.join("home of ann");
    fs::create_dir_all(home.join(".pki/nssdb")).expect("our folder");
    fs::create_dir(home.join("bin")).expect("our folder");
    fs::write(home.join(".pki/nssdb/cert9.db"), "").expect("our folder");
    let certutil = home.join("bin/certutil");
    let script = "#!/bin/sh\nprintf '%s|' \"$@\" >>\"$HOME/called\"; echo >>\"$HOME/called\"\n\
        [ \"$3\" != -D ] || exit 255\n";
    fs::write(&certutil, script).expect("our folder");
    fs::set_permissions(&certutil, Permissions::from_mode(0o755)).expect("our folder");
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("our folder");
    home
}

/// `samovar dev trust` of a user without rights: exit code, and output.
fn trust(home: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(binary());
    command.args(["dev", "trust"]).args(args).current_dir("/").env_remove("XDG_DATA_HOME");
    command.env("HOME", home).env("USER", "ann");
    command.env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()));
    if is_root() {
        chown(home, Some(NOBODY), None).expect("root may do that");
        command.uid(NOBODY);
    }
    let output = command.output().expect("samovar runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn trust_prints_commands_for_root_and_runs_the_others() {
    let folder = data();
    let home = home(folder.path());
    let authority = home.join(".local/share/samovar/dev/authority.pem").display().to_string();
    let database = format!("sql:{}", home.join(".pki/nssdb").display());
    let name = "Samovar development authority of ann";
    let called = || fs::read_to_string(home.join("called")).unwrap_or_default();

    let (code, text) = trust(&home, &["--remove", "--print"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!Path::new(&authority).exists(), "a removal creates none: {text}");
    let (code, text) = trust(&home, &["--print"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("certutil -d '{database}' -A -t C,, -n '{name}'")), "{text}");
    assert_eq!(called(), "", "nothing runs");
    // The store of this machine exists, because curl needs it.
    let install = format!("sudo install -m 644 '{authority}' /usr/local/share/ca-certificates/");
    assert!(text.contains(&install), "{text}");
    assert!(text.contains("sudo update-ca-certificates\n"), "{text}");

    let (code, text) = trust(&home, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(Path::new(&authority).is_file(), "{text}");
    let remove = format!("-d|{database}|-D|-n|{name}|\n");
    let add = format!("-d|{database}|-A|-t|C,,|-n|{name}|-i|{authority}|\n");
    assert_eq!(called(), remove.clone() + &add);

    let (code, text) = trust(&home, &["--remove"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("sudo update-ca-certificates --fresh\n"), "{text}");
    assert_eq!(called(), remove.clone() + &add + &remove);
}
