//! Access of a page to processes of the same user: the server, its successor, workers of another
//! pool. There is none, regardless of the user that started the server, and of the confinement of
//! files.

use super::{folder, text};
use samovar_testkit::{Server, Start, binary, eventually, is_root};
use std::os::unix::fs::chown;

/// Debian's user for web servers.
const UID: u32 = 33;

/// ?of=PID: lists each way to the process's memory that is not refused, or reports that the process
/// no longer exists. ?run=COMMAND: prints its result.
const PAGE: &str = r#"<?php
if (isset($_GET['run'])) {
    exec($_GET['run'] . ' 2>&1', $lines, $code);
    exit("$code: " . implode("\n", $lines));
}
if (!isset($_GET['of'])) {
    exit('served');
}
$c = FFI::cdef('
    typedef struct { void *base; size_t bytes; } piece;
    long ptrace(int what, int pid, void *address, void *data);
    long process_vm_readv(int pid, piece *local, unsigned long n,
        piece *remote, unsigned long m, unsigned long flags);
    long process_vm_writev(int pid, piece *local, unsigned long n,
        piece *remote, unsigned long m, unsigned long flags);
    int pidfd_open(int pid, unsigned flags);
    int pidfd_getfd(int pidfd, int fd, unsigned flags);
    int *__errno_location(void);
    int waitpid(int pid, int *status, int options);
');
$pid = (int) $_GET['of'];
$gone = false;
$denied = function (int $result) use ($c, &$gone): bool {
    $error = $result < 0 ? $c->__errno_location()[0] : 0;
    $gone = $gone || $error === 3;
    return in_array($error, [1, 13], true);
};
$open = [];
if (!$denied((int) $c->ptrace(0x4206, $pid, null, null))) {
    $open[] = 'ptrace';
}
$page = FFI::addr($c->new('piece'));
$bytes = $c->new('char[8]');
$page->base = FFI::cast('void *', FFI::addr($bytes));
$page->bytes = 8;
// Where nothing is: whoever may look is told that the address is wrong.
$there = FFI::addr($c->new('piece'));
$there->bytes = 8;
foreach (['process_vm_readv', 'process_vm_writev'] as $call) {
    if (!$denied((int) $c->$call($pid, $page, 1, $there, 1, 0))) {
        $open[] = $call;
    }
}
if (!$denied($c->pidfd_getfd($c->pidfd_open($pid, 0), 2, 0))) {
    $open[] = 'pidfd_getfd';
}
foreach (['r', 'r+'] as $mode) {
    if (@fopen("/proc/$pid/mem", $mode)) {
        $open[] = "mem $mode";
    }
}
if (@readlink("/proc/$pid/fd/2") !== false) {
    $open[] = 'fd';
}
// Root may see what perf may see.
if (posix_geteuid() !== 0 && @file_get_contents("/proc/$pid/environ") !== false) {
    $open[] = 'environ';
}
echo $gone || !file_exists("/proc/$pid") ? 'gone' : implode(', ', $open);
"#;

/// The application, and a pool with the same application.
fn two_pools(confined: bool) -> Start {
    let start = Server::script(PAGE).workers(1).define("ffi.enable", "true");
    let beside = folder(&start, "beside");
    std::fs::write(beside.join("index.php"), PAGE).expect("our folder");
    let temporary = text(&folder(&start, "temporary"));
    let start = start.args(["--temp-dir", &temporary]).config(&format!(
        "[[pool]]\nname = 'beside'\nmatch = '/beside/*'\nroot = '{}'\nworkers = 1",
        beside.display()
    ));
    if confined { start.args(["--sandbox-write", &temporary]) } else { start }
}

/// The same, started by root for itself, by root for another user, or by that user.
fn started(by: &str, confined: bool) -> Start {
    let start = two_pools(confined);
    for path in ["", "sessions", "uploads", "temporary"].map(|name| start.folder().join(name)) {
        chown(path, Some(UID), Some(UID)).expect("root may");
    }
    match by {
        "root" => start,
        "root for a user" => {
            // That user may have no access to the workspace.
            let worker = start.folder().join("samovar-php");
            std::fs::copy(binary().with_file_name("samovar-php"), &worker).expect("a copy");
            start.without_root().args(["--user", "www-data", "--php-binary", &text(&worker)])
        }
        _ => start.without_root().as_user(UID),
    }
}

/// The status lists a worker a moment after its fork.
fn worker_of(server: &Server, pool: &str) -> i64 {
    eventually(&format!("a worker of {pool}"), || {
        let status = server.status();
        let mut workers = status["workers"].as_array().expect("workers").iter();
        workers.find(|worker| worker["pool"] == pool)?["pid"].as_i64()
    })
}

/// The parent process of a pool's workers.
fn template_of(server: &Server, pool: &str) -> i64 {
    eventually(&format!("a worker of {pool} that is there"), || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker_of(server, pool)));
        let stat = stat.ok()?;
        let (_, rest) = stat.rsplit_once(") ").expect("a name in brackets");
        rest.split(' ').nth(1)?.parse().ok()
    })
}

/// Ways from a page of a pool to a process. If the worker has been replaced meanwhile, the next one
/// is used.
fn open(server: &Server, from: &str, pid: impl Fn() -> i64) -> String {
    eventually("an answer about a process that is there", || {
        let response = server.get(&format!("{from}?of={}", pid()));
        assert_eq!(response.status, 200, "{response:?}\n{}", server.log());
        Some(response.text()).filter(|ways| ways != "gone")
    })
}

#[test]
fn memory_of_server_and_other_pool_is_inaccessible() {
    if !is_root() {
        return;
    }
    for by in ["root", "root for a user", "a user"] {
        for confined in [false, true] {
            let server = started(by, confined).start();
            let look = |when: &str| {
                let beside = || worker_of(&server, "beside");
                let of_server = || server.pid().into();
                let template = || template_of(&server, "beside");
                let others: [&dyn Fn() -> i64; 3] = [&of_server, &beside, &template];
                for (at, pid) in others.iter().enumerate() {
                    assert_eq!(open(&server, "/", pid), "", "{by}, {confined}, {when}: {at}");
                }
                let own = || worker_of(&server, "default");
                assert_eq!(open(&server, "/beside/", own), "", "{by}, {confined}, {when}");
            };
            look("at the start");
            let order =
                format!("{} stop --control {}", binary().display(), text(&server.control()));
            let said = server.get(&format!("/?run={}", order.replace(' ', "%20"))).text();
            assert!(!said.starts_with("0: "), "{by}, {confined}: {said}");
            let before = server.pid();
            server.upgrade([]).expect("an upgrade");
            assert_ne!(server.pid(), before);
            look("after an upgrade");
            server.stop();
        }
    }
}

/// Without the fence, workers can trace each other as without a server. The server itself remains
/// inaccessible.
#[test]
fn workers_without_fence_are_accessible_and_server_is_not() {
    if !is_root() {
        return;
    }
    let server = started("a user", false).args(["--sandbox-isolate-processes=false"]).start();
    let ways = open(&server, "/", || worker_of(&server, "beside"));
    if std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_err() {
        let all =
            "ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, mem r, mem r+, fd, environ";
        assert_eq!(ways, all);
    }
    assert_eq!(open(&server, "/beside/", || server.pid().into()), "");
    server.upgrade([]).expect("an upgrade");
    assert_eq!(open(&server, "/beside/", || server.pid().into()), "");
    server.stop();
}

/// The fence affects neither renaming and linking of files, nor signals.
#[test]
fn fence_permits_file_operations_and_signals() {
    let server = two_pools(false).start();
    let folder = folder_of(&server);
    let run = |command: &str| {
        let said = server.get(&format!("/?run={}", command.replace(' ', "%20"))).text();
        assert!(said.starts_with("0: "), "{command}: {said}");
    };
    for command in [
        "mkdir FOLDER/a FOLDER/b",
        "touch FOLDER/a/x",
        "mv FOLDER/a/x FOLDER/b/y",
        "ln FOLDER/b/y FOLDER/a/z",
        "mv FOLDER/a FOLDER/b/c",
        "ln -s /etc FOLDER/b/etc",
        "rm -r FOLDER/b",
    ] {
        run(&command.replace("FOLDER", &folder));
    }
    run(&format!("kill -0 {}", server.pid()));
    run(&format!("kill -0 {}", worker_of(&server, "beside")));
    server.stop();
}

fn folder_of(server: &Server) -> String {
    text(&server.folder().join("temporary"))
}
