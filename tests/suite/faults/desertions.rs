//! Servers that are killed at any moment: none of their processes is left.

use crate::faults::stage::{app, file_of, read_when_there};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, eventually, processes_naming};
use std::path::Path;
use std::time::Duration;

/// Number of kills for each kind of server.
const ENDS: u64 = 20;
/// All processes have started by then. The kills come before this time and shortly after it.
const START_MS: u64 = 400;

fn assert_deserted(folder: &Path, when: &str) {
    eventually(&format!("{when}: the end of all processes that name {}", folder.display()), || {
        processes_naming(folder).is_empty().then_some(())
    });
}

/// Kills servers at moments spread over their start. Checks for remaining processes after all of
/// them were killed.
fn end_suddenly(name: &str, start: impl Fn() -> Start) {
    let after = |end| Duration::from_millis(end * 7 % ENDS * START_MS / ENDS + 3 * end % 11);
    let folders: Vec<_> = (0..ENDS).map(|end| (end, start().perish(after(end)))).collect();
    for (end, folder) in &folders {
        assert_deserted(folder.path(), &format!("{name}, after {:?}", after(*end)));
    }
}

#[test]
fn server_killed_during_start_leaves_no_process() {
    end_suddenly("script model", || app().workers(12));
    let boots = "<?php usleep(20_000); Samovar\\checkpoint(); echo 'up';";
    end_suddenly("checkpoint model", || Server::script(boots).workers(12));
}

#[test]
fn server_killed_during_worker_replacement_leaves_no_process() {
    for end in 0..8 {
        let server = app().workers(8).start();
        for pid in server.worker_pids() {
            server.kill_worker(pid);
        }
        std::thread::sleep(Duration::from_millis(end));
        let folder = server.perish();
        assert_deserted(folder.path(), &format!("{end} ms after its workers"));
    }
}

#[test]
fn worker_with_changed_user_ends_with_killed_server() {
    if !samovar_testkit::is_root() {
        return; // Only root can change its user.
    }
    for call in ["posix_seteuid(65534)", "posix_setuid(65534)", "posix_setegid(65534)"] {
        let script = format!(
            "<?php $done = {call}; file_put_contents($_GET['file'], $done ? 'changed' : 'not'); \
             while (true) {{ usleep(1000); }}"
        );
        let server = Server::script(&script).workers(1).start();
        let file = file_of(&server, "uploads/changed");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        for folder in [server.folder().to_owned(), server.folder().join("uploads")] {
            std::fs::set_permissions(folder, Clone::clone(&open)).expect("our own folder");
        }
        let mut client = server.client();
        client.send(&Request::get(&format!("/?file={}", file.display())).bytes());
        assert_eq!(read_when_there(&file), "changed", "{call}");
        let folder = server.perish();
        assert_deserted(folder.path(), call);
    }
}
