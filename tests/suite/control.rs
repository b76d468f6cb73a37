//! The control socket: silent clients, invalid commands and long commands do not block other
//! clients.

use samovar_testkit::{Server, eventually};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

const NOBODY: u32 = 65534;

fn server() -> Server {
    Server::script("<?php echo 'up';").workers(1).start()
}

fn connect(server: &Server) -> UnixStream {
    UnixStream::connect(server.control()).expect("a control socket")
}

/// Sends `bytes` and returns the whole response.
fn response_to(server: &Server, bytes: &[u8]) -> String {
    let mut client = connect(server);
    // The server may respond before it has read everything.
    let _ = client.write_all(bytes);
    let _ = client.shutdown(std::net::Shutdown::Write);
    let mut response = Vec::new();
    let _ = client.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

fn threads(server: &Server) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid()));
    tasks.expect("our server").count()
}

#[test]
fn silent_control_clients_block_no_client_and_use_no_thread() {
    let server = server();
    server.status();
    let before = threads(&server);
    let mut silent: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    assert_eq!(server.status()["draining"], false);
    // More than the server keeps open at the same time.
    silent.extend((0..200).map(|_| connect(&server)));
    for client in silent.iter_mut().step_by(3) {
        // Half a line. Connections that the server has closed do not receive it.
        let _ = client.write_all(b"stat");
    }
    assert_eq!(server.status()["draining"], false);
    assert_eq!(threads(&server), before);
    for mut client in silent {
        // End of file, or a reset because the server did not read the half line.
        let end = client.read(&mut [0; 8]).map_err(|error| error.kind());
        assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
    }
}

#[test]
fn invalid_control_command_gets_error_or_is_closed() {
    let server = server();
    let unknown = "{\"error\":\"unknown command; the commands are status, figures, facts, \
                   profile, calls, boot, includes, queue, schedule, record, replay, reload, \
                   canary, upgrade and stop\"}
";
    for nonsense in [&b"dance\n"[..], b"\n", b"\xff\xfe\0\n", b"status stop\n", b"stop it"] {
        assert_eq!(response_to(&server, nonsense), unknown, "{nonsense:?}");
    }
    assert_eq!(response_to(&server, &vec![b'x'; 1 << 20]), unknown);
    assert_eq!(response_to(&server, b""), "");
    for plain in [&b"status\n"[..], b"status", b" status \r\n", b"status\nstop\n"] {
        assert!(response_to(&server, plain).starts_with("{\"version\""), "{plain:?}");
    }
    // In pieces, as a slow terminal sends it.
    let mut client = connect(&server);
    for piece in [&b"sta"[..], b"tus", b"\n"] {
        client.write_all(piece).expect("a client that is heard");
        server.status();
    }
    let mut response = String::new();
    client.read_to_string(&mut response).expect("an answer");
    assert!(response.ends_with("}\n"), "{response}");
    for _ in 0..50 {
        // The client disconnects before the response.
        connect(&server).write_all(b"status\n").expect("a client that is heard");
    }
    assert_eq!(server.get("/").text(), "up");
    assert_eq!(server.status()["draining"], false);
    server.stop();
}

#[test]
fn long_reload_blocks_no_control_client() {
    let start = Server::script("");
    let go = start.folder().join("go");
    let php = format!(
        "<?php while (!file_exists('{0}')) {{ usleep(1000); clearstatcache(); }}
         Samovar\\serve(function () {{ echo 'up'; }});",
        go.display()
    );
    std::fs::write(start.folder().join("root/index.php"), php).expect("our own folder");
    std::fs::write(&go, "").expect("our own folder");
    let server = start.workers(1).start();
    std::fs::remove_file(&go).expect("our own folder");
    let before = threads(&server);
    let mut waiting = connect(&server);
    waiting.write_all(b"reload\n").expect("a client that is heard");
    eventually("a reload", || (server.status()["reloading"] == true).then_some(()));
    let mut others: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    for other in &mut others {
        other.write_all(b"reload\n").expect("a client that is heard");
        let mut response = String::new();
        other.read_to_string(&mut response).expect("an answer");
        assert!(response.contains("another reload is in progress"), "{response}");
    }
    // Many silent clients do not displace a client that waits for its response.
    let _silent: Vec<_> = (0..100).map(|_| connect(&server)).collect();
    assert_eq!(server.status()["reloading"], true);
    assert_eq!(threads(&server), before);
    std::fs::write(&go, "").expect("our own folder");
    let mut response = String::new();
    waiting.read_to_string(&mut response).expect("an answer");
    assert!(response.starts_with("{\"generation\":2,"), "{response}");
    assert_eq!(server.get("/").text(), "up");
    server.stop();
}

#[test]
fn unreachable_server_is_explained_with_hint() {
    let server = server();
    let folder = server.folder();
    let ask = |socket: &std::path::Path, uid: u32| {
        let mut command = Command::new(samovar_testkit::binary());
        command.args(["status", "--control"]).arg(socket).current_dir("/");
        if uid != 0 {
            command.uid(uid).gid(uid);
        }
        let output = command.output().ok()?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let stale = folder.join("stale.sock");
    drop(UnixListener::bind(&stale).expect("a socket"));
    let text = ask(&stale, 0).expect("the binary runs");
    assert!(
        text.contains("Connection refused")
            && text.contains("hint: the server exited without removing the socket")
    );
    let text = ask(&folder.join("absent.sock"), 0).expect("the binary runs");
    assert!(text.contains("hint: check that the server is running"), "{text}");
    // Only root can run the command as another user. That user may be unable to start the program
    // here.
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700)).expect("our own folder");
    if let Some(text) = ask(&server.control(), NOBODY) {
        assert!(text.contains("hint: the folder of the socket belongs to another user"), "{text}");
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o755)).expect("our own folder");
        let text = ask(&server.control(), NOBODY).expect("the binary runs");
        assert!(
            text.contains(
                "hint: the server belongs to user 0; only that user and root may send commands"
            ),
            "{text}"
        );
    }
}
