//! Interface to a service manager: inherited sockets with waiting connections, and notifications.

use crate::service::text;
use samovar_testkit::http::Client;
use samovar_testkit::{Server, WATCHDOG, binary};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;

#[test]
fn restart_with_inherited_socket_loses_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let php = "<?php $listeners = [];
        foreach (file('/proc/net/tcp') as $line) {
            $column = preg_split('/ +/', trim($line));
            $listeners[] = \"socket:[$column[9]]\";
        }
        $link = fn ($fd) => (string) @readlink(\"/proc/self/fd/$fd\");
        $held = array_map($link, scandir('/proc/self/fd'));
        echo json_encode([
            getenv('LISTEN_FDS'), getenv('LISTEN_PID'), $_SERVER['LISTEN_FDNAMES'] ?? null,
            count($listeners) > 1, array_values(array_intersect($held, $listeners))]);";
    let first = Server::script(php).workers(1).inherit(&listener).start();
    assert_eq!(first.address(), address, "`--listen` does not count then");
    assert_eq!(
        first.get("/").text(),
        "[false,false,null,true,[]]",
        "neither the variables nor the socket reach PHP"
    );
    first.stop();
    // No server runs; the kernel accepts the connection nevertheless.
    let mut waiting = Client::connect(address);
    waiting.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let second = Server::script("<?php echo 'second';").workers(1).inherit(&listener).start();
    assert_eq!(waiting.read(false).text(), "second");
    second.stop();
}

#[test]
fn invalid_inherited_descriptor_is_refused() {
    // Descriptor 3 is then a file, or not open.
    let start = |shell: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let script =
            format!("LISTEN_PID=$$ LISTEN_FDS=$1 exec \"$0\" serve . --allow-root {shell}");
        let output = Command::new("sh")
            .args(["-c", &script])
            .arg(binary())
            .arg("1")
            .current_dir(folder.path())
            .output()
            .expect("a shell");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    for (shell, said) in [("3</dev/null", "is not a listening TCP socket"), ("3<&-", "is not open")]
    {
        let log = start(shell);
        assert!(log.contains("inherited descriptor 3") && log.contains(said), "{log}");
        assert!(log.contains("hint: "), "{log}");
    }
}

#[test]
fn backlog_holds_hundreds_of_connections() {
    const CLIENTS: usize = 400;
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("Linux");
    let most: usize = most.trim().parse().expect("a number");
    let server = Server::script("<?php echo 1;").workers(1).start();
    server.pause();
    // With a backlog of 128, the other clients could not connect until the server continues.
    let clients: Vec<_> = (0..CLIENTS.min(most))
        .map(|_| {
            TcpStream::connect_timeout(&server.address(), WATCHDOG).expect("the queue has room")
        })
        .collect();
    server.resume();
    drop(clients);
    assert_eq!(server.get("/").text(), "1");
}

#[test]
fn backlog_capped_by_kernel_is_reported() {
    let server = Server::script("<?php").args(["--listen-backlog", "1048576"]).start();
    server.wait_for_log("`listen_backlog` is capped by net.core.somaxconn");
}

struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Manager {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(WATCHDOG)).expect("a time-out");
        Manager { socket, path, _folder: folder }
    }

    /// Waits for the next message with this line. Returns the messages before it.
    fn wait_for(&self, wanted: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            let mut buffer = [0; 1000];
            let len = self.socket.recv(&mut buffer).unwrap_or_else(|e| {
                panic!("no `{wanted}` ({e}), but {before:?}");
            });
            let message = text(&buffer[..len]);
            if message.lines().any(|line| line == wanted) {
                before.push(message);
                return before;
            }
            before.push(message);
        }
    }
}

#[test]
fn service_manager_is_notified_of_state() {
    let manager = Manager::new();
    let php = "<?php echo json_encode([getenv('NOTIFY_SOCKET'), getenv('WATCHDOG_USEC')]);";
    let server = Server::script(php)
        .workers(1)
        .env("NOTIFY_SOCKET", &manager.path.to_string_lossy())
        .env("WATCHDOG_USEC", "600000")
        .start();
    let first = manager.wait_for("READY=1");
    let told = first.last().expect("the message");
    assert!(told.contains(&format!("generation 1 serves http://{}", server.address())), "{told}");
    assert_eq!(server.get("/").text(), "[false,false]");
    manager.wait_for("WATCHDOG=1");
    server.reload().expect("a reload");
    let reloading = manager.wait_for("RELOADING=1");
    assert!(reloading.last().is_some_and(|m| m.contains("MONOTONIC_USEC=")), "{reloading:?}");
    let ready = manager.wait_for("READY=1");
    assert!(ready.last().is_some_and(|m| m.contains("generation 2 serves")), "{ready:?}");
    // A stopped supervisor sends no further notifications.
    server.pause();
    manager.socket.set_nonblocking(true).expect("a flag");
    while manager.socket.recv(&mut [0; 1000]).is_ok() {}
    std::thread::sleep(std::time::Duration::from_millis(700));
    assert!(manager.socket.recv(&mut [0; 1000]).is_err(), "no sign of life");
    manager.socket.set_nonblocking(false).expect("a flag");
    server.resume();
    manager.wait_for("WATCHDOG=1");
    server.stop();
    manager.wait_for("STOPPING=1");
}

#[test]
fn deaf_service_manager_is_harmless() {
    let server = Server::script("<?php echo 1;").env("NOTIFY_SOCKET", "/no/such/socket").start();
    assert_eq!(server.get("/").text(), "1");
    server.wait_for_log("cannot reach the service manager");
    let log = server.stop();
    assert!(!log.contains("panic"), "{log}");
}
