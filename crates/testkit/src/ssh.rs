//! A private OpenSSH server: keys of its own, a process for each connection.

use crate::process::is_root;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const HINT: &str = "hint: `make setup-test` installs it";
/// Where a server that root starts wants an empty folder.
const EMPTY: &str = "/run/sshd";

/// A server for as long as the test runs.
#[derive(Debug)]
pub struct Ssh {
    address: SocketAddr,
    folder: TempDir,
}

impl Ssh {
    /// Starts one that lets in who runs the test, with [`Self::key`].
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The private key; beside it is the public one, `.pub`.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }
}

/// As inetd does. It ends with the connection, and with the test.
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
