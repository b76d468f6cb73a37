//! A private `OpenLDAP`, with its own folder and a unix socket.

use crate::process::Process;
use crate::wait::eventually;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const HINT: &str = "hint: `make setup-test` installs it";
const PASSWORD: &str = "secret";

/// A running server; killed when dropped.
#[derive(Debug)]
pub struct Ldap {
    _server: Process,
    folder: TempDir,
}

impl Ldap {
    /// Starts a server with `dc=tea` and, below it, a `person` of each name, with the password
    /// `secret`.
    pub fn with(names: &[&str]) -> Ldap {
        let folder = TempDir::with_prefix("samovar-ldap-").expect("a temporary folder");
        let path = folder.path();
        std::fs::create_dir(path.join("data")).expect("our own folder");
        write(&path.join("conf"), &configuration(path));
        write(&path.join("people"), &people(names));
        let added = Command::new("/usr/sbin/slapadd")
            .args(["-q", "-f"])
            .arg(path.join("conf"))
            .arg("-l")
            .arg(path.join("people"))
            .output()
            .unwrap_or_else(|e| panic!("slapadd: {e}\n{HINT}"));
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "/usr/sbin/slapd", "-d", "0", "-h"]);
        command.arg(url(path)).arg("-f").arg(path.join("conf"));
        let mut server = Process::start("slapd", command.stdout(Stdio::null()));
        eventually("OpenLDAP's socket", || {
            if let Some(status) = server.ended() {
                panic!("slapd ended ({status}):\n{}\n{HINT}", server.log());
            }
            UnixStream::connect(path.join("socket")).ok()
        });
        Ldap { _server: server, folder }
    }

    /// URL for `ldap_connect()`.
    pub fn url(&self) -> String {
        url(self.folder.path())
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

fn url(folder: &Path) -> String {
    format!("ldapi://{}%2Fsocket", folder.display().to_string().replace('/', "%2F"))
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("our own folder");
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "include /etc/ldap/schema/core.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
         pidfile {folder}/pid\nargsfile {folder}/args\ndatabase mdb\nmaxsize 10485760\n\
         suffix dc=tea\nrootdn cn=admin,dc=tea\nrootpw {PASSWORD}\ndirectory {folder}/data\n\
         dbnosync\n"
    )
}

fn people(names: &[&str]) -> String {
    let root = "dn: dc=tea\nobjectClass: dcObject\nobjectClass: organization\no: tea\ndc: tea\n";
    let person = |name: &&str| {
        format!(
            "\ndn: cn={name},dc=tea\nobjectClass: person\ncn: {name}\nsn: {name}\n\
             userPassword: {PASSWORD}\n"
        )
    };
    root.to_owned() + &names.iter().map(person).collect::<Vec<_>>().concat()
}
