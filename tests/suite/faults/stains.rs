//! Taint: a process whose state was changed by a request runs no other request.

use crate::faults::stage::{is_alive, wait_for_ends};
use samovar_testkit::http::Request;
use samovar_testkit::{Server, Start, is_root};

/// Changes that a request can make to its process and that PHP does not undo. The second list is
/// for root only.
const STAINS: &[(&str, &str)] = &[
    ("timer", "pcntl_alarm(3600);"),
    ("signal", "pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1, SIGWINCH]);"),
    ("privileges", "proc_nice(3);"),
    ("privileges", "pcntl_setpriority(4);"),
    ("privileges", "posix_setrlimit(POSIX_RLIMIT_NOFILE, 100, 100);"),
    ("privileges", "posix_setpgid(0, 0);"),
    ("privileges", "posix_setsid();"),
    ("privileges", "file_put_contents('/proc/self/oom_score_adj', '717');"),
];
const ROOTS_STAINS: &[(&str, &str)] = &[
    ("privileges", "chroot('/tmp');"),
    ("privileges", "posix_seteuid(65534);"),
    ("privileges", "posix_setegid(65534);"),
    ("privileges", "posix_setuid(65534);"),
    ("privileges", "posix_setgid(65534);"),
    ("privileges", "posix_initgroups('nobody', 65534);"),
    ("privileges", "pcntl_unshare(CLONE_NEWUTS);"),
];

/// Process state that a request can observe.
const STATE: &str = r"function state(): string {
    preg_match_all('~^(?:Uid|Gid|Groups|SigBlk|SigIgn|SigCgt|CapEff):.*~m',
        file_get_contents('/proc/self/status'), $of);
    $stat = explode(' ', preg_replace('~.*\) ~s', '', file_get_contents('/proc/self/stat')));
    $alarm = pcntl_alarm(0);
    $at = posix_getpgid(0) === posix_getpgid(posix_getppid()) ? 'own group' : 'other group';
    return json_encode([$of, $stat[16], $alarm, $at,
        posix_getsid(0) === posix_getsid(posix_getppid()),
        readlink('/proc/self/root'), readlink('/proc/self/ns/uts'),
        file_get_contents('/proc/self/limits'), file_get_contents('/proc/self/oom_score_adj')]);
}
";

fn stains() -> Vec<(&'static str, &'static str)> {
    let roots = if is_root() { ROOTS_STAINS } else { &[] };
    STAINS.iter().chain(roots).copied().collect()
}

/// Starts a server. `response` is the script, with `RESPONSE` in place of the code that handles the
/// request.
fn server(response: &str) -> Server {
    let case = |(at, (_, call))| format!("case '/{at}': {call} echo 'done'; break;\n");
    let cases: Vec<String> = stains().into_iter().enumerate().map(case).collect();
    let cases = cases.concat();
    let response = response.replace(
        "ANSWER",
        &format!("switch ($_SERVER['REQUEST_URI']) {{ {cases} default: echo state(); }}"),
    );
    let start: Start = Server::script(&format!("<?php {STATE} {response}"));
    start.workers(1).args(["--log-level", "info"]).start()
}

fn assert_no_stain_stays(server: &Server) {
    let clean = server.get("/state").text();
    for (at, (reason, call)) in stains().iter().enumerate() {
        let worker = server.worker_pid();
        let done = server.get(&format!("/{at}"));
        assert_eq!((done.status, &*done.text()), (200, "done"), "{call}\n{}", server.log());
        let next = server.get("/state");
        assert_eq!(next.text(), clean, "after {call}");
        wait_for_ends(&[worker]);
        server.wait_for_log(&format!("pid={worker} reason=\"{reason}\""));
    }
    let status = server.status();
    assert_eq!(status["worker_restarts_total"], 0, "none is a death: {status}");
}

#[test]
fn tainted_script_worker_runs_no_other_request() {
    let server = server("ANSWER");
    assert_no_stain_stays(&server);
    // A request that restores all state keeps its worker.
    let worker = server.worker_pid();
    server.get("/state");
    assert!(is_alive(worker) && server.worker_pids() == [worker]);
    server.stop();
}

#[test]
fn tainted_resident_worker_runs_no_other_request() {
    let server = server("Samovar\\serve(function () { ANSWER });");
    assert_no_stain_stays(&server);
    server.stop();
}

#[test]
fn restored_process_state_keeps_worker() {
    let server = Server::script(
        "<?php pcntl_alarm(100); pcntl_alarm(0);
         pcntl_sigprocmask(SIG_BLOCK, [SIGUSR1], $before); pcntl_sigprocmask(SIG_SETMASK, $before);
         pcntl_signal(SIGTERM, function () {}); pcntl_signal(SIGWINCH, function () {});
         exec('true');
         echo getmypid();",
    );
    let server = server.workers(1).args(["--log-level", "info"]).start();
    let first = server.get("/").text();
    for _ in 0..5 {
        assert_eq!(server.get("/").text(), first, "{}", server.log());
    }
    server.stop();
}

#[test]
fn signal_handler_does_not_persist_into_next_request() {
    for handler in ["function () {}", "SIG_IGN"] {
        let script = format!(
            "<?php if ($_SERVER['REQUEST_URI'] === '/set') {{
                 pcntl_signal(SIGALRM, {handler}); exit('set'); }}
             posix_kill(getmypid(), SIGALRM); usleep(100_000); echo 'lived';"
        );
        let server = Server::script(&script).workers(1).start();
        assert_eq!(server.get("/set").text(), "set");
        let raised = server.client().request(&Request::form("/raise", "a=b"));
        assert_eq!(raised.status, 502, "{handler}");
        server.wait_for_log("was killed by signal 14");
        server.stop();
    }
}

#[test]
fn forked_child_process_reacts_to_termination_signals() {
    for signal in ["SIGTERM", "SIGINT", "SIGHUP"] {
        let script = format!(
            "<?php $child = pcntl_fork();
             if ($child === 0) {{ while (true) {{ usleep(1000); }} }}
             posix_kill($child, {signal});
             pcntl_waitpid($child, $status);
             $ended = pcntl_wifsignaled($status) && pcntl_wtermsig($status) === {signal};
             echo $ended ? 'ended' : 'not';"
        );
        let server = Server::script(&script).workers(1).args(["--response-timeout", "5s"]).start();
        assert_eq!(server.get("/").text(), "ended", "{signal}: {}", server.log());
        server.stop();
    }
}
