//! A PHP that was built for threads (ZTS): each thread has its own stack. Debian's PHP is not built
//! so; `make spies` uses another.

use crate::program::Program;
use samovar_spy::Watch;
use samovar_testkit::{eventually, php};
use std::process::Command;
use tempfile::TempDir;

const HOST: &str = include_str!("threads.c");

/// Threads with odd numbers wait, the others compute. The depth of each thread's stack is its
/// number.
const SCRIPT: &str = r"<?php
class Turn {
    public static function down($n, $thread) {
        if ($n > 1) { return self::down($n - 1, $thread) + 1; }
        $name = $thread % 2 ? 'waits' : 'computes';
        return self::$name();
    }
    public static function waits() { echo '1'; while (true) { sleep(1000); } }
    public static function computes() { echo '1'; while (true) { for ($i = 0; $i < 1000; $i++); } }
}
Turn::down($thread, $thread);
";
const THREADS: usize = 8;

fn is_built_for_threads() -> bool {
    let told = Command::new(php::program("php")).args(["-n", "-r", "echo PHP_ZTS;"]).output();
    told.expect("PHP's command line is there").stdout == b"1"
}

/// A program with the threads, built with PHP's library for embedding.
fn host() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let (source, program) = (folder.path().join("threads.c"), folder.path().join("threads"));
    std::fs::write(&source, HOST).expect("written");
    std::fs::write(folder.path().join("threads.php"), SCRIPT).expect("written");
    let libraries = format!("{}/lib", php::config("--prefix"));
    let mut cc = Command::new("cc");
    cc.arg("-pthread").args(php::config("--includes").split_whitespace()).arg(&source);
    cc.arg("-o").arg(&program).arg(format!("-L{libraries}")).arg(format!("-Wl,-rpath,{libraries}"));
    let compiled = cc.arg("-lphp").output().expect("a compiler");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{said}\nhint: PHP's configure needs --enable-embed");
    folder
}

#[test]
fn each_thread_has_its_own_stack() {
    if !is_built_for_threads() {
        println!("PHP {} is built without threads: nothing to look at", php::version());
        return;
    }
    let host = host();
    let mut command = Command::new(host.path().join("threads"));
    command.arg(host.path().join("threads.php")).arg(THREADS.to_string());
    let mut program = Program::of(&mut command);
    assert_eq!(program.line(), "ready\n");
    let mut watch = Watch::of(&[program.pid()]).expect("it lives");
    let mut depths = [0_usize; THREADS];
    eventually("each thread has been seen", || {
        for sample in watch.look() {
            let names: Vec<_> =
                sample.stack.frames.iter().map(|f| f.function.full_name()).collect();
            let depth = names.iter().filter(|name| *name == "Turn::down").count();
            let begins: &[&str] = match names[0].as_str() {
                "sleep" => &["sleep", "Turn::waits"],
                // Before its first call of sleep(), or between two calls.
                "Turn::waits" => &["Turn::waits"],
                _ => &["Turn::computes"],
            };
            let expected = [begins, &vec!["Turn::down"; depth], &["{main}"]].concat();
            assert_eq!(names, expected);
            assert_eq!(depth % 2 == 0, names[0] == "Turn::computes", "{names:?}");
            depths[depth - 1] += 1;
        }
        depths.iter().all(|seen| *seen > 1).then_some(())
    });
}
