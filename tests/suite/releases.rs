//! `samovar deploy` and `samovar rollback` with a running server: the link, the generation and the
//! visitors see one release after the other.

use samovar_testkit::SetOnDrop;
use samovar_testkit::{Server, Ssh, binary, eventually, kill};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// Beginning and end of a release's front controller, by model.
const MODELS: [(&str, &str); 3] = [("", ""), ("Samovar\\checkpoint();", ""), ("", "serve")];

struct Shop(TempDir);

impl Shop {
    fn new() -> Shop {
        Shop(TempDir::with_prefix("samovar-releases-").expect("a folder"))
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("shop")
    }

    fn current(&self) -> PathBuf {
        self.folder().join("current/public")
    }

    /// Writes a release whose front controller is `php`.
    fn build(&self, php: &str) -> PathBuf {
        let build = self.0.path().join("build");
        std::fs::create_dir_all(build.join("public")).expect("our own folder");
        std::fs::write(build.join("public/index.php"), php).expect("our own folder");
        build
    }

    /// Writes a release that prints its name.
    fn named(&self, name: &str, (begin, end): (&str, &str)) -> PathBuf {
        std::fs::create_dir_all(self.0.path().join("build/public")).expect("our own folder");
        std::fs::write(self.0.path().join("build/public/page.txt"), name).expect("our own folder");
        self.build(&match end {
            "" => format!("<?php {begin} echo '{name}';"),
            _ => format!("<?php Samovar\\serve(static function () {{ echo '{name}'; }});"),
        })
    }

    fn run(&self, command: &str, args: &[&str]) -> Output {
        let mut run = Command::new(binary());
        run.current_dir(self.0.path()).arg(command).args(args).arg("--folder").arg(self.folder());
        run.output().expect("the binary runs")
    }

    /// Deploys to the server, or without one.
    fn deploy(&self, server: Option<&Server>, source: &Path, more: &[&str]) -> Output {
        let control = server.map(|server| server.control().display().to_string());
        let of_server = match &control {
            Some(control) => vec!["--control", control],
            None => vec!["--no-reload"],
        };
        let source = source.to_str().expect("a plain path");
        self.run("deploy", &[&[source][..], &of_server, more].concat())
    }

    fn rollback(&self, server: &Server, more: &[&str]) -> Output {
        let control = server.control().display().to_string();
        self.run("rollback", &[&["--control", &control][..], more].concat())
    }

    fn releases(&self) -> Vec<(String, bool)> {
        let output = self.run("releases", &["--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = found.as_array().expect("a list").iter();
        let of = |release: &Value| {
            let name = release["name"].as_str().expect("a name").to_owned();
            (name, release["is_current"] == true)
        };
        found.map(of).collect()
    }
}

fn good(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn releases_follow_one_another_without_a_lost_request() {
    for model in MODELS {
        let shop = Shop::new();
        let told = good(&shop.deploy(None, &shop.named("one", model), &["--name", "one"]));
        assert!(told.contains("no server was reloaded"), "{told}");
        let server = Server::at(shop.current()).workers(2).start();
        assert_eq!(server.get("/").text(), "one");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                let (mut client, mut last) = (server.client(), String::new());
                while !is_over.load(Ordering::SeqCst) {
                    let response = client.get("/");
                    assert_eq!(response.status, 200, "{}", response.text());
                    last = response.text();
                }
                last
            });
            let ends = SetOnDrop(&is_over);
            let source = shop.named("two", model);
            let told = good(&shop.deploy(Some(&server), &source, &["--name", "two"]));
            assert!(told.contains("generation 2, release two, serves"), "{told}");
            assert!(told.ends_with("the release two serves\n"), "{told}");
            assert_eq!(server.get("/page.txt").text(), "two");
            assert_eq!(server.get("/").text(), "two");
            // The build folder may change, and the release must not.
            shop.named("three", model);
            let told = good(&shop.rollback(&server, &[]));
            assert!(told.ends_with("the release one serves\n"), "{told}");
            assert_eq!(server.get("/").text(), "one");
            drop(ends);
            assert_eq!(visitor.join().expect("no request is lost"), "one");
        });
        let expected = [("two", false), ("one", true)].map(|(name, is)| (name.to_owned(), is));
        assert_eq!(shop.releases(), expected);
        server.stop();
    }
}

#[test]
fn release_that_does_not_boot_changes_nothing() {
    let shop = Shop::new();
    let model = MODELS[1];
    good(&shop.deploy(None, &shop.named("one", model), &["--name", "one"]));
    let server = Server::at(shop.current()).workers(2).start();
    let before = std::fs::read_link(shop.folder().join("current")).expect("a link");
    let broken = shop.build("<?php throw new Exception('no database'); Samovar\\checkpoint();");
    let why = error(&shop.deploy(Some(&server), &broken, &["--name", "two"]));
    assert!(why.contains("release `two`: the old generation keeps serving"), "{why}");
    let probed = shop.build("<?php Samovar\\checkpoint(); http_response_code(500);");
    let flags = ["--name", "three", "--probe", "/"];
    let why = error(&shop.deploy(Some(&server), &probed, &flags));
    assert!(why.contains("`/` returned 500 in the new generation"), "{why}");
    assert_eq!(std::fs::read_link(shop.folder().join("current")).expect("a link"), before);
    assert_eq!(server.get("/").text(), "one");
    let expected = [("three", false), ("one", true)].map(|(name, is)| (name.to_owned(), is));
    assert_eq!(shop.releases(), expected, "the last failed one stays until the next deploy");
    let table = good(&shop.run("releases", &[]));
    let is_row = |begin: &str, end: &str| {
        table.lines().any(|line| line.starts_with(begin) && line.ends_with(end))
    };
    assert!(is_row("three ", "  failed") && is_row("one ", "  current"), "{table}");
    let why = error(&shop.rollback(&server, &[]));
    assert!(why.contains("older than `one`") && why.contains("hint: "), "{why}");
    let control = server.control().display().to_string();
    server.stop();
    let source = shop.named("four", model).display().to_string();
    let why = error(&shop.run("deploy", &[&source, "--control", &control]));
    assert!(why.contains("cannot reach the server"), "{why}");
    assert_eq!(shop.releases().len(), 2, "nothing was unpacked");
}

#[test]
fn signals_end_the_running_command_and_free_the_lock() {
    let shop = Shop::new();
    let (begun, ended) = (shop.0.path().join("begun"), shop.0.path().join("ended"));
    let source = shop.named("one", MODELS[0]);
    for (signal, name) in [(2, "SIGINT"), (15, "SIGTERM"), (1, "SIGHUP")] {
        let script = shop.0.path().join("script.sh");
        // It outlives the shell of the deploy, which SIGTERM ends at once.
        let text = format!(
            "trap 'until grep -q ^State:.Z /proc/$PPID/status; do :; done\n\
             echo $SAMOVAR_RELEASE > {}; exit 1' TERM\necho > {}; tail -f /dev/null & wait\n",
            ended.display(),
            begun.display()
        );
        std::fs::write(&script, text).expect("our own folder");
        let command = format!("sh {}; true", script.display());
        let deploy = Command::new(binary())
            .current_dir(shop.0.path())
            .args(["deploy", "--no-reload", "--name", name, "--before", &command, "--folder"])
            .args([&shop.folder(), &source])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        eventually("the command", || begun.exists().then_some(()));
        kill(deploy.id().cast_signed(), signal);
        let output = deploy.wait_with_output().expect("a child");
        let why = error(&output);
        assert!(why.contains(&format!("because the deploy received {name}")), "{why}");
        assert_eq!(std::fs::read_to_string(&ended).expect("the trap").trim(), name);
        std::fs::remove_file(&begun).expect("our own folder");
    }
    good(&shop.deploy(None, &source, &["--name", "one"]));
}

#[test]
fn canary_decides_about_the_link() {
    let shop = Shop::new();
    let model = MODELS[1];
    good(&shop.deploy(None, &shop.named("one", model), &["--name", "one"]));
    let server = Server::at(shop.current()).workers(2).args(["--admin", "127.0.0.1:0"]).start();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            let mut client = server.client();
            while !is_over.load(Ordering::SeqCst) {
                client.get("/");
            }
        });
        let ends = SetOnDrop(&is_over);
        let canary = ["--canary", "50%,100%", "--by", "random", "--step", "0", "--name"];
        let source = shop.named("two", model);
        let told = good(&shop.deploy(Some(&server), &source, &[&canary[..], &["two"]].concat()));
        assert!(told.contains("serves 50% of the visitors by random"), "{told}");
        assert_eq!(server.get("/").text(), "two");
        let failing = shop.build("<?php Samovar\\checkpoint(); throw new Exception('rare');");
        let flags = [&canary[..], &["three", "--force"]].concat();
        let why = error(&shop.deploy(Some(&server), &failing, &flags));
        assert!(why.contains("the canary was aborted: ") && why.contains("rare"), "{why}");
        drop(ends);
        visitor.join().expect("no panic");
    });
    assert_eq!(server.get("/").text(), "two");
    let link = std::fs::read_link(shop.folder().join("current")).expect("a link");
    assert_eq!(link, Path::new("releases/two"));
    server.stop();
}

#[test]
fn several_hosts_are_deployed_in_order_up_to_a_failure() {
    let ssh = Ssh::start();
    let shop = Shop::new();
    let key = ssh.key();
    let program = format!(
        "ssh -q -i {} -p {} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o \
         BatchMode=yes",
        key.display(),
        ssh.address().port()
    );
    let remote = format!("'{}'", binary().display());
    let to = |hosts: &[&str]| {
        let mut flags = vec!["--ssh".to_owned(), program.clone()];
        flags.extend(["--remote-command".to_owned(), remote.clone(), "--no-reload".to_owned()]);
        flags.extend(hosts.iter().map(|host| format!("--host={host}")));
        flags
    };
    let source = shop.named("one", MODELS[0]);
    let source = source.to_str().expect("a plain path");
    let run = |command: &str, args: &[&str], hosts: &[&str]| {
        let flags = to(hosts);
        let flags = flags.iter().map(String::as_str);
        shop.run(command, &args.iter().copied().chain(flags).collect::<Vec<_>>())
    };
    // Arguments with blanks and quotes arrive there as they are.
    let args = [source, "--name", "one", "--before", "echo \"it's $SAMOVAR_RELEASE\" > 'a b'"];
    let told = good(&run("deploy", &args, &["127.0.0.1"]));
    assert!(told.ends_with("the release one serves on 127.0.0.1\n"), "{told}");
    let made = std::fs::read_to_string(shop.folder().join("current/a b"));
    assert_eq!(made.expect("the command ran there"), "it's one\n");
    // The second host is the same machine, and has this release already.
    let hosts = ["127.0.0.1", "localhost", "127.0.0.2"];
    let why = error(&run("deploy", &[source, "--name", "two"], &hosts));
    for part in [
        "the release `two` exists already",
        "localhost: the command ended there with exit status 1",
        "the release two serves on 127.0.0.1",
        "nothing was changed on 127.0.0.2",
        "hint: ",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    good(&run("rollback", &[], &["127.0.0.1"]));
    eventually("the link", || {
        let link = std::fs::read_link(shop.folder().join("current")).ok()?;
        (link == Path::new("releases/one")).then_some(())
    });
    let why = error(&run("rollback", &[], &["-oProxyCommand=touch /tmp/x"]));
    assert!(why.contains("is not the name of a host"), "{why}");
}
