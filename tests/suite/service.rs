//! The server as a system service: the user it runs as, the interface to a service manager, and
//! `samovar check`.

mod manager;
mod units;

use samovar_testkit::http::Client;
use samovar_testkit::{Server, Start, binary, eventually, is_root, port};
use serde_json::Value;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Debian's user for web servers, and its group.
const USER: &str = "www-data";
const UID: u32 = 33;

fn samovar(args: &[&str], inside: &Path) -> Output {
    let mut command = Command::new(binary());
    command.args(args).current_dir(inside).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that becomes another user. Requires root.
fn as_user(php: &str) -> Start {
    let start = Server::script(php).without_root();
    let folder = start.folder();
    for path in [folder.to_owned(), folder.join("sessions"), folder.join("uploads")] {
        chown(path, Some(UID), Some(UID)).expect("root may");
    }
    // That user may have no access to the workspace.
    let worker = folder.join("samovar-php");
    std::fs::copy(binary().with_file_name("samovar-php"), &worker).expect("a copy");
    let worker = worker.to_string_lossy().into_owned();
    start.args(["--user", USER, "--php-binary", &worker])
}

#[test]
fn running_as_root_needs_permission() {
    if !is_root() {
        let (code, log) = Server::script("<?php").args(["--user", "root"]).refuse();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("PHP would run as root") && log.contains("hint: "), "{log}");
        let (code, log) = Server::script("<?php").args(["--user", USER]).refuse();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("cannot switch to the user `www-data`: only root can"), "{log}");
        return;
    }
    for start in [
        Server::script("<?php").without_root(),
        Server::script("<?php").without_root().args(["--user", "root"]),
        Server::script("<?php").without_root().config("allow_root = false"),
    ] {
        let (code, log) = start.refuse();
        assert_eq!(code, Some(1), "{log}");
        for word in ["PHP would run as root", "hint: set `user = \"www-data\"`", "--allow-root"] {
            assert!(log.contains(word), "{log}");
        }
        assert!(!log.contains("listening"), "{log}");
    }
    let whoami = "<?php echo posix_geteuid();";
    for start in [
        Server::script(whoami).without_root().env("SAMOVAR_ALLOW_ROOT", "true"),
        Server::script(whoami).without_root().config("allow_root = true"),
        Server::script(whoami).without_root().args(["--allow-root"]),
    ] {
        assert_eq!(start.workers(1).start().get("/").text(), "0");
    }
}

/// The capability for ports below 1024, as given by a unit that starts the server as its user. Only
/// the server keeps it; pages could open such ports otherwise.
#[test]
fn capability_of_server_is_not_passed_to_php() {
    if !is_root() {
        return;
    }
    let right = |of: &str| {
        let line = |name: &str| {
            let found = of.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(found.expect("a line").trim(), 16).expect("a number")
        };
        ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"].map(line)
    };
    let page = "<?php isset($_GET['run']) ? passthru('cat /proc/self/status') : \
                readfile('/proc/self/status');";
    let start = Server::script(page).without_root().workers(1);
    for path in ["", "sessions", "uploads"].map(|name| start.folder().join(name)) {
        chown(path, Some(UID), Some(UID)).expect("root may");
    }
    let unit = format!(
        "exec setpriv --reuid {UID} --regid {UID} --clear-groups --inh-caps +net_bind_service \
         --ambient-caps +net_bind_service \"$@\""
    );
    let server = start.through(&unit).start();
    for round in ["started", "upgraded"] {
        let of_server = std::fs::read_to_string(format!("/proc/{}/status", server.pid()));
        assert_eq!(right(&of_server.expect("a process")), [1 << 10; 4], "{round}");
        for target in ["/", "/?run"] {
            assert_eq!(right(&server.get(target).text()), [0; 4], "{round}: {target}");
        }
        if round == "started" {
            server.upgrade([]).expect("an upgrade");
        }
    }
    server.stop();
}

#[test]
fn unknown_user_or_group_is_reported() {
    for (args, said) in [
        (["--user", "no-such-user", "--group", "0"], "there is no user `no-such-user`"),
        (["--user", "root", "--group", "no-such-group"], "there is no group `no-such-group`"),
    ] {
        let (code, log) = Server::script("<?php").args(args).refuse();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains(said) && log.contains("hint: "), "{log}");
    }
    let (code, log) = Server::script("<?php").args(["--group", USER]).refuse();
    assert_eq!(code, Some(2), "{log}");
    assert!(log.contains("needs a `user`"), "{log}");
}

/// Real, effective, saved and file system ID of a process, of users or groups; or its supplementary
/// groups.
fn numbers(pid: i32, of: &str) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(of)).unwrap_or_default();
    line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// All groups of a user. Installed packages may add some.
fn groups_of(user: &str) -> Vec<u32> {
    let output = Command::new("id").args(["-G", user]).output().expect("coreutils");
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let texts = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    let list = |text: String| text.split_whitespace().filter_map(|p| p.parse().ok()).collect();
    texts.flat_map(list as fn(String) -> Vec<i32>).collect()
}

fn tree(pid: i32) -> Vec<i32> {
    std::iter::once(pid).chain(children(pid).into_iter().flat_map(tree)).collect()
}

#[test]
fn server_started_by_root_changes_user_permanently() {
    if !is_root() {
        return;
    }
    let php = "<?php Samovar\\checkpoint();
        static $count = 0; $GLOBALS['dirt'] = str_repeat('x', 1 << 20); $count++;
        if (isset($_GET['back'])) {
            exit(json_encode([posix_setuid(0), posix_seteuid(0), posix_geteuid()])); }
        echo json_encode([
            'uid' => posix_getuid(), 'euid' => posix_geteuid(), 'gid' => posix_getgid(),
            'groups' => posix_getgroups(), 'home' => getenv('HOME'), 'user' => getenv('USER'),
            'count' => $count, 'shadow' => @file_get_contents('/etc/shadow')]);";
    let start = as_user(php).workers(2);
    let log = start.folder().join("access.log").to_string_lossy().into_owned();
    // A port reserved for root, on an address that no other process uses.
    let server = start.args(["--listen", "127.71.3.9:81", "--access-log", &log]).start();
    for _ in 0..4 {
        let response: Value = serde_json::from_slice(&server.get("/").body).expect("JSON");
        assert_eq!(
            response,
            serde_json::json!({"uid": UID, "euid": UID, "gid": UID, "groups": groups_of(USER),
                "home": "/var/www", "user": USER, "count": 1, "shadow": false}),
        );
    }
    let low = Client::connect("127.71.3.9:81".parse().expect("an address")).get("/");
    assert_eq!(low.status, 200);
    let processes = tree(server.pid());
    assert!(processes.len() >= 5, "server, template, image, two workers: {processes:?}");
    for pid in &processes {
        assert_eq!(numbers(*pid, "Uid:"), [UID; 4], "{pid}");
        assert_eq!(numbers(*pid, "Gid:"), [UID; 4], "{pid}");
        assert_eq!(numbers(*pid, "Groups:"), groups_of(USER), "{pid}");
    }
    let status = server.status();
    assert_eq!(
        status["image"]["mode"], "shared",
        "a process that changed its user can be rolled back"
    );
    eventually("the rollbacks are counted", || {
        (server.status()["image"]["rollbacks_total"].as_u64() >= Some(5)).then_some(())
    });
    assert_eq!(status["image"]["refork_total"], 0, "{status}");
    assert_eq!(server.get("/?back").text(), format!("[false,false,{UID}]"));
    assert_eq!(server.control().metadata().expect("a socket").uid(), UID);
    // The log can be rotated: a file opened once can be opened again.
    std::fs::rename(&log, format!("{log}.1")).expect("our own file");
    server.ask_to_reopen();
    eventually("a new log", || {
        server.get("/");
        Path::new(&log).exists().then_some(())
    });
    assert_eq!(Path::new(&log).metadata().expect("a file").uid(), UID);
    server.reload().expect("a reload");
    let response: Value = serde_json::from_slice(&server.get("/").body).expect("JSON");
    assert_eq!(response["uid"], UID);
    server.stop();
}

#[test]
fn workers_of_server_with_changed_user_end_with_it() {
    if !is_root() {
        return;
    }
    let server = as_user("<?php Samovar\\checkpoint(); echo 1;").workers(2).start();
    assert_eq!(server.get("/").text(), "1");
    let processes = tree(server.pid());
    let (server_pid, others) = processes.split_first().expect("itself");
    assert!(others.len() >= 4, "{processes:?}");
    let killed = Command::new("kill").args(["-9", &server_pid.to_string()]).status();
    assert!(killed.expect("kill runs").success());
    eventually("all of them end", || {
        let is_there = |pid: &&i32| Path::new(&format!("/proc/{pid}/exe")).read_link().is_ok();
        (others.iter().find(is_there).is_none()).then_some(())
    });
}

#[test]
fn files_inaccessible_to_user_are_reported() {
    if !is_root() {
        return;
    }
    let closed = |start: Start, below: &str, mode: u32| {
        let path = start.folder().join(below);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("root may");
        start
    };
    let cases = [
        (["--php-ini", "/etc/shadow"], "cannot read `/etc/shadow`"),
        (["--temp-dir", "/root"], "cannot write to `temp_dir`, `/root`"),
        (["--access-log", "/root/samovar-test.log"], "`/root/samovar-test.log`"),
        (["--control", "/root/samovar-test.sock"], "`/root/samovar-test.sock`"),
    ];
    let check = |start: Start, said: &str| {
        let (code, log) = start.refuse();
        assert_eq!(code, Some(1), "{log}");
        for word in [said, "hint: "] {
            assert!(
                log.to_lowercase().contains(&word.to_lowercase()),
                "`{word}` is missing in:\n{log}"
            );
        }
    };
    for (args, said) in cases {
        check(as_user("<?php").args(args), said);
    }
    check(closed(as_user("<?php"), "samovar-php", 0o711), "cannot read and run `");
    check(closed(as_user("<?php"), "root", 0o700), "cannot read the folder");
    check(closed(as_user("<?php"), "root/index.php", 0o600), "cannot read `");
}

#[test]
fn server_of_other_user_is_distinguished_from_absent_one() {
    if !is_root() {
        return;
    }
    let server = Server::script("<?php echo 1;").start();
    let folder = server.folder().to_owned();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).expect("our own");
    // A copy of the program that the user can run.
    let program = folder.join("samovar");
    std::fs::copy(binary(), &program).expect("a copy");
    let control = server.control();
    let output = Command::new("setpriv")
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(&program)
        .args(["status", "--control"])
        .arg(&control)
        .output()
        .expect("setpriv runs");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in ["Permission denied", "hint: the server belongs to user 0", "sudo -u '#0' samovar"]
    {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
}

fn root_flag() -> &'static str {
    if is_root() { "--allow-root" } else { "--allow-root=false" }
}

#[test]
fn check_reports_whether_server_would_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path();
    std::fs::create_dir(inside.join("public")).expect("our own folder");
    std::fs::write(inside.join("public/index.php"), "<?php echo 1;").expect("our own folder");
    let listen = ["--listen", "127.0.0.1:0"];
    let well = samovar(&["check", root_flag(), listen[0], listen[1]], inside);
    let said = text(&well.stdout);
    assert_eq!((well.status.code(), text(&well.stderr).as_str()), (Some(0), ""), "{said}");
    for word in
        ["ok       settings: no file", "ok       root: `", "runs PHP 8.", "ok       listen: "]
    {
        assert!(said.contains(word), "`{word}` is missing in:\n{said}");
    }
    assert!(!said.contains("error"), "{said}");
    let json = samovar(&["check", root_flag(), "--json", listen[0], listen[1]], inside);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["ok"], true, "{json}");

    for (args, code, about, said) in [
        (&["--workers", "0"][..], 2, "settings", "`--workers 0` is not allowed"),
        (&["nowhere"], 2, "settings", "does not exist"),
        (&["--php-binary", "/bin/true"], 1, "worker", "it is not a samovar-php"),
        (&["--php-binary", "4.4"], 1, "worker", "samovar-php4.4"),
        (&["--listen", "192.0.2.1:80"], 1, "listen", "cannot bind `192.0.2.1:80`"),
        (&["--access-log", "/no/such/folder/log"], 1, "access log", "/no/such/folder"),
        (&["--control", "/no/such/folder/socket"], 1, "control", "/no/such/folder"),
        (&["--admin", "0.0.0.0:0"], 1, "admin", "`admin` on 0.0.0.0:0 would expose"),
        (&["--admin", "192.0.2.1:80"], 1, "admin", "`admin` on 192.0.2.1:80 would expose"),
        (
            &["--insight-otlp", "https://127.0.0.1:1", "--insight-otlp-ca-file", "/dev/null"],
            1,
            "otlp",
            "no trusted certificates",
        ),
        (&["--user", "no-such-user"], 1, "user", "there is no user `no-such-user`"),
    ] {
        let args = [&["check", "--json", root_flag()], args].concat();
        let output = samovar(&args, inside);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((output.status.code(), &json["ok"]), (Some(code), &false.into()), "{json}");
        let mut findings = json["findings"].as_array().expect("a list").iter();
        let found = findings.find(|f| f["level"] == "error" && f["about"] == about);
        let found = found.unwrap_or_else(|| panic!("nothing about {about}: {json}"));
        assert!(found["text"].as_str().is_some_and(|text| text.contains(said)), "{found}");
        assert!(found["hint"].is_string(), "{found}");
    }
    std::fs::write(inside.join("public/index.php"), "").expect("our own file");
    let empty = text(&samovar(&["check", root_flag(), listen[0], listen[1]], inside).stdout);
    assert!(empty.contains("warning  root: the front controller"), "{empty}");
}

#[test]
fn check_reports_addresses_that_exclude_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.php"), "<?php").expect("our own folder");
    let port = port().port();
    let [one, all] = [format!("127.0.0.1:{port}"), format!("0.0.0.0:{port}")];
    let all_fcgi = format!("fcgi://{one}");
    for (second, code, said) in [
        (["--listen", &one], 1, "error    listen: cannot bind `"),
        (["--listen", &all], 1, "error    listen: cannot bind `"),
        (["--listen", &all_fcgi], 1, "error    listen: cannot bind `"),
        (["--admin", &one], 1, "error    admin: cannot bind `"),
        (["--listen", "127.0.0.1:0"], 0, "ok       listen: `127.0.0.1:0` is available"),
    ] {
        let args = [&["check", root_flag(), "--listen", &one][..], &second[..]].concat();
        let output = samovar(&args, folder.path());
        let text = text(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{second:?}: {text}");
        assert!(text.contains(said), "{second:?}: {text}");
        assert_eq!(text.contains("another address of these settings"), code == 1, "{text}");
    }
}

#[test]
fn check_warns_of_settings_that_expose_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("index.php"), "<?php").expect("our own folder");
    let toml = "[[location]]\npath = '/all/*'\nalias = '/'\n";
    std::fs::write(folder.path().join("alias.toml"), toml).expect("our own folder");
    for (args, said) in [
        (["--trusted-proxies", "0.0.0.0/0"], "`trusted_proxies` contains `0.0.0.0/0`"),
        (["--trusted-proxies", "10.0.0.1,::/0"], "`trusted_proxies` contains `::/0`"),
        (["--sendfile", "/files/=/"], "`sendfile` names the folder `/`"),
        (["--link-targets", "/usr/.."], "`link_targets` names the folder `/`"),
        (["--config", "alias.toml"], "`alias` names the folder `/`"),
    ] {
        let listen = ["check", root_flag(), "--listen", "127.0.0.1:0"];
        let output = samovar(&[&listen[..], &args[..]].concat(), folder.path());
        let text = text(&output.stdout);
        assert!(text.contains(&format!("warning  access: {said}")), "{args:?}: {text}");
        assert_eq!(output.status.code(), Some(0), "{text}");
    }
}

#[test]
fn reload_after_change_of_user_reports_no_changed_setting() {
    if !is_root() {
        return;
    }
    let server = as_user("<?php echo 1;").workers(1).start();
    for _ in 0..2 {
        let said = server.reload().expect("a reload");
        assert!(!said.contains("restart"), "{said}");
        server.upgrade([]).expect("an upgrade");
        server.wait_for_predecessor();
    }
    server.stop();
}

#[test]
fn check_reports_session_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path();
    std::fs::create_dir(inside.join("public")).expect("our own folder");
    std::fs::write(inside.join("public/index.php"), "<?php echo 1;").expect("our own folder");
    let (there, nowhere) = (inside.display().to_string(), "/no/such/folder");
    for (path, handler, said) in [
        (there.as_str(), "files", Some(("ok", there.as_str()))),
        // Depth of the folders, and mode of the files.
        (&format!("2;0600;{there}"), "files", Some(("ok", there.as_str()))),
        ("/dev/shm", "files", Some(("ok", "/dev/shm"))),
        (nowhere, "files", Some(("warning", nowhere))),
        ("", "files", Some(("ok", "/tmp"))),
        // PHP accepts this value only from session_set_save_handler().
        (nowhere, "user", Some(("warning", nowhere))),
        (nowhere, "redis", None),
    ] {
        let define =
            [format!("session.save_path={path}"), format!("session.save_handler={handler}")];
        let flags = ["check", "--json", root_flag(), "--listen", "127.0.0.1:0"];
        let args = [&flags[..], &["-d", &define[0], "-d", &define[1]]].concat();
        let output = samovar(&args, inside);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["ok"], true, "{json}");
        let findings = json["findings"].as_array().expect("a list");
        let found = findings.iter().find(|finding| finding["about"] == "sessions");
        let Some((level, folder)) = said else {
            assert_eq!(found, None, "{path}");
            continue;
        };
        let found = found.unwrap_or_else(|| panic!("nothing of sessions in {path}: {json}"));
        assert_eq!(found["level"], level, "{found}");
        assert!(found["text"].as_str().is_some_and(|text| text.contains(folder)), "{found}");
        let is_slow = found["text"].as_str().is_some_and(|text| text.ends_with("on a disk"));
        assert_eq!(found["hint"].is_string(), is_slow || level == "warning", "{found}");
        assert!(!(folder == "/dev/shm" && is_slow), "{found}");
    }
}

#[test]
fn check_accepts_running_server() {
    let server = Server::script("<?php echo 1;").start();
    let address: SocketAddr = server.address();
    let (listen, control) = (address.to_string(), server.control().to_string_lossy().into_owned());
    let args = ["check", root_flag(), "root", "--listen", &listen, "--control", &control];
    let output = samovar(&args, server.folder());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("is in use, probably by a running server"), "{said}");
    assert!(said.contains("a server already listens on"), "{said}");
    assert_eq!(server.get("/").text(), "1");
}

#[test]
fn check_tests_files_as_configured_user() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder of root's alone");
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("our own");
    std::fs::write(folder.path().join("index.php"), "<?php").expect("our own folder");
    let output = samovar(&["check", "--user", USER, "--listen", "127.0.0.1:0"], folder.path());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ok       user: the server switches to the user `www-data`"), "{said}");
    assert!(said.contains("error    files: this user cannot read the folder"), "{said}");
}

#[test]
fn php_cli_binary_as_worker_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let php = folder.path().join("php");
    let script = "#!/bin/sh\necho 'PHP 8.2.29 (cli) (built: today) (NTS)'\necho 'Usage: php' >&2\n";
    std::fs::write(&php, script).expect("our own folder");
    std::fs::set_permissions(&php, PermissionsExt::from_mode(0o755)).expect("our own file");
    let (code, log) =
        Server::script("<?php").args(["--php-binary", &php.to_string_lossy()]).refuse();
    assert_eq!(code, Some(1), "{log}");
    for word in
        ["it is not a samovar-php", "PHP 8.2.29 (cli)", "hint: --php-binary takes a samovar-php"]
    {
        assert!(log.contains(word), "`{word}` is missing in:\n{log}");
    }
    assert!(!log.contains("Usage"), "{log}");
}

#[test]
fn unknown_directive_is_reported_and_list_directive_is_set() {
    let php = "<?php echo json_encode([get_cfg_var('list'), get_cfg_var('no.such_directive'), \
               ini_get('memory_limit')]);";
    let server = Server::script(php)
        .workers(1)
        .args(["--php", "list[a]=1", "--php", "list[b]=x y", "--php", "no.such_directive=7"])
        .config("[php]\n'list[c]' = 3")
        .start();
    assert_eq!(server.get("/").text(), "[{\"a\":\"1\",\"b\":\"x y\",\"c\":\"3\"},\"7\",\"64M\"]");
    server.wait_for_log("knows the directive `no.such_directive`");
    let log = server.stop();
    assert_eq!(log.matches("knows the directive").count(), 1, "{log}");
}

#[test]
fn server_software_and_sapi_name_resemble_nginx_and_php_fpm() {
    let php = "<?php echo PHP_SAPI, '|', php_sapi_name(), '|', $_SERVER['SERVER_SOFTWARE'];";
    let plain = Server::script(php).workers(1).start();
    // WordPress checks for links without index.php, MediaWiki for a path after index.php.
    let said = plain.get("/").text();
    assert_eq!(said, "fpm-fcgi|fpm-fcgi|Samovar (like nginx)");
    assert!(said.split('|').nth(2).is_some_and(|software| software.contains("nginx")));
    assert!(said.split('|').next().is_some_and(|sapi| sapi.contains("cgi")));
    let own = Server::script(php)
        .workers(1)
        .args(["--sapi-name", "samovar", "--server-software", "Apache/2.4"])
        .start();
    assert_eq!(own.get("/").text(), "samovar|samovar|Apache/2.4");
    let opcache = Server::script("<?php echo json_encode(opcache_get_status() !== false);");
    assert_eq!(opcache.workers(1).args(["--sapi-name", "other"]).start().get("/").text(), "true");
}

#[test]
fn moved_log_file_is_reopened() {
    let start = Server::script("<?php error_log($_GET['say']); echo 'ok';").workers(1);
    let path = start.folder().join("samovar.log");
    let server = start.config(&format!("log = '{}'", path.display()));
    // The line with the listening address is also in the file.
    let server = server.start_unheard(Stdio::null());
    let logged = || std::fs::read_to_string(&path).unwrap_or_default();
    let wait_for = |text: &str| {
        eventually(text, || logged().contains(text).then_some(()));
    };
    wait_for("samovar: listening on http://");
    assert_eq!(server.get("/?say=one").text(), "ok");
    wait_for("one");
    let moved = path.with_extension("1");
    std::fs::rename(&path, &moved).expect("our own file");
    server.ask_to_reopen();
    // Lines before the signal takes effect are in the old file.
    eventually("a new file", || {
        assert_eq!(server.get("/?say=two").text(), "ok");
        path.exists().then_some(())
    });
    wait_for("two");
    assert!(!logged().contains("one"));
    let server_log = std::fs::read_to_string(&moved).expect("the old file");
    assert!(server_log.contains("one"), "{server_log}");
}

#[test]
fn unwritable_log_is_reported_at_start() {
    let (code, log) = Server::script("<?php").config("log = '/no/such/folder/log'").refuse();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("cannot write the log `/no/such/folder/log`: "), "{log}");
    assert!(log.contains("hint: create its folder"), "{log}");
}
