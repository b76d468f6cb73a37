//! Compiles the C boundary against the PHP that `php-config` describes and links its embed library.
//!
//! `PHP_CONFIG=php-config8.3` chooses another PHP.

use std::process::Command;

const SOURCES: [&str; 23] = [
    "sapi.c",
    "console.c",
    "variables.c",
    "user_ini.c",
    "functions.c",
    "activate.c",
    "resident.c",
    "reset.c",
    "checkpoint.c",
    "frankenphp.c",
    "inclusion.c",
    "connections.c",
    "opcache.c",
    "image.c",
    "survey.c",
    "rollback.c",
    "hot.c",
    "heap.c",
    "kernel.c",
    "reseed.c",
    "interpose.c",
    "request_object.c",
    "response_object.c",
];

/// The names of csrc/interpose.c, and one of reseed.c: the dynamic linker must find them in the executable, whoever asks and when.
const INTERPOSED: &[&str] = &[
    "php_random_mt19937_seed_default",
    "alarm",
    "chdir",
    "chroot",
    "close",
    "dlopen",
    "dup2",
    "dup3",
    "fchdir",
    "initgroups",
    "madvise",
    "mmap",
    "mmap64",
    "mremap",
    "munmap",
    "nice",
    "open",
    "open64",
    "openat",
    "openat64",
    "pipe",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "prctl",
    "pthread_create",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "sched_setaffinity",
    "sched_setscheduler",
    "semop",
    "semtimedop",
    "send",
    "sendmsg",
    "sendto",
    "setegid",
    "seteuid",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setitimer",
    "setpgid",
    "setpriority",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setuid",
    "sigaction",
    "sigprocmask",
    "signal",
    "socket",
    "socketpair",
    "timer_create",
    "umask",
    "unshare",
    "write",
    "writev",
];

fn main() {
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-changed=csrc");
    let config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".into());
    let mut build = cc::Build::new();
    build.files(SOURCES.map(|file| format!("csrc/{file}")));
    build.opt_level(2).warnings(false).flag("-Wall").flag("-Wextra");
    // What later compilers refuse by themselves.
    build.flag("-Werror=implicit-function-declaration");
    // PHP's own headers are not clean under -Wextra.
    build.flag("-Wno-unused-parameter").flag("-Wno-sign-compare").flag("-Wno-clobbered");
    for flag in ask(&config, "--includes").split_whitespace() {
        build.flag(flag.replacen("-I", "-isystem", 1));
    }
    build.compile("samovar_boundary");
    let version = ask(&config, "--version");
    let mut parts = version.split('.');
    let (Some(major), Some(minor)) = (parts.next(), parts.next()) else {
        panic!("`{config} --version` answered `{version}`, not a version");
    };
    println!("cargo:rustc-link-lib=dylib=php{major}.{minor}");
    for name in INTERPOSED {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={name}");
    }
}

fn ask(config: &str, what: &str) -> String {
    let hint = "hint: apt-get install php-dev libphp-embed, or set PHP_CONFIG";
    match Command::new(config).arg(what).output() {
        Ok(answer) if answer.status.success() => {
            String::from_utf8_lossy(&answer.stdout).trim().to_owned()
        }
        Ok(answer) => panic!("`{config} {what}` failed: {}\n{hint}", answer.status),
        Err(error) => panic!("cannot run `{config}`: {error}\n{hint}"),
    }
}
