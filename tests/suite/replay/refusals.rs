//! Calls that a replay refuses, also if no function of PHP makes them.

use super::{MODELS, builder, record, recorded, replay};
use samovar_testkit::http::Request;
use samovar_testkit::workspace;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A key of message queues that no other test uses.
const KEY: &str = "74119";
/// From `fcntl.h`: a read of an empty pipe fails.
const O_NONBLOCK: i32 = 0o4000;

fn run(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().expect("the program runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Opens a pipe, so that its content stays when a writer has closed it.
fn open(pipe: &Path) -> File {
    run(&["mkfifo", &pipe.to_string_lossy()]);
    let file = File::options().read(true).write(true).custom_flags(O_NONBLOCK).open(pipe);
    file.expect("a pipe")
}

/// Whether there is an effect outside of the process, which is removed.
fn take_effect(way: &str, at: &Path, mut pipe: &File) -> bool {
    match way {
        "named pipe" => pipe.read(&mut [0; 8]).is_ok_and(|n| n > 0),
        _ => std::fs::remove_file(at).is_ok(),
    }
}

#[test]
fn processes_and_pipes_are_refused_in_each_model() {
    for model in MODELS {
        let server = builder(model).define("ffi.enable", "true").start();
        let pipe = server.folder().join("pipe");
        let held = open(&pipe);
        let file = server.folder().join("effect");
        let ways = [("system()", &file), ("execve()", &file), ("named pipe", &pipe)];
        record(&server, &["--path", "/effect"]);
        for (number, (way, at)) in ways.into_iter().enumerate() {
            let way_in_url = way.replace(' ', "%20");
            let target = format!("/effect?way={way_in_url}&at={}", at.display());
            server.client().request(&Request::form(&target, ""));
            let id = recorded(&server, number + 1).last().expect("it")["id"].to_string();
            assert!(take_effect(way, at, &held), "{model:?} {way}");
            let (_, response) = replay(&server, &[&id]);
            assert_eq!(response["network_refused"], true, "{model:?} {way}");
            assert!(!take_effect(way, at, &held), "{model:?} {way} {response:#}");
            replay(&server, &[&id, "--network", "allow"]);
            assert!(take_effect(way, at, &held), "{model:?} {way}: without the refusal");
        }
        let log = server.log();
        assert!(log.contains("replay: a write to a named pipe was refused"), "{model:?} {log}");
    }
}

#[test]
fn messages_of_queues_are_refused() {
    let server = builder(super::Model::Script).start();
    record(&server, &["--count", "1"]);
    let target = format!("/effect?way=message&at={KEY}");
    server.client().request(&Request::form(&target, ""));
    recorded(&server, 1);
    run(&["ipcrm", "-Q", KEY]);
    replay(&server, &["1"]);
    let queues = run(&["ipcs", "-q"]);
    let line = queues.lines().find(|line| line.starts_with("0x00012187"));
    let count = line.and_then(|line| line.split_whitespace().last()).map(str::to_owned);
    run(&["ipcrm", "-Q", KEY]);
    assert_eq!(count.as_deref(), Some("0"), "{queues}");
}

/// A thread that starts a program, and exits with the error of it.
const THREAD: &str = r#"
    #include "interpose/refused_calls.h"
    #include <errno.h>
    #include <pthread.h>
    #include <semaphore.h>
    #include <stdlib.h>
    #include <unistd.h>
    static sem_t is_refused;
    static void *run(void *none) {
        sem_wait(&is_refused);
        execl("/bin/true", "true", (char *)NULL);
        _exit(errno == EACCES ? 3 : 4);
        return none;
    }
    int main(void) {
        pthread_t thread;
        sem_init(&is_refused, 0, 0);
        if (pthread_create(&thread, NULL, run, NULL) != 0 || !samovar_refuse_calls()) return 5;
        sem_post(&is_refused);
        pthread_join(thread, NULL);
        return 6;
    }
"#;

#[test]
fn program_of_an_earlier_thread_is_refused() {
    let folder = TempDir::new().expect("a temporary folder");
    let (source, program) = (folder.path().join("thread.c"), folder.path().join("thread"));
    std::fs::write(&source, THREAD).expect("our folder");
    let csrc = workspace().join("crates/worker/csrc");
    let mut compiler = Command::new("cc");
    compiler.arg("-pthread").arg("-I").arg(&csrc).arg(&source);
    compiler.arg(csrc.join("interpose/refused_calls.c")).arg("-o").arg(&program);
    assert!(compiler.status().expect("a C compiler").success());
    let status = Command::new(&program).status().expect("it runs");
    assert_eq!(status.code(), Some(3), "0: the program was started");
}
