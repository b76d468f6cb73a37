//! A private HAProxy: accepts HTTP/1.1 from clients and uses HTTP/2 over TLS to a server.

use crate::process::end;
use crate::wait::eventually;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running HAProxy; stopped when dropped.
#[derive(Debug)]
pub struct Haproxy {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Haproxy {
    /// Starts a HAProxy in front of the TLS server at `secure`, with kept connections.
    pub fn before(secure: SocketAddr) -> Haproxy {
        let folder = TempDir::with_prefix("samovar-haproxy-").expect("a temporary folder");
        let address = crate::port();
        let text = format!(
            "defaults\n mode http\n timeout connect 20s\n timeout client 60s\n timeout server 60s\n\
             frontend f\n bind {address}\n default_backend b\n\
             backend b\n http-reuse always\n server s {secure} ssl verify none alpn h2\n"
        );
        let config = folder.path().join("haproxy.cfg");
        std::fs::write(&config, text).expect("our own folder");
        let mut command = Command::new("/usr/sbin/haproxy");
        command.args(["-db", "-f"]).arg(config).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("haproxy is installed");
        let mut proxy = Haproxy { child, address, _folder: folder };
        eventually("HAProxy's port", || {
            let ended = proxy.child.try_wait().expect("our child");
            assert!(ended.is_none(), "haproxy has ended");
            TcpStream::connect(address).ok()
        });
        proxy
    }

    /// Address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
