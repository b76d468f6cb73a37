//! A change → the source line that declares the changed value, or that called the function that
//! changed it.

use super::differ::Change;
use super::heap_walk::HeapWalk;
use super::holdings::kind_of_file;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

const SOURCE_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of files searched for the declaration of a global.
const FILES_MAX: usize = 2000;
const CALL: u8 = b'k';

/// Recorded calls, and sources that were read.
#[derive(Default)]
pub(super) struct Places {
    /// Function, first argument, `file:line`.
    calls: Vec<(String, String, String)>,
    files: Vec<String>,
    /// File and lines by class name.
    classes: HashMap<String, (String, (u32, u32))>,
    sources: RefCell<HashMap<String, Rc<str>>>,
}

impl Places {
    /// Adds a heap walk's data about calls, classes and files; the last one is the most complete.
    pub(super) fn learn(&mut self, heap_walk: &HeapWalk) {
        for node in heap_walk.of_kind(CALL) {
            let place = format!("{}:{}", node.file, node.lines.0);
            let known = self
                .calls
                .iter_mut()
                .find(|(name, first, _)| *name == node.key && *first == node.text);
            match known {
                Some(known) => known.2 = place,
                None => self.calls.push((node.key.clone(), node.text.clone(), place)),
            }
        }
        for node in heap_walk.of_kind(b'C') {
            self.classes.insert(node.key.clone(), (node.file.clone(), node.lines));
        }
        self.files = heap_walk.of_kind(b'I').map(|node| node.key.clone()).take(FILES_MAX).collect();
    }

    /// Returns the place of the declaration or of the change, as `file:line`.
    pub(super) fn of(&self, change: &Change) -> Option<String> {
        let owner = change.owner.as_ref();
        let class = owner.and_then(|(class, name)| Some((self.classes.get(class)?, name)));
        if let Some(((file, lines), property)) = class {
            return Some(self.declared(file, *lines, &[&format!("${property}")]));
        }
        let last = |separator: &str| change.root.rsplit(separator).next().unwrap_or_default();
        match change.kind {
            b's' => Some(self.declared(&change.file, change.lines, &["static", last("::")])),
            b'v' => Some(self.declared(&change.file, change.lines, &["static", last(" ")])),
            b'l' if !change.file.is_empty() => {
                Some(self.declared(&change.file, change.lines, &[last(" ")]))
            }
            b'g' => self.global(&change.root),
            b'C' | b'F' => Some(format!("{}:{}", change.file, change.lines.0)),
            _ => self.called(change),
        }
    }

    /// Returns the file in which a constant was defined.
    pub(super) fn file_of_constant(&self, name: &str) -> Option<String> {
        let place = self.call(&["define"], Some(name))?;
        Some(place.rsplit_once(':')?.0.to_owned())
    }

    /// Returns the first line that has all words; the first line of the range if none has.
    fn declared(&self, file: &str, lines: (u32, u32), words: &[&str]) -> String {
        let (from, to) = lines;
        let source = self.source(file);
        let count = (to.max(from) - from + 1) as usize;
        let lines = source.lines().enumerate().skip(from.saturating_sub(1) as usize).take(count);
        let mut found = lines.filter(|(_, line)| words.iter().all(|word| has_word(line, word)));
        let line = found.next().map_or(from as usize, |(n, _)| n + 1);
        format!("{file}:{line}")
    }

    /// Returns whether the name is a global variable of this file.
    pub(super) fn is_global_of(&self, name: &str, file: &str) -> bool {
        self.global(name)
            .is_some_and(|place| place.rsplit_once(':').is_some_and(|(f, _)| f == file))
    }

    pub(super) fn knows_call(&self, function: &str) -> bool {
        self.calls.iter().any(|(name, ..)| name == function)
    }

    fn global(&self, name: &str) -> Option<String> {
        let plain = name.trim_start_matches('$');
        let begins = [
            format!("$GLOBALS['{plain}']"),
            format!("$GLOBALS[\"{plain}\"]"),
            format!("{name} ="),
            format!("{name}[] ="),
        ];
        self.files.iter().find_map(|file| {
            let source = self.source(file);
            let is_it = |line: &str| {
                let line = line.trim_start();
                begins.iter().any(|begin| line.starts_with(begin))
                    || (line.starts_with("global ") && has_word(line, name))
            };
            let n = source.lines().position(is_it)?;
            Some(format!("{file}:{}", n + 1))
        })
    }

    fn source(&self, file: &str) -> Rc<str> {
        let read = || match std::fs::metadata(file) {
            Ok(info) if info.is_file() && info.len() <= SOURCE_BYTES_MAX => {
                std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into())
            }
            _ => Ok("".into()),
        };
        let mut sources = self.sources.borrow_mut();
        let source = sources.entry(file.to_owned());
        source.or_insert_with(|| read().unwrap_or_else(|_| "".into())).clone()
    }

    fn called(&self, change: &Change) -> Option<String> {
        let name = change.root.as_str();
        let exact = Some(name);
        match change.kind {
            b'i' => self.call(&["ini_set", "ini_alter"], exact).or_else(|| self.ini(name)),
            b'e' => self.call(&["putenv"], exact),
            b'c' => self.call(&["define"], exact),
            b'w' => self.call(
                &[
                    "stream_wrapper_register",
                    "stream_wrapper_unregister",
                    "stream_wrapper_restore",
                    "stream_filter_register",
                ],
                exact,
            ),
            b'h' | b'H' => self.handler(name),
            b'x' => self.setting(name),
            b'd' => self.opened(name),
            b'm' => self.call(&["shmop_open", "shm_attach", "dba_open"], None),
            b'p' => self.call(&["proc_open", "popen", "pcntl_fork"], None),
            _ => None,
        }
    }

    /// Settings of php.ini that have functions of their own.
    fn ini(&self, name: &str) -> Option<String> {
        let functions: &[&str] = match name {
            "error_reporting" => &["error_reporting"],
            "include_path" => &["set_include_path"],
            "zend.enable_gc" => &["gc_disable", "gc_enable"],
            "ignore_user_abort" => &["ignore_user_abort"],
            "max_execution_time" => &["set_time_limit"],
            "mbstring.internal_encoding" => &["mb_internal_encoding"],
            "date.timezone" => &["date_default_timezone_set"],
            "session.name" => &["session_name"],
            "session.save_path" => &["session_save_path"],
            "session.cache_limiter" => &["session_cache_limiter"],
            _ if name.starts_with("session.cookie") => &["session_set_cookie_params"],
            _ => return None,
        };
        self.call(functions, None)
    }

    fn handler(&self, name: &str) -> Option<String> {
        let functions: &[&str] = match name {
            _ if name.starts_with("autoloader") => {
                &["spl_autoload_register", "spl_autoload_unregister"]
            }
            _ if name.starts_with("shutdown function") => &["register_shutdown_function"],
            _ if name.starts_with("error") => &["set_error_handler", "restore_error_handler"],
            _ if name.starts_with("exception") => {
                &["set_exception_handler", "restore_exception_handler"]
            }
            _ => &["stream_context_set_default"],
        };
        self.call(functions, None)
    }

    fn setting(&self, name: &str) -> Option<String> {
        let own = name.replace("_get", "_set");
        let functions: Vec<&str> = match name {
            _ if name.starts_with("locale (") => vec!["setlocale", "locale_set_default"],
            "working directory" => vec!["chdir"],
            "umask" => vec!["umask"],
            "libxml_get_errors" => vec!["libxml_use_internal_errors"],
            "session_get_cookie_params" => vec!["session_set_cookie_params"],
            "priority" => vec!["proc_nice"],
            "alarm" => vec!["pcntl_alarm"],
            "user and group" => vec!["posix_setuid", "posix_setgid"],
            "blocked signals" => vec!["pcntl_sigprocmask"],
            _ if name.starts_with("limit of") => vec!["posix_setrlimit"],
            _ if name.starts_with("signal ") => vec!["pcntl_signal"],
            _ => vec![name, &own],
        };
        self.call(&functions, None)
    }

    /// Finds the call by its path, or the only place at which anything was opened.
    fn opened(&self, path: &str) -> Option<String> {
        const OPENERS: [&str; 12] = [
            "fopen",
            "opendir",
            "tmpfile",
            "popen",
            "proc_open",
            "fsockopen",
            "pfsockopen",
            "stream_socket_client",
            "stream_socket_server",
            "stream_socket_pair",
            "socket_create",
            "curl_init",
        ];
        let base = path.rsplit('/').next().unwrap_or(path).trim_end_matches(" (deleted)");
        let mut opened = self.calls.iter().filter(|(name, ..)| OPENERS.contains(&name.as_str()));
        let is_it = |first: &str| !base.is_empty() && kind_of_file(first).ends_with(base);
        let named = opened.clone().find(|(_, first, _)| is_it(first));
        let first = opened.next();
        let only = first.filter(|(.., place)| opened.all(|(.., other)| other == place));
        named.or(only).map(|(.., place)| place.clone())
    }

    fn call(&self, functions: &[&str], argument: Option<&str>) -> Option<String> {
        let found = self.calls.iter().find(|(name, first, _)| {
            functions.contains(&name.as_str()) && argument.is_none_or(|argument| argument == first)
        });
        found.map(|(.., place)| place.clone())
    }
}

/// Finds a whole word: `$a` is not found in `$ab`.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let behind = line[at + word.len()..].chars().next();
        !behind.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_is_found_within_its_class() {
        let file = std::env::temp_dir().join(format!("samovar-place-{}.php", std::process::id()));
        std::fs::write(
            &file,
            "<?php\nclass A {\n  static $itemsOld;\n  private static array $items = [];\n}\n",
        )
        .expect("ours");
        let change = |root: &str| Change {
            kind: b's',
            root: root.to_owned(),
            file: file.display().to_string(),
            lines: (2, 5),
            ..Change::default()
        };
        let places = Places::default();
        let line = |root: &str| {
            places.of(&change(root)).and_then(|p| p.rsplit(':').next().map(str::to_owned))
        };
        assert_eq!(line("A::$items").as_deref(), Some("4"));
        assert_eq!(line("A::$missing").as_deref(), Some("2"));
        std::fs::remove_file(&file).expect("ours");
    }

    #[test]
    fn calls_are_found_by_name_and_argument() {
        let call = |name: &str, first: &str, place: &str| {
            (name.to_owned(), first.to_owned(), place.to_owned())
        };
        let places = Places {
            calls: vec![
                call("ini_set", "precision", "a.php:1"),
                call("ini_set", "memory_limit", "a.php:2"),
                call("date_default_timezone_set", "UTC", "a.php:3"),
                call("fopen", "../x/log.txt", "a.php:4"),
                call("fopen", "other", "a.php:5"),
            ],
            ..Places::default()
        };
        let of = |kind: u8, root: &str| {
            places.of(&Change { kind, root: root.to_owned(), ..Change::default() })
        };
        assert_eq!(of(b'i', "memory_limit").as_deref(), Some("a.php:2"));
        assert_eq!(of(b'x', "date_default_timezone_get").as_deref(), Some("a.php:3"));
        assert_eq!(of(b'd', "/srv/x/log.txt").as_deref(), Some("a.php:4"));
        assert_eq!(of(b'd', "/srv/x/log.txt (deleted)").as_deref(), Some("a.php:4"));
        assert_eq!(of(b'd', "/srv/unknown"), None);
    }
}
