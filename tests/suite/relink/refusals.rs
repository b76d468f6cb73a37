//! Conditions that prevent relinking are reported, and PHP runs unchanged.

use crate::relink::{linking, own_code_kb};
use samovar_testkit::{Server, workspace};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Code that runs before the template: starts another thread, or makes the kernel refuse new
/// executable memory.
const BEFORE: &str = r#"
    #define _GNU_SOURCE
    #include <errno.h>
    #include <pthread.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    static void *wait_for_ever(void *nothing) { pause(); return nothing; }
    __attribute__((constructor)) static void begin(void) {
        const char *what = getenv("RELINK_BEFORE");
        if (!what || !strstr(program_invocation_short_name, "samovar-php")) return;
        pthread_t thread;
        if (strcmp(what, "thread") == 0) pthread_create(&thread, NULL, wait_for_ever, NULL);
        else if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) != 0) _exit(9);
    }
"#;

fn library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("before.c"), folder.join("before.so"));
    std::fs::write(&source, BEFORE).expect("our folder");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC"]).arg(&source).arg("-o").arg(&library);
    assert!(compiler.status().expect("a C compiler").success());
    library
}

fn is_refused(before: &str, why: &str) {
    let folder = TempDir::new().expect("a temporary folder");
    let server = Server::at(workspace().join("examples/hello/public"))
        .relinked()
        .workers(1)
        .env("LD_PRELOAD", &library(folder.path()).display().to_string())
        .env("RELINK_BEFORE", before)
        // The regular expression compiler needs executable memory.
        .define("pcre.jit", "0")
        .start();
    assert_eq!(server.get("/").status, 200);
    let said = linking(&server);
    assert_eq!(said["state"], "refused", "{said}");
    let told = said["why"].as_str().expect("a text");
    assert!(told.contains(why), "{said}");
    assert_eq!(own_code_kb(&server), 0);
    server.wait_for_log("libphp is not linked directly: ");
}

#[test]
fn relinking_with_another_thread_is_refused() {
    is_refused("thread", "2 threads");
}

#[test]
fn relinking_without_executable_memory_is_refused() {
    // Requires Linux 6.3.
    if std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|v| is_older(&v, (6, 3))) {
        return;
    }
    is_refused("mdwe", "the kernel does not allow changes of code");
}

fn is_older(release: &str, than: (u32, u32)) -> bool {
    let mut numbers = release.split('.').map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < than
}
