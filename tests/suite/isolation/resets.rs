//! A process that a request has forked uses a connection of the boot while the worker resets it.

use crate::isolation::outside::script;
use samovar_testkit::{Postgres, eventually};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

const PACKET_BYTES_MAX: usize = 64 * 1024;

/// Forwards all connections to PostgreSQL. A reset waits until the daemon has sent its statement.
/// The statement follows with the next packet, after the worker has read the response to its reset.
fn proxy(folder: &Path, server: PathBuf, reset: PathBuf) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).expect("a new folder");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&server).expect("PostgreSQL runs");
            let [mut from, mut to] =
                [&server, &client].map(|one| one.try_clone().expect("a descriptor"));
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let reset = reset.clone();
            std::thread::spawn(move || forward(client, server, &reset));
        }
    });
}

fn contains(packet: &[u8], word: &str) -> bool {
    packet.windows(word.len()).any(|part| part == word.as_bytes())
}

fn forward(mut client: UnixStream, mut server: UnixStream, reset: &Path) {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    let mut held = Vec::new();
    let mut late = Vec::new();
    while let Ok(len @ 1..) = client.read(&mut packet) {
        let packet = &packet[..len];
        if contains(packet, "DISCARD ALL") && reset.with_extension("daemon").exists() {
            held = packet.to_vec();
            File::create(reset).expect("the server's folder");
        } else if contains(packet, "of a daemon") {
            late = packet.to_vec();
            server.write_all(&std::mem::take(&mut held)).expect("PostgreSQL runs");
        } else {
            let _ = server.write_all(&std::mem::take(&mut late));
            let _ = server.write_all(packet);
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn connection_used_by_daemon_during_its_reset_is_not_kept() {
    let postgres = Postgres::with(&["tea"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = folder.path().join("proxy");
    std::fs::create_dir(&place).expect("a new folder");
    let reset = folder.path().join("reset");
    proxy(&place, PathBuf::from(postgres.folder()).join(".s.PGSQL.5432"), reset.clone());
    let server = script(&format!(
        r#"$link = pg_connect('host={place} dbname=tea user=postgres');
        Samovar\checkpoint();
        if (isset($_GET['change'])) {{
            pg_query($link, "SET app.who = 'ann'");
        }}
        if (isset($_GET['daemon'])) {{
            touch('{reset}.daemon');
            if (pcntl_fork() === 0) {{
                if (pcntl_fork() === 0) {{
                    while (!file_exists('{reset}')) {{ usleep(1000); clearstatcache(); }}
                    pg_send_query($link, "SET app.who = 'of a daemon'");
                }}
                posix_kill(posix_getpid(), SIGKILL);
            }}
            pcntl_wait($status);
        }}
        if (isset($_GET['look'])) {{
            $result = pg_query($link, "SELECT current_setting('app.who', true)");
            echo json_encode(pg_fetch_row($result));
        }}
        echo ' ', getmypid();"#,
        place = place.display(),
        reset = reset.display(),
    ))
    .start();
    eventually("a worker that has booted", || {
        (server.status()["workers"][0]["model"] == "checkpoint").then_some(())
    });
    // The first reset of a worker is checked with further queries.
    let first = server.get("/?change").text();
    assert_eq!(server.get("/?change").text(), first, "a reset keeps the worker");
    assert_eq!(server.get("/?change&daemon").text(), first);
    let look = server.get("/?look").text();
    let (who, worker) = look.split_once(' ').expect("a setting and a process");
    assert!(matches!(who, "[null]" | r#"[""]"#), "{look}");
    assert_ne!(worker, first.trim(), "the worker of the daemon");
    server.stop();
}
