//! Processes that a request has started, and that run beyond its end. They keep nothing of the
//! boot, or their worker leaves.

use crate::isolation::outside::{script, two_lines_each};
use samovar_testkit::{MariaDb, Postgres, Server, Start, eventually};
use std::path::PathBuf;

/// Starts a daemon, which a request forks twice. It runs `run()` until the server's folder is
/// gone.
const DAEMON: &str = r"
    function daemon(callable $run): void {
        $child = pcntl_fork();
        if ($child === 0) {
            if (pcntl_fork() === 0) {
                posix_setsid();
                file_put_contents(__DIR__ . '/daemon', getmypid());
                while (is_dir(__DIR__)) { $run(); usleep(1000); clearstatcache(true); }
            }
            posix_kill(getmypid(), SIGKILL);
        }
        pcntl_waitpid($child, $status);
        while (!@file_get_contents(__DIR__ . '/daemon')) { usleep(1000); }
        echo 'started';
    }
    function program(): void { echo exec('sleep 300 > /dev/null 2>&1 & echo $!'); }
";

/// The two models that return to the booted state after each request. `page()` responds.
const MODELS: [&str; 2] =
    ["Samovar\\checkpoint(); page();", "Samovar\\serve(function () { page(); }, 1);"];

fn booted(start: Start) -> Server {
    let server = start.start();
    eventually("a booted application", || {
        (server.status()["workers"][0]["model"] != "script").then_some(())
    });
    server
}

fn left(server: &Server) -> u64 {
    server.status()["image"]["refork_total"].as_u64().unwrap_or_default()
}

/// The names of all descriptors of a process.
fn descriptors(pid: &str) -> Vec<PathBuf> {
    let folder = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&folder).expect("the process runs");
    entries.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).collect()
}

fn end(server: &Server, program: &str) {
    server.kill_worker(program.trim().parse().expect("a process number"));
}

#[test]
fn daemon_of_request_takes_no_response_of_next_visitor() {
    let port = two_lines_each();
    for model in MODELS {
        let server = booted(script(&format!(
            "{DAEMON}
             $s = stream_socket_client('tcp://127.0.0.1:{port}'); stream_set_timeout($s, 0, 50000);
             function page() {{
                 global $s;
                 if (isset($_GET['daemon'])) {{
                     daemon(function () use ($s) {{
                         $line = fgets($s);
                         if ($line) {{ file_put_contents(__DIR__ . '/taken', $line); }}
                     }});
                 }} elseif (isset($_GET['ask'])) {{
                     stream_set_timeout($s, 5); fwrite($s, \"bob\\n\"); echo fgets($s), fgets($s);
                 }} else {{ echo getmypid(); }}
             }}
             {model}"
        )));
        let pid = server.get("/").text();
        assert_eq!(server.get("/").text(), pid, "{model}: the unused connection is kept");
        assert_eq!(server.get("/?daemon").text(), "started");
        assert_ne!(server.get("/").text(), pid, "{model}: the daemon has the connection");
        for _ in 0..3 {
            assert_eq!(server.get("/?ask").text(), "1 bob\n2 bob\n", "{model}");
        }
        assert!(!server.folder().join("root/taken").exists(), "{model}");
        server.stop();
    }
}

#[test]
fn daemon_of_request_moves_no_file_of_next_visitor() {
    for model in MODELS {
        let server = booted(script(&format!(
            "{DAEMON}
             $f = fopen(__FILE__, 'r'); stream_set_read_buffer($f, 0);
             function page() {{
                 global $f;
                 if (isset($_GET['daemon'])) {{
                     daemon(function () use ($f) {{ fseek($f, 100); }});
                 }} else {{
                     for ($n = 0; $n < 200; $n++) {{
                         fseek($f, 0); usleep(100); $read = fread($f, 5);
                         if ($read !== '<?php') {{ exit(\"moved: $read\"); }}
                     }}
                     echo 'unmoved';
                 }}
             }}
             {model}"
        )));
        assert_eq!(server.get("/").text(), "unmoved");
        assert_eq!(server.get("/?daemon").text(), "started");
        assert_eq!(server.get("/").text(), "unmoved", "{model}");
        assert_eq!(server.status()["image"]["refork_reasons"]["child"], 1, "{model}");
        server.stop();
    }
}

/// Without a descriptor of the boot there is nothing that a daemon could use.
#[test]
fn daemon_without_descriptors_of_boot_keeps_worker() {
    for model in MODELS {
        let server = booted(script(&format!(
            "{DAEMON}
             function page() {{
                 if (isset($_GET['daemon'])) {{ daemon(fn () => 0); }} else {{ echo getmypid(); }}
             }}
             {model}"
        )));
        let pid = server.get("/").text();
        assert_eq!(server.get("/?daemon").text(), "started");
        assert_eq!(server.get("/").text(), pid, "{model}");
        assert_eq!(left(&server), 0, "{model}");
        server.stop();
    }
}

/// As under php-fpm, a program in the background runs on, and costs no worker.
#[test]
fn program_in_background_has_no_descriptor_of_boot() {
    let port = two_lines_each();
    for model in MODELS {
        let server = booted(script(&format!(
            "{DAEMON}
             $s = stream_socket_client('tcp://127.0.0.1:{port}'); $f = fopen(__FILE__, 'r');
             const RUN = 'sleep 300 > /dev/null 2>&1 & echo $!';
             function page() {{
                 switch ($_GET['by'] ?? '') {{
                     case 'exec': echo exec(RUN); break;
                     case 'shell_exec': echo shell_exec(RUN); break;
                     case 'system': system(RUN); break;
                     case 'passthru': passthru(RUN); break;
                     case 'popen': $p = popen(RUN, 'r'); echo fgets($p); pclose($p); break;
                     case 'proc_open':
                         $p = proc_open(RUN, [1 => ['pipe', 'w']], $pipes);
                         echo fgets($pipes[1]); proc_close($p); break;
                     default: echo getmypid();
                 }}
             }}
             {model}"
        )));
        let pid = server.get("/").text();
        for by in ["exec", "shell_exec", "system", "passthru", "popen", "proc_open"] {
            let program = server.get(&format!("/?by={by}")).text().trim().to_owned();
            let open = descriptors(&program);
            let of_boot = |name: &&PathBuf| {
                let name = name.to_string_lossy();
                name.starts_with("socket:") || name.ends_with("index.php")
            };
            assert_eq!(open.iter().find(of_boot), None, "{by}: {open:?}");
            assert_eq!(server.get("/").text(), pid, "{by}, {model}");
            end(&server, &program);
        }
        assert_eq!(left(&server), 0, "{model}: {}", server.log());
        server.stop();
    }
}

/// A copy of a descriptor stays open in programs.
#[test]
fn copied_descriptor_of_boot_ends_worker() {
    let port = two_lines_each();
    let server = booted(script(&format!(
        "{DAEMON}
             $s = stream_socket_client('tcp://127.0.0.1:{port}'); $f = fopen(__FILE__, 'r');
             const RUN = 'sleep 300 > /dev/null 2>&1 & echo $!';
             Samovar\\checkpoint();
             switch ($_GET['do'] ?? '') {{
                 case 'socket':
                     $run = proc_open(RUN, [$s, ['pipe', 'w']], $pipes); echo fgets($pipes[1]);
                     proc_close($run); Samovar\\kept($s); break;
                 case 'file':
                     $run = proc_open(RUN, [$f, ['pipe', 'w']], $pipes); echo fgets($pipes[1]);
                     proc_close($run); break;
                 case 'sent':
                     socket_create_pair(AF_UNIX, SOCK_STREAM, 0, $pair);
                     socket_sendmsg($pair[0], ['iov' => ['x'], 'control' => [[
                         'level' => SOL_SOCKET, 'type' => SCM_RIGHTS, 'data' => [$f]]]], 0);
                     break;
                 case 'copied': fopen('php://fd/' . fd(), 'r'); break;
                 default: echo getmypid();
             }}
             function fd() {{ foreach (scandir('/proc/self/fd') as $n) {{
                 if (@readlink(\"/proc/self/fd/$n\") === __FILE__) {{ return $n; }} }} }}"
    )));
    for (n, what) in ["socket", "file", "sent"].into_iter().enumerate() {
        let pid = server.get("/").text();
        let program = server.get(&format!("/?do={what}")).text();
        assert_ne!(server.get("/").text(), pid, "{what}: {}", server.log());
        assert_eq!(left(&server), n as u64 + 1, "{what}");
        if !program.is_empty() {
            end(&server, &program);
        }
    }
    let pid = server.get("/").text();
    server.get("/?do=copied");
    assert_eq!(server.get("/").text(), pid, "a copy that no process has got is closed");
    server.stop();
}

/// Sessions at databases end with the worker, as they do when a driver closes its connection,
/// although another process still holds that connection.
#[test]
fn database_lock_ends_with_request_that_starts_process() {
    let mariadb = MariaDb::start();
    let postgres = Postgres::with(&["tea"]);
    let mysql = format!("mysql:unix_socket={}", mariadb.socket().display());
    let pgsql = format!("pgsql:host={};dbname=tea", postgres.folder());
    for (dsn, user, lock, locks) in [
        (&mysql, "root", "SELECT GET_LOCK('tea', 0)", "SELECT COALESCE(IS_USED_LOCK('tea'), 0)"),
        (
            &mysql,
            "root",
            "LOCK TABLES tea.cups WRITE",
            "SET STATEMENT lock_wait_timeout = 1 FOR SELECT COUNT(*) FROM tea.cups",
        ),
        (
            &pgsql,
            "postgres",
            "SELECT pg_advisory_lock(7)",
            "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory'",
        ),
    ] {
        let server = booted(
            script(&format!(
                r"{DAEMON}
                 function connect() {{
                     return new PDO(getenv('DATABASE_DSN'), getenv('DATABASE_USER'), '');
                 }}
                 $db = connect();
                 if (str_starts_with(getenv('DATABASE_DSN'), 'mysql')) {{
                     $db->exec('CREATE DATABASE IF NOT EXISTS tea');
                     $db->exec('CREATE TABLE IF NOT EXISTS tea.cups (n INT)');
                 }}
                 Samovar\checkpoint();
                 if (isset($_GET['lock'])) {{
                     $db->query(getenv('DATABASE_LOCK'));
                     $_GET['lock'] === 'program' ? program() : daemon(fn () => 0);
                     exit;
                 }}
                 echo connect()->query(getenv('DATABASE_LOCKS'))->fetchColumn();"
            ))
            .env("DATABASE_DSN", dsn)
            .env("DATABASE_USER", user)
            .env("DATABASE_LOCK", lock)
            .env("DATABASE_LOCKS", locks),
        );
        assert_eq!(server.get("/").text(), "0", "{}", server.log());
        for by in ["program", "daemon"] {
            let started = server.get(&format!("/?lock={by}")).text();
            eventually(&format!("no lock after {lock} and a {by}"), || {
                (server.get("/").text() == "0").then_some(())
            });
            if by == "program" {
                end(&server, &started);
            }
        }
        server.stop();
    }
}
