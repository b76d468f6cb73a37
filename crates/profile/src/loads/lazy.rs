//! Files that requests still load below the checkpoint, added up over the sampled requests, and
//! advice for warming them up. Pure.

use super::report::{Cost, Kind, Report};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Maximum number of files; further files are counted as one.
const FILES_MAX: usize = 2_000;
/// Maximum number of request paths; further paths cannot be advised as warm-up requests.
const PATHS_MAX: usize = 200;
/// Maximum bytes of a path that can be advised as a warm-up request.
const PATH_BYTES_MAX: usize = 256;
/// Maximum number of advised warm-up requests.
const ADVISED_MAX: usize = 5;
/// Maximum number of classes or files in one piece of advice.
const LINE_MAX: usize = 40;
/// Minimum fraction of the cost that a path must save, to be worth a request at each boot.
const WORTH: f64 = 0.01;
const OTHERS: &str = "(other files)";

/// Loads of the sampled requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lazy {
    /// Number of sampled requests.
    pub requests: u64,
    /// Number of sampled requests that loaded a file or class.
    pub loading: u64,
    /// Number of classes that the sampled requests declared, in total.
    pub classes: u64,
    /// Cost of all loads.
    pub cost: Cost,
    /// Loaded files, highest cost first.
    pub files: Vec<LazyFile>,
    /// Advice to avoid these loads.
    pub advice: Advice,
}

/// A file that requests load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LazyFile {
    /// Path of the file.
    pub file: String,
    /// Class whose autoloading included the file, or empty.
    pub class: String,
    /// Source line that caused the first load: `/srv/a.php:7`.
    pub place: String,
    /// Number of requests that loaded it.
    pub requests: u64,
    /// Number of loads.
    pub loads: u64,
    /// Number of loads for which opcache did not have the file.
    pub compiled: u64,
    /// Whether it was loaded by `include_once` or `require_once`, or as a class: then one load per
    /// process is enough.
    pub is_once: bool,
    /// Cost of these loads, without the files that this file includes.
    pub cost: Cost,
    /// Path of a request that loaded it.
    pub path: String,
}

/// Lines to add to the settings or the application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Advice {
    /// For samovar.toml: `warmup = ["/", "/basket"]`; empty: no request would warm up any class.
    pub setting: String,
    /// PHP code to place above the checkpoint: an alternative to `setting`, also for classes that
    /// no GET request loaded.
    pub classes: String,
    /// PHP code to place above the checkpoint, for files that declare no autoloaded class.
    pub files: Vec<String>,
    /// Files that opcache does not keep.
    pub uncached: Vec<String>,
}

/// Sums over the sampled requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    sum: Lazy,
    at: HashMap<String, usize>,
    /// Files loaded by GET requests to each path.
    paths: BTreeMap<String, BTreeSet<usize>>,
}

impl Looks {
    pub(super) fn add(&mut self, report: &Report) {
        let own = report.own();
        self.sum.requests = self.sum.requests.saturating_add(report.looks);
        self.sum.classes = self.sum.classes.saturating_add(report.classes);
        if report.loads.len() > 1 {
            self.sum.loading += 1;
        }
        let mut seen = BTreeSet::new();
        for (at, load) in report.loads.iter().enumerate().skip(1) {
            // The autoloader's own time is part of the cost of its class.
            self.sum.cost += own[at];
            let class =
                if load.kind == Kind::Class { Some(&*load.name) } else { report.class_of(at) };
            if load.kind != Kind::File {
                continue;
            }
            let index = self.file(&load.name);
            let file = &mut self.sum.files[index];
            if file.loads == 0 {
                file.place = if load.place.is_empty() {
                    String::new()
                } else {
                    format!("{}:{}", load.place, load.line)
                };
                file.path.clone_from(&report.path);
            }
            if let Some(class) = class {
                class.clone_into(&mut file.class);
            }
            file.loads += 1;
            file.compiled += u64::from(load.was_compiled);
            file.is_once |= load.is_once || class.is_some();
            file.cost += own[at];
            if seen.insert(index) {
                file.requests += 1;
            }
        }
        if report.method == "GET" && !seen.is_empty() && is_askable(&report.path) {
            let is_known = self.paths.contains_key(&report.path);
            if is_known || self.paths.len() < PATHS_MAX {
                self.paths.entry(report.path.clone()).or_default().extend(seen);
            }
        }
    }

    fn file(&mut self, name: &str) -> usize {
        if let Some(at) = self.at.get(name) {
            return *at;
        }
        let name = if self.at.len() < FILES_MAX { name } else { OTHERS };
        let (files, file) = (&mut self.sum.files, name.to_owned());
        *self.at.entry(file.clone()).or_insert_with(|| {
            files.push(LazyFile { file, ..LazyFile::default() });
            files.len() - 1
        })
    }

    /// Returns the sums and the advice. `warmup` has the existing warm-up requests.
    pub(super) fn told(&self, warmup: &[String]) -> Lazy {
        let mut told = self.sum.clone();
        told.advice = self.advice(warmup);
        told.files.sort_by_key(|file| -file.cost.wall_ns);
        told
    }

    fn advice(&self, warmup: &[String]) -> Advice {
        let files = &self.sum.files;
        let classes: BTreeSet<usize> =
            (0..files.len()).filter(|at| !files[*at].class.is_empty()).collect();
        let paths = self.cover(&classes, warmup);
        let names =
            classes.iter().take(LINE_MAX).map(|at| format!("\\{}::class", files[*at].class));
        let names: Vec<_> = names.collect();
        let plain = |file: &&LazyFile| file.class.is_empty() && file.is_once && file.file != OTHERS;
        let requires = files.iter().filter(plain).take(LINE_MAX);
        let again = files.iter().filter(|file| file.compiled > 1 && file.file != OTHERS);
        Advice {
            setting: match &*paths {
                [] => String::new(),
                paths => format!(
                    "warmup = [{}]",
                    warmup
                        .iter()
                        .chain(paths)
                        .map(|path| quoted(path))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            },
            classes: match &*names {
                [] => String::new(),
                names => format!(
                    "Samovar\\warmup(fn () => array_map('class_exists', [{}]));",
                    names.join(", ")
                ),
            },
            files: requires.map(|file| format!("require_once {};", php(&file.file))).collect(),
            uncached: again.take(LINE_MAX).map(|file| file.file.clone()).collect(),
        }
    }

    /// Selects few paths that together load most of these files by cost; the path with the highest
    /// gain is first.
    fn cover(&self, classes: &BTreeSet<usize>, warmup: &[String]) -> Vec<String> {
        let files = &self.sum.files;
        #[allow(clippy::cast_precision_loss, reason = "times")]
        let cost = |at: &usize| files[*at].cost.wall_ns.max(1) as f64;
        let all: f64 = classes.iter().map(cost).sum();
        let mut left = classes.clone();
        let mut found = Vec::new();
        while found.len() < ADVISED_MAX {
            let open = self.paths.iter().filter(|(path, _)| !warmup.contains(*path));
            let gain = |of: &BTreeSet<usize>| of.intersection(&left).map(cost).sum::<f64>();
            let gains = open.map(|(path, of)| (path, of, gain(of)));
            // Of paths with the same gain, the shortest wins: it is most likely a general page.
            let best = gains.max_by(|a, b| {
                a.2.total_cmp(&b.2).then_with(|| (b.0.len(), b.0).cmp(&(a.0.len(), a.0)))
            });
            let Some((path, of, _)) = best.filter(|best| best.2 > all * WORTH) else { break };
            left.retain(|at| !of.contains(at));
            found.push(path.clone());
        }
        found
    }
}

/// Whether the setting `warmup` accepts this path.
pub(super) fn is_askable(path: &str) -> bool {
    path.starts_with('/')
        && path.len() <= PATH_BYTES_MAX
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Quotes a path for TOML.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes a text for PHP.
fn php(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::super::report::Load;
    use super::*;

    fn load(kind: Kind, parent: Option<usize>, wall_ns: i64, name: &str) -> Load {
        let all = Cost { wall_ns, cpu_ns: wall_ns, bytes: 0 };
        Load {
            kind,
            parent,
            was_compiled: false,
            is_once: false,
            all,
            compiling: Cost::default(),
            place: "/i.php".into(),
            line: 4,
            name: name.into(),
            at_ns: 0,
        }
    }

    fn request(method: &str, path: &str, classes: &[(&str, i64)]) -> Report {
        let mut loads = vec![load(Kind::Root, None, 1_000_000, "")];
        for (name, wall) in classes {
            loads.push(load(Kind::Class, Some(0), *wall, name));
            loads.push(load(
                Kind::File,
                Some(loads.len() - 1),
                *wall - 10,
                &format!("/{name}.php"),
            ));
        }
        Report { looks: 1, method: method.into(), path: path.into(), loads, ..Report::default() }
    }

    #[test]
    fn advice_selects_few_paths_with_highest_cost() {
        let mut looks = Looks::default();
        looks.add(&request("GET", "/a", &[("A", 1_000), ("B", 1_000)]));
        looks.add(&request("GET", "/b", &[("B", 1_000)]));
        looks.add(&request("GET", "/c", &[("C", 500)]));
        looks.add(&request("GET", "/tiny", &[("D", 20)]));
        looks.add(&request("POST", "/p", &[("E", 9_000)]));
        looks.add(&request("GET", "/quiet", &[]));
        let told = looks.told(&["/old".to_owned()]);
        assert_eq!(told.advice.setting, r#"warmup = ["/old", "/a", "/c"]"#);
        assert!(told.advice.classes.contains("\\E::class"), "{}", told.advice.classes);
        assert_eq!((told.requests, told.loading), (6, 5));
        assert_eq!(told.files[0].class, "E", "the dearest first");
        assert_eq!(told.cost.wall_ns, 1_000 * 3 + 500 + 20 + 9_000);
        let b = told.files.iter().find(|file| file.class == "B").expect("it");
        assert_eq!((b.requests, b.loads, &*b.path, &*b.place), (2, 2, "/a", "/i.php:4"));
        assert_eq!(
            looks.told(&["/a".to_owned(), "/c".to_owned()]).advice.setting.matches("/a").count(),
            1
        );
    }

    #[test]
    fn advice_for_files_without_class_is_require_once() {
        let mut report = request("GET", "/", &[]);
        report.loads.push(Load { is_once: true, ..load(Kind::File, Some(0), 50, "/it's.php") });
        report.loads.push(load(Kind::File, Some(0), 50, "/template.php"));
        report.loads.push(Load { was_compiled: true, ..load(Kind::File, Some(0), 50, "/new.php") });
        let mut looks = Looks::default();
        looks.add(&report);
        looks.add(&report);
        let advice = looks.told(&[]).advice;
        assert_eq!(advice.files, ["require_once '/it\\'s.php';"]);
        assert_eq!((&*advice.setting, &*advice.classes), ("", ""));
        assert_eq!(advice.uncached, ["/new.php"]);
    }

    #[test]
    fn advice_skips_odd_paths_and_lists_are_bounded() {
        let mut looks = Looks::default();
        for path in ["", "x", "/a b", "/é", &format!("/{}", "x".repeat(300))] {
            looks.add(&request("GET", path, &[("A", 100)]));
        }
        assert_eq!(looks.told(&[]).advice.setting, "");
        for n in 0..3_000 {
            looks.add(&request("GET", &format!("/{n}"), &[(&format!("C{n}"), 100)]));
        }
        assert!(looks.paths.len() <= PATHS_MAX && looks.sum.files.len() <= FILES_MAX + 1);
        assert_eq!(looks.told(&[]).advice.setting, "", "no advice for many files");
    }

    #[test]
    fn texts_are_quoted_for_toml_and_php() {
        assert_eq!(quoted(r#"/a"b\c"#), r#""/a\"b\\c""#);
        assert_eq!(php(r"/a'b\c"), r"'/a\'b\\c'");
    }
}
