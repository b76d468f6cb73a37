//! Compiles the C boundary against the PHP that `php-config` describes and links its embed library.
//!
//! `PHP_CONFIG=php-config8.3` selects another PHP. Definitions that both languages share are
//! generated for C from the Rust source (`from_rust.h`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../channel/src/exit.rs"]
#[allow(unreachable_pub)] // It must be `pub` in crates/channel.
mod exit;
#[path = "../channel/src/php_versions.rs"]
#[allow(unreachable_pub)] // As above.
mod php_versions;

/// An option of `src/php_options.in.rs`: name in C, type, description.
struct PhpOption(&'static str, &'static str, &'static str);

macro_rules! php_options {
    (|$options:ident, $frankenphp_worker:ident| $(
        $(#[doc = $doc:literal])* $name:ident: $kind:ident = $from:expr;
    )*) => {
        const PHP_OPTIONS: &[PhpOption] =
            &[$(PhpOption(stringify!($name), stringify!($kind), concat!($($doc),*))),*];
    };
}

include!("src/php_options.in.rs");

const CSRC: &str = "csrc";
const PHP_VERSIONS: &str = "../channel/src/php_versions.rs";
/// Maximum number of symbolic links followed from `php-config` to its target; the same limit as
/// Linux.
const LINKS_MAX: usize = 40;
const FOR_SPY: &str = "samovar_request_target_at";
const LIBRARY: &str = "samovar_boundary";
/// Prefixes of our own functions and variables. `zif_` is PHP's prefix for functions that PHP code
/// calls.
const OWN_PREFIXES: [&str; 2] = ["samovar_", "zif_"];

fn main() {
    println!("cargo:rerun-if-env-changed=PHP_CONFIG");
    println!("cargo:rerun-if-env-changed=NM");
    for read in [CSRC, "src/php_options.in.rs", "../channel/src/exit.rs", PHP_VERSIONS] {
        println!("cargo:rerun-if-changed={read}");
    }
    let config = std::env::var("PHP_CONFIG").unwrap_or_else(|_| "php-config".into());
    watch(&config);
    let (major, minor) = php_version(&config);
    let mut build = cc::Build::new();
    build.files(sources(Path::new(CSRC))).include(CSRC);
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    std::fs::write(Path::new(&out).join("from_rust.h"), from_rust()).expect("cargo's own folder");
    build.include(&out);
    build.opt_level(2).warnings(false).flag("-Wall").flag("-Wextra");
    // Later compilers reject this by default.
    build.flag("-Werror=implicit-function-declaration");
    // Every function that other files use is declared in a header. A function with neither a
    // declaration nor `static` would be exported and used by all libraries in place of a libc
    // function (`interposed`).
    build.flag("-Werror=missing-prototypes");
    // PHP's own headers are not clean under -Wextra.
    build.flag("-Wno-unused-parameter").flag("-Wno-sign-compare").flag("-Wno-clobbered");
    for flag in ask(&config, "--includes").split_whitespace() {
        build.flag(flag.replacen("-I", "-isystem", 1));
    }
    // PHP's headers use glibc extensions, and may be included after a glibc header. The value is
    // empty, as in the `#define _GNU_SOURCE` of our own files.
    build.define("_GNU_SOURCE", Some(""));
    build.define("SAMOVAR_VERSION", concat!("\"", env!("CARGO_PKG_VERSION"), "\""));
    // Links the whole archive: no code here refers to most of the interposed functions by name.
    build.link_lib_modifier("+whole-archive");
    build.compile(LIBRARY);
    link_libphp(&config, &format!("php{major}.{minor}"));
    for name in interposed(&out) {
        println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={name}");
    }
    // Nothing here refers to this variable; other processes read it.
    println!("cargo:rustc-link-arg-bins=-Wl,--undefined={FOR_SPY}");
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol={FOR_SPY}");
}

/// Links libphp. Debian names it by its version, in a folder of the dynamic linker. Other builds
/// name it `libphp.so` below their prefix: Remi's packages below /opt, and PHP compiled from
/// source. They are found there at run time, too.
///
/// All of Debian's versions call themselves `libphp.so`, and that name leads to the newest
/// installed one. The package of the worker therefore has a folder with a link to its own version.
fn link_libphp(config: &str, versioned: &str) {
    let prefix = PathBuf::from(ask(config, "--prefix"));
    let folders = ["lib64", "lib"].map(|folder| prefix.join(folder));
    let has = |folder: &Path, name: &str| folder.join(format!("lib{name}.so")).is_file();
    let own = folders.iter().find(|folder| has(folder, "php"));
    match own.filter(|_| !folders.iter().any(|folder| has(folder, versioned))) {
        None => {
            println!("cargo:rustc-link-lib=dylib={versioned}");
            println!("cargo:rustc-link-arg-bins=-Wl,-rpath,/usr/lib/samovar-{versioned}");
        }
        Some(folder) => {
            println!("cargo:rustc-link-lib=dylib=php");
            println!("cargo:rustc-link-search=native={}", folder.display());
            if prefix != Path::new("/usr") {
                println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", folder.display());
            }
        }
    }
}

/// Returns the major and minor number of the PHP, if its version is supported.
fn php_version(config: &str) -> (String, String) {
    let version = ask(config, "--version");
    if let Some(problem) = php_versions::php_version_problem(&version) {
        panic!("{problem}");
    }
    let mut parts = version.split('.').map(str::to_owned);
    let mut next = || parts.next().expect("the check has found two numbers");
    (next(), next())
}

/// Returns the C header with the definitions that Rust declares.
fn from_rust() -> String {
    let mut text = String::from(
        "/* Written by build.rs from src/php_options.in.rs and channel/src/exit.rs. */\n\
         #ifndef SAMOVAR_FROM_RUST_H\n#define SAMOVAR_FROM_RUST_H\n\
         #include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         typedef struct {\n",
    );
    for PhpOption(name, kind, doc) in PHP_OPTIONS {
        let kind = match *kind {
            "Text" => "const char *",
            "bool" => "bool ",
            "usize" => "size_t ",
            "u64" => "uint64_t ",
            other => panic!("no type of C is known for `{name}: {other}`"),
        };
        let _ = writeln!(text, "    {kind}{name}; /*{doc} */");
    }
    let _ = writeln!(
        text,
        "}} samovar_options;\n\n\
         /* Exit status of a worker that is to be replaced at once. */\n\
         enum {{ SAMOVAR_EXIT_REPLACE = {} }};\n\n#endif",
        exit::EXIT_REPLACE
    );
    text
}

/// Returns every `.c` file below `folder`, in an order that does not depend on the file system.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot read `{}`: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the names of the libc functions (csrc/interpose) and of the libphp function
/// (rollback/reseed.c) that are redefined here: every name that is not our own. The dynamic linker
/// must find them in the executable for every caller at any time.
fn interposed(folder: &str) -> Vec<String> {
    let library = format!("{folder}/lib{LIBRARY}.a");
    let nm = std::env::var("NM").unwrap_or_else(|_| "nm".into());
    let listed = run(
        Command::new(nm).args(["--extern-only", "--defined-only", "--format=posix", &library]),
        "install binutils, or set NM",
    );
    listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, _)| name)
        .filter(|name| {
            !name.ends_with(':') && !OWN_PREFIXES.iter().any(|own| name.starts_with(own))
        })
        .map(str::to_owned)
        .collect()
}

/// Makes Cargo rerun this script when another PHP is installed, or when `php-config` leads to
/// another one. Files of a package keep the package's timestamps even when they have just been
/// installed. The timestamps of their folders change, so the folders are watched.
fn watch(config: &str) {
    let headers = ask(config, "--include-dir");
    // For a missing folder, Cargo would rerun the script on every build.
    let folders = ["main", "Zend", "TSRM", "ext"].map(|name| Path::new(&headers).join(name));
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|folder| folder.join(config))
        .find(|path| path.is_file());
    let mut next = found;
    for _ in 0..LINKS_MAX {
        let Some(path) = next else { break };
        println!("cargo:rerun-if-changed={}", path.display());
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        next = std::fs::read_link(&path).ok().map(|to| folder.join(to));
    }
}

fn ask(config: &str, what: &str) -> String {
    let hint = "apt-get install php-dev libphp-embed, or set PHP_CONFIG";
    run(Command::new(config).arg(what), hint).trim().to_owned()
}

fn run(command: &mut Command, hint: &str) -> String {
    let shown = format!("{command:?}");
    match command.output() {
        Ok(response) if response.status.success() => {
            String::from_utf8_lossy(&response.stdout).into_owned()
        }
        Ok(response) => panic!("{shown} failed: {}\nhint: {hint}", response.status),
        Err(error) => panic!("cannot run {shown}: {error}\nhint: {hint}"),
    }
}
