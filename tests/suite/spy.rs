//! `samovar spy` for php-fpm, Apache, Samovar's own workers and PHP's command line: the stack of a
//! stuck process, and the error for a user without permission.

mod apache;
mod memory;
mod variables;

use samovar_testkit::http::Client;
use samovar_testkit::{Oracle, Server, binary, eventually, is_root, php};
use serde_json::Value;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

const NOBODY: u32 = 65534;

/// Waits for a lock that the test holds, three calls deep.
const STUCK: &str = r"<?php
class Report { static function write($file) {
    $f = fopen($file, 'c');
    flock($f, LOCK_EX);
} }
function answer() { Report::write($_GET['lock'] ?? $argv[1]); }
answer();
echo 'done';
";

fn spy(arguments: &[&str]) -> Output {
    Command::new(binary()).arg("spy").args(arguments).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Stacks of these processes, as soon as one of them waits for the lock.
fn stuck(arguments: &[&str], lock: &Path) -> Value {
    let state = format!("flock {}", lock.display());
    eventually("a process waits for the lock", || {
        let output = spy(&[arguments, &["--stack", "--json"]].concat());
        let document: Value = serde_json::from_slice(&output.stdout).ok()?;
        let stacks = document["stacks"].as_array()?;
        stacks.iter().find(|stack| stack["state"] == state.as_str()).cloned()
    })
}

fn check(stack: &Value, script: &Path) {
    let frames: Vec<_> = stack["frames"].as_array().expect("frames").iter().collect();
    let told: Vec<_> = frames
        .iter()
        .map(|frame| {
            let text = |key: &str| frame[key].as_str().unwrap_or_default().to_owned();
            (text("class"), text("function"), frame["line"].as_u64().unwrap_or(0))
        })
        .collect();
    let expected = [("", "flock", 0), ("Report", "write", 4), ("", "answer", 6), ("", "{main}", 7)];
    let expected = expected.map(|(class, name, line)| (class.to_owned(), name.to_owned(), line));
    assert_eq!(told, expected, "{stack:#}");
    assert_eq!(frames[1]["file"], script.to_str().expect("a plain path"));
    assert_eq!(stack["php"], php::version());
}

/// Takes a lock, and sends a request that waits for it while `look` runs.
fn with_a_stuck_request(address: SocketAddr, folder: &Path, look: impl FnOnce(&Path)) {
    with_a_stuck_request_to("/index.php", address, folder, look);
}

fn with_a_stuck_request_to(
    target: &str,
    address: SocketAddr,
    folder: &Path,
    look: impl FnOnce(&Path),
) {
    let path = folder.join("the.lock");
    let held = File::create(&path).expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .expect("ours");
    held.lock().expect("nobody else has it");
    let target = format!("{target}?lock={}", path.display());
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| Client::connect(address).get(&target));
        look(&path);
        drop(held);
        assert_eq!(text(&asked.join().expect("answered").body), "done");
    });
}

#[test]
fn stack_of_stuck_php_fpm_worker_is_shown() {
    let root = TempDir::new().expect("a folder");
    std::fs::set_permissions(root.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    let script = root.path().join("index.php");
    std::fs::write(&script, STUCK).expect("a script");
    let oracle = Oracle::start(root.path());
    with_a_stuck_request(oracle.address(), oracle.folder(), |lock| {
        let stack = stuck(&["--all"], lock);
        check(&stack, &script);
        let request = stack["request"].as_str().expect("php-fpm sets one");
        assert_eq!(request, "GET /index.php", "without its query, which is the visitor's");
    });
}

#[test]
fn stack_of_stuck_samovar_worker_is_shown() {
    let server = Server::script(STUCK).workers(2).start();
    let target = "/basket/7/items";
    with_a_stuck_request_to(target, server.address(), server.folder(), |lock| {
        let pids: Vec<_> = server.worker_pids().iter().map(ToString::to_string).collect();
        let pids: Vec<_> = pids.iter().map(String::as_str).collect();
        let stack = stuck(&pids, lock);
        check(&stack, &server.folder().join("root/index.php"));
        assert_eq!(stack["request"], "GET /basket/7/items", "the path, not the script's name");
    });
}

/// PHP's command line in an endless loop, killed on drop.
struct Busy {
    child: Child,
    folder: TempDir,
}

impl Busy {
    fn start(code: &str) -> Self {
        Self::start_with(code, &[])
    }

    fn start_with(code: &str, environment: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("busy.php");
        std::fs::write(&file, format!("<?php\n{code}")).expect("a script");
        let mut command = Command::new(php::program("php"));
        command.envs(environment.iter().copied());
        let child = command.arg(&file).stdout(Stdio::null()).spawn().expect("PHP is there");
        let busy = Self { child, folder };
        let has_begun = |out: Output| text(&out.stdout).contains("{main}").then_some(());
        eventually("PHP has begun", || has_begun(spy(&[&busy.pid(), "--stack"])));
        busy
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn recording_is_written_in_each_format() {
    let busy =
        Busy::start("function work() { for ($i = 0; $i < 1000; $i++); }\nwhile (true) { work(); }");
    let record = |format: &str| {
        let out = spy(&[&busy.pid(), "--duration", "300ms", "--format", format]);
        assert!(out.status.success(), "{out:?}");
        assert!(text(&out.stderr).starts_with("samovar: "), "{out:?}");
        out.stdout
    };
    let collapsed = text(&record("collapsed"));
    assert!(collapsed.lines().any(|line| line.contains("/busy.php;work ")), "{collapsed}");
    assert!(text(&record("svg")).contains("<title>work — "));
    let speedscope: Value = serde_json::from_slice(&record("speedscope")).expect("JSON");
    assert_eq!(speedscope["profiles"][0]["type"], "sampled");
    assert!(record("pprof").starts_with(&[0x1f, 0x8b]), "gzipped");
    let top = text(&spy(&[&busy.pid(), "--duration", "300ms"]).stdout);
    assert!(top.contains("SELF") && top.contains("work"), "{top}");
    let top = spy(&[&busy.pid(), "--duration", "300ms", "--json"]);
    let top: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert!(
        top["functions"].as_array().is_some_and(|all| all.iter().any(|f| f["function"] == "work"))
    );
}

#[test]
fn functions_are_split_into_lines() {
    let busy =
        Busy::start("function work() { for ($i = 0; $i < 1000; $i++); }\nwhile (true) { work(); }");
    let pid = busy.pid();
    let with_lines = |flags: &[&str]| {
        text(&spy(&[flags, &["--lines", "--duration", "300ms", &pid]].concat()).stdout)
    };
    let collapsed = with_lines(&["--format", "collapsed"]);
    let is_there = |line: &str| line.starts_with("{main}:3 ") && line.contains(";work:2 ");
    assert!(collapsed.lines().any(is_there), "{collapsed}");
    assert!(with_lines(&["--format", "svg"]).contains("<title>work:2 — "));
    assert!(with_lines(&[]).contains("work:2  "), "a table");
    let top: Value = serde_json::from_str(&with_lines(&["--json"])).expect("JSON");
    let all = top["functions"].as_array().expect("a list");
    assert!(all.iter().any(|one| one["function"] == "work:2"), "{top}");
}

#[test]
fn stacks_are_selected_by_function() {
    let busy = Busy::start(
        "class A { static function work() { for ($i = 0; $i < 1000; $i++); } }\n\
                     while (true) { A::work(); }",
    );
    let stacks = |function: &str| {
        let pid = busy.pid();
        let out = spy(&["--stack", "--json", "--function", function, &pid]);
        let document: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        assert!(document["at"].as_f64().is_some_and(|at| at > 1e9), "{document}");
        document["stacks"].as_array().expect("a list").clone()
    };
    let found = eventually("a stack within it", || stacks("a::wo*").first().cloned());
    assert!(found["resident_bytes"].as_u64().is_some_and(|bytes| bytes > 1_000_000), "{found}");
    assert_eq!(stacks("A::other*"), [Value::Null; 0]);
    let pid = busy.pid();
    let record = ["--duration", "300ms", "--format", "collapsed", "--function", "work", &pid];
    let lines = text(&spy(&record).stdout);
    assert!(!lines.is_empty() && lines.lines().all(|line| line.contains("A::work")), "{lines}");
    let none = spy(&["--duration", "200ms", "--format", "collapsed", "--function", "other", &pid]);
    assert_eq!((none.status.code(), text(&none.stdout).as_str()), (Some(1), ""), "{none:?}");
}

#[test]
fn processes_are_selected_by_command_line() {
    let busy = Busy::start("while (true) { usleep(100); }");
    let folder = busy.folder.path().to_str().expect("a plain path").to_owned();
    let pids = |pattern: &str| -> Vec<u64> {
        let out = spy(&["--match", pattern, "--stack", "--json"]);
        let document: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        let stacks = document["stacks"].as_array().expect("a list");
        stacks.iter().filter_map(|stack| stack["pid"].as_u64()).collect()
    };
    assert_eq!(pids(&format!("{folder}/busy.php")), [u64::from(busy.child.id())]);
    let none = spy(&["--match", &format!("{folder}/other.php"), "--stack"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(text(&none.stderr).contains("no PHP process has that text"), "{none:?}");
}

#[test]
fn program_is_recorded_until_it_ends() {
    let folder = TempDir::new().expect("a folder");
    let (script, output) = (folder.path().join("a.php"), folder.path().join("a.callgrind"));
    std::fs::write(
        &script,
        "<?php function work() { $end = hrtime(true) + 400e6; while (hrtime(true) < $end); }\n\
         work(); echo implode(',', array_slice($argv, 1)); exit((int) $argv[1]);",
    )
    .expect("a script");
    let php = php::program("php");
    let run = |status: &str, output: &Path| {
        Command::new(binary())
            .args(["spy", "-o"])
            .arg(output)
            .arg("--")
            .arg(&php)
            .arg(&script)
            .args([status, "--stack"])
            .output()
            .expect("the binary runs")
    };
    let out = run("0", &output);
    assert_eq!((out.status.code(), text(&out.stdout).as_str()), (Some(0), "0,--stack"), "{out:?}");
    let recorded = std::fs::read_to_string(&output).expect("written");
    assert!(recorded.contains("\nfn=work\n"), "{recorded}");
    // Its exit code is that of the program, if it fails.
    assert_eq!(run("7", &output).status.code(), Some(7));
    let table = spy(&["--", &php, script.to_str().expect("plain"), "0"]);
    assert!(text(&table.stdout).contains("work"), "{table:?}");
    for (words, code, part) in [
        (&["--", "/nowhere/php"][..], 1, "cannot run `/nowhere/php`"),
        (&["--", "true"], 1, "before it ran PHP code"),
        (&["--format", "svg", "--", "php"], 2, "mixed with the output of the program"),
        (&["--stack", "--", "php"], 2, "the program has not begun"),
        (&["1", "--", "php"], 2, "cannot be used with"),
    ] {
        let out = spy(words);
        assert_eq!(out.status.code(), Some(code), "{words:?}: {out:?}");
        assert!(text(&out.stderr).contains(part), "{words:?}: {out:?}");
    }
}

#[test]
fn recording_format_follows_file_name() {
    let busy = Busy::start("while (true) { usleep(100); }");
    let folder = TempDir::new().expect("a folder");
    for (name, begins) in [
        ("a.svg", &b"<?xml"[..]),
        ("a.pb.gz", &[0x1f, 0x8b]),
        ("a.speedscope.json", b"{"),
        ("a.collapsed", b"{main}"),
        ("callgrind.out.1", b"# callgrind format"),
    ] {
        let file = folder.path().join(name);
        let out = spy(&[&busy.pid(), "--duration", "200ms", "-o", file.to_str().expect("plain")]);
        assert!(out.status.success() && out.stdout.is_empty(), "{name}: {out:?}");
        assert!(std::fs::read(&file).expect("written").starts_with(begins), "{name}");
    }
    let refused = spy(&[&busy.pid(), "-o", "profile.png"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("cannot infer the format"), "{refused:?}");
    let nowhere = spy(&[&busy.pid(), "--duration", "1h", "-o", "/nowhere/a.svg"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("cannot write `/nowhere/a.svg`: "), "{nowhere:?}");
    let full = ["--duration", "200ms", "--format", "collapsed", "-o", "/dev/full"];
    let full = spy(&[&[busy.pid().as_str()], &full[..]].concat());
    assert_eq!(full.status.code(), Some(1));
    let said = text(&full.stderr);
    assert!(
        said.contains("cannot write `/dev/full`: ") && said.ends_with("free space of the disk\n"),
        "{said}"
    );
}

#[test]
fn recording_ends_with_recorded_process() {
    let busy = Busy::start("while (true) { usleep(100); }");
    let pid = busy.pid();
    let recording =
        std::thread::spawn(move || spy(&[&pid, "--duration", "1h", "--format", "collapsed"]));
    let pid = busy.pid();
    // The recorder has found the process by now. If it has not, it reports that the process is
    // gone.
    eventually("it is looked at", || spy(&[&pid, "--stack"]).status.success().then_some(()));
    drop(busy);
    let out = recording.join().expect("it ends");
    assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
}

/// An update has removed PHP's file while the process runs.
#[test]
fn stack_of_php_with_removed_binary_is_shown() {
    let folder = TempDir::new().expect("a folder");
    let (program, script) = (folder.path().join("php-of-old"), folder.path().join("busy.php"));
    let find = format!("command -v {}", php::program("php"));
    let installed = Command::new("sh").args(["-c", &find]).output().expect("a shell");
    let installed = text(&installed.stdout);
    std::fs::copy(installed.trim(), &program).expect("copied");
    std::fs::write(&script, "<?php\nfunction works() { while (true) { } }\nworks();")
        .expect("ours");
    // A process forked by another test holds the copy open for writing for a moment.
    let child = eventually("a copy runs as well", || {
        match Command::new(&program).arg("-n").arg(&script).stdout(Stdio::null()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => None,
            begun => Some(begun.expect("a copy runs as well")),
        }
    });
    let busy = Busy { child, folder };
    let has_begun = |out: Output| text(&out.stdout).contains("works()").then_some(());
    eventually("PHP has begun", || has_begun(spy(&[&busy.pid(), "--stack"])));
    std::fs::remove_file(&program).expect("ours");
    let out = spy(&[&busy.pid(), "--stack"]);
    assert!(out.status.success() && text(&out.stdout).contains("works() "), "{out:?}");
}

#[test]
fn missing_permission_is_explained_with_hint() {
    // Only root can run the command as another user.
    if !is_root() {
        return;
    }
    let busy = Busy::start("while (true) { usleep(100); }");
    // The user `nobody` has no access to the folder of the binary.
    let folder = TempDir::new().expect("a folder");
    let copy = folder.path().join("samovar");
    std::fs::copy(binary(), &copy).expect("copied");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    let mut command = Command::new(&copy);
    let out = command
        .args(["spy", &busy.pid(), "--stack"])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .output();
    let out = out.expect("the binary runs");
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains(&format!("no permission to read process {}", busy.pid())), "{said}");
    assert!(said.contains("\nhint: sudo samovar spy"), "{said}");
}
