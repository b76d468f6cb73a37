//! The command line as a whole: sources of settings, errors for wrong settings, status, stop.

use samovar_testkit::{Server, Start, WATCHDOG, binary, eventually, family, workspace};
use std::fmt::Write as _;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `samovar` to its end, in `folder`, without the tester's environment.
fn samovar(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(args).current_dir(folder).env_clear().stdin(Stdio::null());
    command.env(family::RUN, family::run());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A script that responds with a PHP setting.
fn setting() -> Start {
    Server::script(
        "<?php echo isset($_GET['sapi']) ? PHP_SAPI . ' ' . php_sapi_name()
            : ini_get($_GET['name']);",
    )
    .workers(1)
}

fn memory_limit(start: Start) -> String {
    start.start().get("/?name=memory_limit").text()
}

#[test]
fn flag_overrides_environment_and_environment_overrides_file() {
    let file = |start: Start| start.plain_ini().config("php.memory_limit = \"33M\"");
    let env = |start: Start| start.env("SAMOVAR_PHP", "memory_limit=44M");
    let flag = |start: Start| start.define("memory_limit", "55M");
    assert_eq!(memory_limit(file(setting())), "33M");
    assert_eq!(memory_limit(env(file(setting()))), "44M");
    assert_eq!(memory_limit(flag(env(file(setting())))), "55M");
    let workers = |start: Start| start.start().worker_pids().len();
    let base = || Server::script("<?php").config("workers = 3");
    assert_eq!(workers(base()), 3);
    assert_eq!(workers(base().env("SAMOVAR_WORKERS", "2")), 2);
    assert_eq!(workers(base().env("SAMOVAR_WORKERS", "")), 3, "an empty variable is none");
    assert_eq!(workers(base().env("SAMOVAR_WORKERS", "2").workers(1)), 1);
    assert_eq!(workers(base().workers(2).workers(1)), 1, "of two flags the last holds");
}

#[test]
fn config_file_of_working_directory_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("samovar.toml"), "workers = 0\n").expect("our own folder");
    let refused = samovar(folder.path(), &["serve"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("samovar.toml:1: `workers = 0`"), "{}", stderr(&refused));
    let other = samovar(folder.path(), &["serve", "--config", "absent.toml"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("absent.toml"), "{}", stderr(&other));
    let named = folder.path().join("named.toml").to_string_lossy().into_owned();
    let mut command = Command::new(binary());
    command.arg("serve").current_dir(folder.path()).env_clear().env("SAMOVAR_CONFIG", &named);
    command.env(family::RUN, family::run());
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("named.toml"), "{}", stderr(&output));
}

/// Each file has an error. The message must contain each of the given parts.
#[test]
fn invalid_config_file_is_rejected_with_line_and_hint() {
    for (toml, said) in [
        ("wrokers = 4", &[":1: unknown key `wrokers`", "hint: did you mean `workers`?"][..]),
        ("\n\nlisten_to = 1", &[":3: unknown key `listen_to`", "hint: "]),
        ("[limits]\nbody_max = 1", &[":2: unknown key `limits.body_max`", "hint: "]),
        ("[timeout]\nidle = \"1s\"", &[":1: unknown key `timeout`", "`timeouts`"]),
        ("workers = 0", &[":1: `workers = 0` is not allowed", "from 1 to 1024"]),
        ("workers = \"many\"", &[":1: ", "`auto`, a whole number"]),
        ("listen = [\"nowhere\"]", &[":1: ", "hint: "]),
        ("static_files = 1", &[":1: ", "`true` or `false`"]),
        ("[timeouts]\nidle = 5", &[":2: ", "such as"]),
        ("[timeouts]\nidle = \"5 parsecs\"", &[":2: ", "such as"]),
        ("[limits]\nbody_bytes_max = \"0\"", &[":2: ", "a size from"]),
        ("trusted_proxies = [\"10.0.0.0/99\"]", &[":1: ", "10.0.0.0/8"]),
        ("access_log_format = \"apache\"", &[":1: ", "`combined` or `json`"]),
        ("workers = ", &[":1: invalid TOML"]),
    ] {
        let (code, log) = Server::script("<?php").config(toml).refuse();
        assert_eq!(code, Some(2), "{toml:?}: {log}");
        for word in said {
            assert!(log.contains(word), "{toml:?}: `{word}` is missing in:\n{log}");
        }
        assert!(!log.contains("listening"), "{toml:?}: {log}");
    }
}

#[test]
fn all_config_errors_are_reported_together() {
    let start = Server::script("<?php").config("workers = 0\nwrokers = 1\n[limits]\nqueue_max = 1");
    let start = start.env("SAMOVAR_STATIC_FILES", "perhaps").args(["--idle-timeout", "soon"]);
    let (code, log) = start.refuse();
    assert_eq!(code, Some(2));
    for word in [":1: ", ":2: ", ":4: ", "SAMOVAR_STATIC_FILES", "--idle-timeout"] {
        assert!(log.contains(word), "`{word}` is missing in:\n{log}");
    }
    assert_eq!(log.matches("hint: ").count(), 5, "{log}");
}

#[test]
fn invalid_command_line_is_rejected() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (args, said) in [
        (&["serve", "--wokers", "4"][..], &["unknown flag `--wokers`", "`--workers`"][..]),
        (&["serve", "--workers"], &["--workers", "whole number"]),
        (&["serve", "--workers", "none"], &["--workers", "from 1 to 1024"]),
        (&["serve", "a", "b"], &["unexpected argument `b`"]),
        (&["serve", "/no/such/folder"], &["/no/such/folder", "hint: "]),
        (&["serve", "--php", "novalue"], &["novalue", "hint: "]),
        (&["serve", "--php-ini", "/no/such.ini"], &["/no/such.ini", "hint: "]),
        (&["serv"], &["unknown command `serv`", "`serve`"]),
        (&["status", "--xml"], &["unknown flag `--xml`"]),
        (&["stop", "now"], &["`now`"]),
        (&[], &["Usage: samovar"]),
    ] {
        let output = samovar(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}: stdout is for data");
        for word in said {
            let text = stderr(&output);
            assert!(text.contains(word), "{args:?}: `{word}` is missing in:\n{text}");
        }
    }
}

#[test]
fn help_lists_every_flag() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings =
        std::fs::read_to_string(workspace().join("docs/reference/settings.md")).expect("docs");
    let help = stdout(&samovar(folder.path(), &["serve", "--help"]));
    let documented: Vec<_> =
        settings.split("`--").skip(1).filter_map(|rest| rest.split([' ', '`']).next()).collect();
    assert!(documented.len() > 25, "{documented:?}");
    for flag in documented {
        assert!(help.contains(&format!("--{flag}")), "--{flag} is missing in:\n{help}");
    }
    for (command, words) in [
        (&["--help"][..], &["serve", "status", "stop", "Examples:"][..]),
        (&["serve", "-h"], &["--listen", "--workers", "--config"]),
        (&["status", "--help"], &["--json", "--control"]),
        (&["stop", "--help"], &["--control"]),
        (&["--version"], &["samovar 0."]),
        (&["version"], &["samovar 0."]),
    ] {
        let output = samovar(folder.path(), command);
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{command:?}");
        for word in words {
            let text = stdout(&output);
            assert!(text.contains(word), "{command:?}: `{word}` is missing in:\n{text}");
        }
    }
}

#[test]
fn server_listens_on_several_addresses() {
    let server = setting().args(["--listen", "127.0.0.1:0", "--listen", "[::1]:0"]).start();
    let status = server.status();
    let addresses: Vec<_> = status["listen"].as_array().expect("a list").iter().collect();
    assert_eq!(addresses.len(), 3, "{status}");
    for address in addresses {
        let address = address.as_str().expect("an address").parse().expect("an address");
        let mut client = samovar_testkit::http::Client::connect(address);
        assert_eq!(client.get("/?sapi").text(), "fpm-fcgi fpm-fcgi", "{address}");
        assert!(server.log().contains(&format!("http://{address}")), "{}", server.log());
    }
}

#[test]
fn address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("bound").to_string();
    let (code, log) = setting().args(["--listen", &address]).refuse();
    assert_eq!(code, Some(1));
    assert!(log.contains(&format!("cannot bind `{address}`")) && log.contains("hint: "), "{log}");
}

#[test]
fn unusable_php_binary_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let broken = folder.path().join("samovar-php");
    std::fs::write(&broken, "#!/bin/sh\necho 'no PHP here' >&2\nexit 3\n").expect("our folder");
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).expect("our own file");
    let broken = broken.to_string_lossy().into_owned();
    for (args, said) in [
        (["--php-binary", "/no/such/php"], &["/no/such/php", "does not exist", "hint: "][..]),
        (["--php-binary", "4.4"], &["samovar-php4.4", "looked in", "hint: "]),
        (["--php-binary", "/etc/passwd"], &["is not an executable file", "hint: "]),
        (["--php-binary", &broken], &["no PHP here", "exited with status 3", "hint: "]),
    ] {
        let (code, log) = setting().args(args).refuse();
        assert_eq!(code, Some(1), "{args:?}: {log}");
        for word in said {
            assert!(log.contains(word), "{args:?}: `{word}` is missing in:\n{log}");
        }
    }
}

#[test]
fn php_ini_and_directives_take_effect() {
    const E_NOTICE: u32 = 8;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let ini = folder.path().join("my.ini");
    std::fs::write(&ini, "memory_limit = 21M\nprecision = 5\nuser_agent = \"from; file\"\n")
        .expect("our own folder");
    let ini = ini.to_string_lossy().into_owned();
    let toml = "[php]\nprecision = 6\nopcache.validate_timestamps = false\n\
                error_reporting = \"E_ALL & ~E_NOTICE\"";
    let get = |server: &Server, name: &str| server.get(&format!("/?name={name}")).text();
    let plain = setting().plain_ini().args(["--php-ini", &ini]).start();
    assert_eq!(get(&plain, "memory_limit"), "21M");
    assert_eq!(get(&plain, "precision"), "5");
    assert_eq!(get(&plain, "user_agent"), "from; file");
    let over = setting().plain_ini().args(["--php-ini", &ini]).config(toml).start();
    assert_eq!(get(&over, "memory_limit"), "21M");
    assert_eq!(get(&over, "precision"), "6");
    assert_eq!(get(&over, "opcache.validate_timestamps"), "0");
    let expected = samovar_testkit::php::all_errors() & !E_NOTICE;
    assert_eq!(get(&over, "error_reporting"), expected.to_string());
}

#[test]
fn directive_value_is_passed_literally() {
    for (toml, value) in [
        ("plain words", "plain words"),
        ("a; b", "a; b"),
        ("a \\\"b\\\" c", "a \"b\" c"),
        ("a = b & c", "a = b & c"),
        ("/path with/spaces;", "/path with/spaces;"),
    ] {
        let toml = format!("[php]\nuser_agent = \"{toml}\"\nprecision = 9");
        let server = setting().plain_ini().config(&toml).start();
        assert_eq!(server.get("/?name=user_agent").text(), value, "{toml}");
        assert_eq!(server.get("/?name=precision").text(), "9", "what stands behind {toml}");
    }
}

#[test]
fn missing_extension_is_logged_and_requests_are_served() {
    let server = setting().define("extension", "no_such_extension").start();
    server.wait_for_log("no_such_extension");
    assert_eq!(server.get("/?sapi").text(), "fpm-fcgi fpm-fcgi");
}

#[test]
fn several_extensions_are_loaded_from_flags_and_file() {
    let page = || {
        let page = "<?php echo json_encode(array_map('extension_loaded', ['shmop', 'sysvmsg']));";
        Server::script(page).workers(1).env("PHP_INI_SCAN_DIR", "")
    };
    let is_loaded = |start: Start| start.start().get("/").text();
    let flags = ["--php", "extension=shmop", "--php", "extension=sysvmsg"];
    assert_eq!(is_loaded(page().args(flags)), "[true,true]");
    let toml = "[php]\nextension = ['shmop', 'sysvmsg']";
    assert_eq!(is_loaded(page().config(toml)), "[true,true]");
    let mixed = page().config("[php]\nextension = 'shmop'").define("extension", "sysvmsg");
    assert_eq!(is_loaded(mixed), "[true,true]");
}

#[test]
fn pathinfo_directive_has_php_fpms_default() {
    assert_eq!(setting().start().get("/?name=cgi.fix_pathinfo").text(), "1");
}

/// Sends requests until two workers have responded. Returns all responses.
fn ask_two_workers(server: &Server, target: &str) -> Vec<serde_json::Value> {
    let mut responses: Vec<serde_json::Value> = Vec::new();
    eventually("answers of two workers", || {
        let both: Vec<_> = (0..2)
            .map(|_| {
                let mut client = server.client();
                client.send(&samovar_testkit::http::Request::get(target).bytes());
                client
            })
            .collect();
        for mut client in both {
            responses.push(serde_json::from_slice(&client.read(false).body).expect("JSON"));
        }
        let mut pids: Vec<_> = responses.iter().filter_map(|a| a["pid"].as_i64()).collect();
        pids.sort_unstable();
        pids.dedup();
        (pids.len() == 2).then_some(())
    });
    responses
}

#[test]
fn opcache_is_enabled_and_shared_by_all_workers() {
    let script = "<?php usleep(20000); $s = opcache_get_status();
        echo json_encode(['pid' => getmypid(), 'on' => $s['opcache_enabled'],
            'hits' => $s['opcache_statistics']['hits'],
            'misses' => $s['opcache_statistics']['misses'],
            'scripts' => count($s['scripts'])]);";
    // Without this setting, recently written files are not cached.
    let start = Server::script(script).workers(2).define("opcache.file_update_protection", "0");
    let server = start.start();
    server.get("/");
    let responses = ask_two_workers(&server, "/");
    for response in &responses {
        assert_eq!(
            (&response["on"], &response["scripts"]),
            (&true.into(), &1.into()),
            "{responses:?}"
        );
    }
    let last = responses.last().expect("answers");
    assert!(last["hits"].as_u64().is_some_and(|hits| hits >= 1), "{responses:?}");
    // With a separate cache per worker, each worker would have a miss.
    let misses = responses.iter().filter_map(|a| a["misses"].as_u64()).max();
    assert_eq!(misses, Some(1), "compiled once: {responses:?}");
    let (before, pids) = (last["hits"].as_u64(), server.worker_pids());
    let later = ask_two_workers(&server, "/");
    assert!(later.last().expect("answers")["hits"].as_u64() > before, "{later:?}");
    // A worker that is forked later shares the cache, too.
    server.kill_worker(pids[0]);
    eventually("its successor", || {
        let now = server.worker_pids();
        (now.len() == 2 && !now.contains(&pids[0])).then_some(())
    });
    let later = ask_two_workers(&server, "/");
    let misses_now = later.iter().filter_map(|a| a["misses"].as_u64()).max();
    assert_eq!(misses_now, misses, "it compiles nothing anew: {later:?}");
}

#[test]
fn opcache_can_be_disabled() {
    let script = "<?php echo json_encode(opcache_get_status() === false);";
    let server = Server::script(script).workers(1).define("opcache.enable", "0").start();
    assert_eq!(server.get("/").text(), "true");
}

#[test]
fn status_is_printed_as_text_and_json() {
    let server = setting().workers(2).start();
    for _ in 0..5 {
        server.get("/?sapi");
    }
    let status = server.status();
    for key in [
        "generation",
        "queue_depth",
        "in_flight",
        "requests_total",
        "worker_restarts_total",
        "retries_total",
        "uptime_seconds",
    ] {
        assert!(status[key].is_number(), "{key}: {status}");
    }
    assert_eq!((&status["requests_total"], &status["generation"]), (&5.into(), &1.into()));
    let workers = status["workers"].as_array().expect("a list");
    assert_eq!(workers.len(), 2);
    let requests: u64 = workers.iter().filter_map(|w| w["requests"].as_u64()).sum();
    assert_eq!(requests, 5, "{status}");
    for worker in workers {
        assert!(
            worker["pid"].as_i64().is_some_and(|pid| server.worker_pids().contains(&(pid as i32)))
        );
        assert!(matches!(worker["state"].as_str(), Some("idle" | "busy")), "{worker}");
        assert_eq!(worker["model"], "script");
        assert!(worker["rss_bytes"].as_u64().is_some_and(|b| b > 1_000_000), "{worker}");
        assert!(worker["age_seconds"].as_f64().is_some_and(|age| age >= 0.0), "{worker}");
    }
    let control = server.control().to_string_lossy().into_owned();
    let human = samovar(server.folder(), &["status", "--control", &control]);
    assert!(human.status.success());
    let text = stdout(&human);
    for word in ["serving on 127.0.0.1:", "requests 5", "PID", "idle", "script", " MB"] {
        assert!(text.contains(word), "`{word}` is missing in:\n{text}");
    }
    for pid in server.worker_pids() {
        assert!(text.contains(&pid.to_string()), "{text}");
    }
}

#[test]
fn missing_server_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for command in ["status", "stop"] {
        let socket = folder.path().join("absent.sock");
        let output = samovar(folder.path(), &[command, "--control", &socket.to_string_lossy()]);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{command}");
        let text = stderr(&output);
        assert!(text.contains("absent.sock") && text.contains("hint: "), "{command}: {text}");
    }
}

#[test]
fn control_socket_is_private() {
    let server = setting().start();
    let mode = server.control().metadata().expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let control = server.control().to_string_lossy().into_owned();
    let (code, log) = setting().args(["--control", &control]).refuse();
    assert_eq!(code, Some(1));
    assert!(log.contains("another server listens there") && log.contains("hint: "), "{log}");
    assert_eq!(server.get("/?sapi").status, 200, "the first server still has its socket");
    assert_eq!(server.status()["requests_total"], 1);
}

#[test]
fn default_control_socket_is_found_automatically() {
    let runtime = tempfile::tempdir().expect("a temporary folder");
    let root = runtime.path().join("public");
    std::fs::create_dir(&root).expect("our own folder");
    std::fs::write(root.join("index.php"), "<?php echo 'found';").expect("our own folder");
    let with_runtime = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).current_dir(runtime.path()).env_clear().stdin(Stdio::null());
        command.env(family::RUN, family::run());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("XDG_RUNTIME_DIR", runtime.path());
        command
    };
    // Only the port is given: the document root is public/ of the working directory.
    let mut server = with_runtime(&["serve", "--listen", "127.0.0.1:0", "--workers", "1"])
        // The tests may run as root.
        .env("SAMOVAR_ALLOW_ROOT", "true")
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut log = server.stderr.take().expect("piped");
    let mut text = String::new();
    let mut byte = [0];
    while !text.contains('\n') && log.read(&mut byte).is_ok_and(|n| n == 1) {
        text.push(char::from(byte[0]));
    }
    let address = text.split("http://").nth(1).and_then(|rest| rest.split(' ').next());
    let address: std::net::SocketAddr = address.expect("an address").parse().expect("an address");
    let socket = runtime.path().join(format!("samovar-{}.sock", address.port()));
    assert_eq!(socket.metadata().expect("the socket").permissions().mode() & 0o777, 0o600);
    assert_eq!(samovar_testkit::http::Client::connect(address).get("/x").text(), "found");
    let status = with_runtime(&["status"]).output().expect("the binary runs");
    assert!(stdout(&status).contains("requests 1"), "{}{}", stdout(&status), stderr(&status));
    let stop = with_runtime(&["stop"]).output().expect("the binary runs");
    assert!(stop.status.success(), "{}", stderr(&stop));
    assert_eq!(server.wait().expect("our own child").code(), Some(0));
    assert!(!socket.exists());
    let status = with_runtime(&["status"]).output().expect("the binary runs");
    assert_eq!(status.status.code(), Some(1), "{}", stdout(&status));
}

#[test]
fn one_of_several_servers_is_selected_by_its_port() {
    let runtime = tempfile::tempdir().expect("a temporary folder");
    let start = || {
        // The test's server has a socket of its own; a link gives it the usual name.
        let server = setting().start();
        let name = format!("samovar-{}.sock", server.address().port());
        std::os::unix::fs::symlink(server.control(), runtime.path().join(name)).expect("a link");
        server
    };
    let (one, other) = (start(), start());
    let run = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.args(args).current_dir(runtime.path()).env_clear().stdin(Stdio::null());
        command.env(family::RUN, family::run()).env("XDG_RUNTIME_DIR", runtime.path());
        command.output().expect("the binary runs")
    };
    let ports = [one.address().port(), other.address().port()];
    for command in ["status", "reload", "stop"] {
        let ambiguous = run(&[command]);
        assert_eq!(ambiguous.status.code(), Some(1));
        let said = stderr(&ambiguous);
        for word in [format!("port {}", ports[0]), format!("port {}", ports[1])] {
            assert!(said.contains(&word) && said.contains("--listen PORT"), "{said}");
        }
    }
    let status = run(&["status", "--json", "--listen", &format!("127.0.0.1:{}", ports[1])]);
    assert!(stdout(&status).contains(&format!("\"pid\":{}", other.pid())), "{}", stderr(&status));
    let unknown = run(&["status", "--listen", "1"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains(&format!("port {}", ports[0])), "{}", stderr(&unknown));
    assert!(run(&["reload", "--listen", &ports[0].to_string()]).status.success());
    assert!(run(&["stop", "--listen", &ports[0].to_string()]).status.success());
    assert_eq!(other.get("/?sapi").status, 200);
    let wrong = run(&["status", "--listen", "x"]);
    assert!(stderr(&wrong).contains("hint: it takes a port"), "{}", stderr(&wrong));
}

#[test]
fn uneventful_run_logs_only_listening_address() {
    let server = setting().start();
    server.get("/?sapi");
    let log = server.stop();
    assert_eq!(log.lines().count(), 1, "only the line that says where it listens:\n{log}");
    let server = setting().args(["--log-level", "info", "--log-format", "json"]).start();
    let log = server.stop();
    let lines = log.lines().filter(|line| !line.contains("listening on http://"));
    for line in lines {
        assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    assert!(WATCHDOG.as_secs() > 1);
}

/// Returns the commands that a help lists, without `help`.
fn commands_of(help: &str) -> Vec<&str> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let rows = list.lines().take_while(|line| !line.is_empty());
    // A long description continues in a line that begins with more spaces.
    let names = rows.filter_map(|row| row.strip_prefix("  ")).filter(|row| !row.starts_with(' '));
    names.filter_map(|row| row.split(' ').next()).filter(|name| *name != "help").collect()
}

/// `docs/reference/cli.md` has the help of every command. `make reference` writes it.
#[test]
fn cli_page_has_help_of_every_command() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let help = |args: &[&str]| stdout(&samovar(folder.path(), args));
    let mut page = String::from(
        "<!-- Generated from the server: make reference -->\n\n# Command line\n\n\
         `serve`, `check`, `routes`, `compare` and `leaks` also take the flags of all\n\
         [settings](settings.md).\n",
    );
    let mut section = |title: &str, text: &str| {
        // The first group of settings.
        let text = text.split("\nServing:\n").next().unwrap_or_default();
        let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
        let _ = writeln!(page, "\n## {title}\n\n```text\n{}\n```", lines.join("\n"));
    };
    // The next one is the last.
    let mut commands = vec![String::new()];
    while let Some(command) = commands.pop() {
        let words: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let text = help(&words);
        section(format!("samovar {command}").trim_end(), &text);
        let own = commands_of(&text).into_iter().rev();
        commands.extend(own.map(|name| format!("{command} {name}").trim_start().to_owned()));
    }
    for expected in ["test", "plan verify"] {
        assert!(page.contains(&format!("\n## samovar {expected}\n")), "{expected} in:\n{page}");
    }
    let file = workspace().join("docs/reference/cli.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == page, "docs/reference/cli.md does not match the server\nhint: make reference");
}
