//! Commands that start a server for themselves, with the settings file of a server that runs: they
//! share no address, no file and no other system with it.

use samovar_testkit::collector::Collector;
use samovar_testkit::{Server, binary, family, is_root, port};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PHP: &str = "<?php
    class Page { public static array $cache = []; }
    Samovar\\serve(function () { Page::$cache['title'] ??= 'tea'; echo Page::$cache['title']; });";

fn run(command: &str, server: &Server, more: &[&str]) -> Output {
    let folder = server.folder();
    let mut run = Command::new(binary());
    run.arg(command).arg("--config").arg(folder.join("samovar.toml")).arg(folder.join("root"));
    run.args(["--urls", "/"]).args(more).current_dir(folder).env_clear();
    run.env(family::RUN, family::run()).stdin(Stdio::null());
    run.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if is_root() {
        run.arg("--allow-root");
    }
    run.output().expect("the binary runs")
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[test]
fn leaks_and_compare_share_nothing_with_running_server() {
    let start = Server::script(PHP).workers(1);
    let folder = start.folder().to_owned();
    let at = |name: &str| folder.join(name).display().to_string();
    let (admin, pinba) = (port(), port());
    let collector = Collector::start([]);
    let config = format!(
        "admin = \"{admin}\"\naccess_log = \"{access}\"\n\
         [insight]\nstore = \"{store}\"\nslow_log = \"{slow}\"\nslow_request = \"1ms\"\n\
         pinba_listen = \"{pinba}\"\ntrace_share = \"100%\"\n\
         otlp = \"{endpoint}\"\notlp_interval = \"100ms\"\notlp_metrics_interval = \"0s\"\n\
         [profile]\ntrace = \"100%\"\n",
        access = at("access.log"),
        store = at("history"),
        slow = at("slow.log"),
        endpoint = collector.endpoint,
    );
    let server = start.config(&config).start();
    // Its own log is read from standard error above.
    let log = format!("log = \"{}\"\nlog_format = \"json\"\n{config}", at("server.log"));
    std::fs::write(folder.join("samovar.toml"), log).expect("our folder");
    let files = ["server.log", "access.log", "slow.log"].map(|name| folder.join(name));
    for (command, more) in [("leaks", ["--times", "3"]), ("compare", ["--times", "2"])] {
        let before = files.each_ref().map(|file| lines(file));
        let output = run(command, &server, &more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {said}");
        assert_eq!(files.each_ref().map(|file| lines(file)), before, "{command}");
        assert_eq!(collector.posted().len(), 0, "{command}");
    }
    assert_eq!(server.get("/").status, 200);
}

/// A real server must not start on an address that is taken; the hint names the setting.
#[test]
fn taken_admin_address_names_its_own_setting() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let (code, log) = Server::script(PHP).args(["--admin", &address]).refuse();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains(&format!("cannot bind `{address}` of `admin`")), "{log}");
    assert!(log.contains("--admin HOST:PORT") && !log.contains("--listen"), "{log}");
}
