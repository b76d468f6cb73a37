//! A private OpenSSH server, with its own keys and a process for each connection.

use crate::process::is_root;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const HINT: &str = "hint: `make setup-test` installs it";
/// Empty folder that a server started by root requires.
const EMPTY: &str = "/run/sshd";

/// A server that runs as long as the test.
#[derive(Debug)]
pub struct Ssh {
    address: SocketAddr,
    folder: TempDir,
}

impl Ssh {
    /// Starts a server that accepts the user who runs the test, with [`Self::key`].
    pub fn start() -> Ssh {
        let folder = TempDir::with_prefix("samovar-ssh-").expect("a temporary folder");
        for name in ["host", "key"] {
            run(Command::new("ssh-keygen")
                .args(["-q", "-m", "PEM", "-t", "ecdsa", "-N", "", "-f"])
                .arg(folder.path().join(name)));
        }
        if is_root() {
            std::fs::create_dir_all(EMPTY).expect("root may");
        }
        let path = folder.path().display();
        let text = format!(
            "HostKey {path}/host\nAuthorizedKeysFile {path}/key.pub\nStrictModes no\nUsePAM no\n\
             PidFile none\nPermitRootLogin yes\nPasswordAuthentication no\n"
        );
        let conf = folder.path().join("conf");
        std::fs::write(&conf, text).expect("our own folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                serve(client, &conf);
            }
        });
        Ssh { address, folder }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The private key. The public one is next to it, with `.pub` appended.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }
}

/// Serves a connection as inetd does. The process ends with the connection, and with the test.
fn serve(client: TcpStream, conf: &Path) {
    let input = OwnedFd::from(client);
    let Ok(output) = input.try_clone() else { return };
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "/usr/sbin/sshd", "-i", "-f"]).arg(conf);
    command.stdin(input).stdout(output).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        std::thread::spawn(move || child.wait());
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}\n{HINT}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
