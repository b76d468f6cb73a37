//! The first page, through both servers.

use samovar_testkit::{Oracle, Server, family, workspace};
use std::process::Command;

#[test]
fn first_page_matches_php_fpm() {
    let root = workspace().join("examples/hello/public");
    let server = Server::at(&root).start();
    let oracle = Oracle::start(&root);
    for target in ["/", "/?name=Ann", "/style.css", "/no/such/page"] {
        let (ours, theirs) = (server.get(target), oracle.get(target));
        assert_eq!(
            (ours.status, ours.header("content-type")),
            (theirs.status, theirs.header("content-type"))
        );
        let plain = |text: String| -> String {
            text.lines().filter(|l| !l.contains("<code>")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(plain(ours.text()), plain(theirs.text()), "{target}");
    }
    let status = server.status();
    assert_eq!(status["requests_total"], 4, "{status}");
    server.stop();
}

/// The RPMs of the server are made on Debian 12 (scripts/rpm.sh), and Enterprise Linux 9 has glibc
/// 2.34. Programs that are built on a newer Debian may use newer functions.
#[test]
fn programs_of_debian_12_run_with_glibc_2_34() {
    const GLIBC_NEWEST: (u32, u32) = (2, 34);
    let release = std::fs::read_to_string("/etc/os-release").expect("Debian has it");
    if !release.contains("VERSION_ID=\"12\"") {
        return;
    }
    let server = samovar_testkit::binary();
    for program in [server.clone(), server.with_file_name("samovar-php")] {
        let listed = Command::new("objdump").arg("-T").arg(&program).output().expect("objdump");
        let listed = String::from_utf8_lossy(&listed.stdout);
        let version = |line: &str| {
            let (_, text) = line.split_once("GLIBC_")?;
            let (major, rest) = text.split_once('.')?;
            let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
        };
        let all: Vec<_> = listed.lines().filter(|line| line.contains("GLIBC_")).collect();
        assert!(all.len() > 100, "{} uses libc", program.display());
        let too_new: Vec<_> =
            all.into_iter().filter(|line| version(line).is_none_or(|v| v > GLIBC_NEWEST)).collect();
        assert!(too_new.is_empty(), "{}: {too_new:#?}", program.display());
    }
}

/// The runner's check after each test: it finds the processes of a running server, and none of a
/// stopped one.
#[test]
fn remaining_processes_are_detected() {
    let server = Server::at(workspace().join("examples/hello/public")).workers(2).start();
    let (name, value) = server.marker();
    let left = family::with(name, &value);
    assert!(left.len() >= 4, "server, template and two workers: {left:?}");
    assert!(family::with(family::RUN, &family::run()).len() >= left.len(), "they are of this run");
    let worker = server.worker_pid();
    let told = left.iter().find(|one| one.pid == worker).expect("a worker").to_string();
    assert!(told.contains("samovar-php") && told.contains("parent "), "{told}");
    server.stop();
    assert_eq!(family::gone(name, &value), Ok(()));
}
