//! Complete sources in, settings or problems out.

mod changes;
mod consoles;
mod edge;
mod intakes;
mod pools;
mod problems;
mod relative_paths;
mod schedules;
mod secrets;
mod workers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schema::binary::PhpBinary;
use crate::schema::log_target::LogTarget;
use crate::schema::names;
use crate::schema::setting::Preset;
use crate::schema::settings::Settings;
use crate::schema::table::SETTINGS;
use crate::sources::Sources;

/// A working directory with the files of a case.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn with(self, file: &str, text: &str) -> Folder {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Returns the canonical path, as the root is canonical.
    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn sources(&self) -> Sources {
        Sources::new(self.path())
    }
}

/// Words `VAR=value` are the environment, pairs `--flag value` the command line; `--root` sets
/// PATH.
fn sources(folder: &Folder, typed: &[&str]) -> Sources {
    let mut sources = folder.sources();
    let mut words = typed.iter();
    while let Some(word) = words.next() {
        sources = match word.strip_prefix("--") {
            Some(flag) => sources.flag(names::by_flag(flag), *words.next().unwrap()),
            None => sources.envs([word.split_once('=').unwrap()]),
        };
    }
    sources
}

fn resolve(file: &str, typed: &[&str]) -> Settings {
    let folder = Folder::new().with("samovar.toml", file);
    sources(&folder, typed).resolve().unwrap()
}

/// Returns the text of all problems.
fn problems(file: &str, typed: &[&str]) -> String {
    let folder = Folder::new().with("samovar.toml", file);
    sources(&folder, typed).resolve().unwrap_err().to_string()
}

fn check(file: &str, typed: &[&str], field: fn(&Settings) -> String, expected: &str) {
    assert_eq!(field(&resolve(file, typed)), expected, "{file:?} {typed:?}");
}

fn check_problem(file: &str, typed: &[&str], message: &str, hint: &str) {
    assert_eq!(problems(file, typed), format!("{message}\nhint: {hint}"), "{file:?} {typed:?}");
}

fn list<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

fn listen(settings: &Settings) -> String {
    list(&settings.listen)
}

fn define(settings: &Settings) -> String {
    list(&settings.php.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>())
}

#[test]
fn settings_without_sources_are_the_defaults() {
    let settings = Folder::new().sources().resolve().unwrap();
    assert_eq!(listen(&settings), "127.0.0.1:8080");
    assert!((1..=1024).contains(&settings.workers.max));
    assert_eq!(settings.workers.min, settings.workers.max);
    assert_eq!(settings.limits.head_bytes_max, 65_536);
    assert_eq!(settings.limits.body_bytes_max, 134_217_728);
    assert_eq!(settings.limits.queue_max, 512);
    assert_eq!(settings.timeouts.idle, Duration::from_secs(75));
    assert!(settings.request_buffering && settings.static_files);
    assert_eq!((settings.php_binary, settings.php_ini, settings.control), (None, None, None));
    assert_eq!(settings.php_engine, None);
    assert_eq!((settings.server_name, settings.config_file), (None, None));
    assert_eq!(settings.access_log, LogTarget::Off);
    assert_eq!(settings.access_log_format.word(), "combined");
    assert_eq!((settings.log_level.word(), settings.log_format.word()), ("warn", "text"));
    assert_eq!(settings.temp_dir, Path::new("/tmp"));
}

#[test]
fn enum_default_equals_table_default() {
    use crate::schema::settings::{AccessLogFormat, LogFormat, LogLevel};
    let settings = Folder::new().sources().resolve().unwrap();
    assert_eq!(settings.access_log_format, AccessLogFormat::default());
    assert_eq!(settings.log_level, LogLevel::default());
    assert_eq!(settings.log_format, LogFormat::default());
}

#[test]
fn flag_overrides_environment_and_file() {
    let workers = |settings: &Settings| settings.workers.max.to_string();
    check("workers = 3", &[], workers, "3");
    check("workers = 3", &["SAMOVAR_WORKERS=4"], workers, "4");
    check("workers = 3", &["SAMOVAR_WORKERS=4", "--workers", "5"], workers, "5");
    check("", &["--workers", "5", "--workers", "6"], workers, "6");
    check("workers = 3", &["SAMOVAR_WORKERS="], workers, "3");
}

#[test]
fn list_from_stronger_source_replaces_weaker_list() {
    check("listen = ':80'", &[], listen, "0.0.0.0:80");
    check("listen = ['a:1', '[::1]:2']", &[], listen, "a:1 [::1]:2");
    check("listen = 'a:1'", &["SAMOVAR_LISTEN=b:1, c:2"], listen, "b:1 c:2");
    check("", &["SAMOVAR_LISTEN=b:1", "--listen", "c:1", "--listen", "d:1"], listen, "c:1 d:1");
    let trusted = |settings: &Settings| list(&settings.trusted_proxies);
    check("trusted_proxies = ['10.0.0.0/8', '::1']", &[], trusted, "10.0.0.0/8 ::1/128");
    check("trusted_proxies = []", &[], trusted, "");
}

#[test]
fn ini_directives_are_merged_key_by_key() {
    let file =
        "[php]\nmemory_limit = '1G'\nprecision = 14\nopcache.enable = true\ndisplay_errors = false";
    check(
        file,
        &["SAMOVAR_PHP=precision=15,a=1", "--php", "a=b,c", "--php", "x="],
        define,
        "a=b,c display_errors=0 memory_limit=1G opcache.enable=1 precision=15 x=",
    );
    check("[php.opcache]\nenable = 1", &[], define, "opcache.enable=1");
    check("php = { 'a.b' = 'c' }", &[], define, "a.b=c");
    check("", &["SAMOVAR_PHP=a=1,2\nb=3\n"], define, "a=1,2 b=3");
}

#[test]
fn file_accepts_every_kind_of_value() {
    let file = "
        server_name = 'example.org'
        static_files = false
        workers = 'auto'
        php_binary = '8.2'
        access_log = '-'
        access_log_format = 'json'
        log_level = 'debug'
        [limits]
        head_bytes_max = 4096
        body_bytes_max = '1G'
        retries_max = 0
        [timeouts]
        response = 0
        drain = '1h'
        idle = '500ms'
        queue = '2m'
    ";
    let settings = resolve(file, &[]);
    assert_eq!(settings.server_name.as_deref(), Some("example.org"));
    assert!(!settings.static_files);
    assert_eq!(settings.php_binary, Some(PhpBinary::Version("8.2".to_owned())));
    assert_eq!(settings.access_log, LogTarget::Stdout);
    assert_eq!((settings.access_log_format.word(), settings.log_level.word()), ("json", "debug"));
    assert_eq!((settings.limits.head_bytes_max, settings.limits.body_bytes_max), (4096, 1 << 30));
    assert_eq!(settings.limits.retries_max, 0);
    assert_eq!(settings.timeouts.response, Duration::ZERO);
    assert_eq!(settings.timeouts.drain, Duration::from_hours(1));
    assert_eq!(settings.timeouts.idle, Duration::from_millis(500));
    assert_eq!(settings.timeouts.queue, Duration::from_mins(2));
}

#[test]
fn repeatable_directives_are_lists() {
    let all = |file: &str, typed: &[&str]| resolve(file, typed).php["extension"].clone();
    assert_eq!(all("[php]\nextension = ['a', 'b', 'a']", &[]), "a\nb");
    assert_eq!(all("", &["--php", "extension=a", "--php", "extension=b"]), "a\nb");
    assert_eq!(all("[php]\nextension = 'a'", &["--php", "extension=b"]), "a\nb");
    let limit = resolve("[php]\nmemory_limit = '1M'", &["--php", "memory_limit=2M"]);
    assert_eq!(limit.php["memory_limit"], "2M");
    check_problem(
        "[php]\nmemory_limit = ['1M', '2M']",
        &[],
        "samovar.toml:2: `php.memory_limit = ['1M', '2M']` is not allowed",
        "`php.memory_limit` takes a string, an integer or a boolean, on one line",
    );
}

#[test]
fn config_file_is_selected_by_flag_then_environment() {
    let folder = Folder::new()
        .with("samovar.toml", "workers = 1")
        .with("env.toml", "workers = 2")
        .with("flag.toml", "workers = 3");
    let workers = |sources: Sources| sources.resolve().unwrap().workers.max;
    let named = folder.sources().envs([("SAMOVAR_CONFIG", "env.toml")]);
    assert_eq!(workers(folder.sources()), 1);
    assert_eq!(workers(named.clone()), 2);
    assert_eq!(workers(named.clone().config("flag.toml")), 3);
    assert_eq!(named.resolve().unwrap().config_file, Some("env.toml".into()));
    assert_eq!(
        folder.sources().config("nope.toml").resolve().unwrap_err().to_string(),
        "cannot read `nope.toml`: no such file\n\
         hint: `--config` and `SAMOVAR_CONFIG` take a TOML file",
    );
}

#[test]
fn relative_path_starts_at_file_or_working_directory() {
    let folder = Folder::new()
        .with("etc/samovar.toml", "root = '../www'\naccess_log = 'access.log'\ncontrol = 'c.sock'")
        .with("www/index.php", "");
    let settings = folder.sources().config("etc/samovar.toml").resolve().unwrap();
    assert_eq!(settings.root, folder.path().join("www"));
    assert_eq!(settings.access_log, LogTarget::File(folder.path().join("etc/access.log")));
    assert_eq!(settings.control, Some(folder.path().join("etc/c.sock")));
    let settings = sources(&folder, &["--access-log", "a.log"]).resolve().unwrap();
    assert_eq!(settings.access_log, LogTarget::File(folder.path().join("a.log")));
}

#[test]
fn root_and_front_controller_follow_from_path() {
    let check = |files: &[&str], path: Option<&str>, root: &str, script: Option<&str>| {
        let folder = files.iter().fold(Folder::new(), |folder, file| folder.with(file, ""));
        let typed: Vec<&str> = path.iter().flat_map(|path| ["--root", path]).collect();
        let settings = sources(&folder, &typed).resolve().unwrap();
        assert_eq!(settings.root, folder.path().join(root).canonicalize().unwrap());
        let expected = script.map(|script| settings.root.join(script));
        assert_eq!(settings.front_controller, expected, "{files:?} {path:?}");
    };
    check(&[], None, "", None);
    check(&["index.php"], None, "", Some("index.php"));
    check(&["index.php", "public/a.txt"], None, "public", None);
    check(&["index.php", "public/index.php"], None, "public", Some("index.php"));
    check(&["index.php", "public/index.php"], Some("."), "", Some("index.php"));
    check(&["web/app.php", "web/index.php"], Some("web/app.php"), "web", Some("app.php"));
    check(&["web/index.php"], Some("web"), "web", Some("index.php"));
    check(&["a.php/index.php"], Some("a.php"), "a.php", Some("index.php"));
}

#[test]
fn root_that_is_neither_folder_nor_script_is_reported() {
    let folder = Folder::new().with("notes.txt", "");
    assert_eq!(
        sources(&folder, &["SAMOVAR_ROOT=notes.txt"]).resolve().unwrap_err().to_string(),
        "`SAMOVAR_ROOT=notes.txt` is neither a folder nor a `.php` file\n\
         hint: name the folder to serve, or a `.php` file in it that handles requests",
    );
}

#[test]
fn script_that_is_a_symlink_keeps_its_name() {
    let folder = Folder::new().with("www/a.txt", "").with("lib/app.php", "");
    std::os::unix::fs::symlink("../lib/app.php", folder.path().join("www/index.php")).unwrap();
    let settings = sources(&folder, &["--root", "www/index.php"]).resolve().unwrap();
    assert_eq!(settings.front_controller, Some(folder.path().join("www/index.php")));
}

#[test]
fn control_socket_is_found_although_file_is_invalid() {
    let folder = Folder::new().with("samovar.toml", "control = '/run/a.sock'\nworkers = 0");
    assert_eq!(folder.sources().control().unwrap(), Some("/run/a.sock".into()));
    let folder = Folder::new().with("samovar.toml", "control = ");
    assert_eq!(folder.sources().control().unwrap(), None);
}

#[test]
fn table_rows_are_unique_and_documented() {
    for setting in SETTINGS {
        let key = setting.key;
        let twins = SETTINGS.iter().filter(|other| {
            other.key == key
                || other.flag == setting.flag
                || (other.short.is_some() && other.short == setting.short)
        });
        assert_eq!(twins.count(), 1, "{key}: key, flag and short flag are its own");
        assert!(!setting.value.is_empty() && !setting.flag.is_empty(), "{key}");
        assert!(!setting.doc.is_empty() && !setting.doc.ends_with('.'), "{key}: one line");
        assert!(setting.long.is_empty() || setting.long.ends_with('.'), "{key}: sentences");
        if let Preset::Derived(how) = setting.default {
            assert!(!how.is_empty(), "{key}: say what the default is");
        }
    }
}
