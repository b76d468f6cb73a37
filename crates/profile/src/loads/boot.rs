//! Time and memory of a boot, by part, folder and file. Pure.

use super::report::{Cost, Kind, Report};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of files in the list. The cheapest files beyond it are not listed, but are part
/// of the sums.
const FILES_MAX: usize = 2_000;
/// Maximum number of folders in the list; same rule.
const FOLDERS_MAX: usize = 200;

/// One part of the cost, without the cost that other parts contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Name for people.
    pub name: String,
    /// Number of loads.
    pub count: u64,
    /// Cost of the loads.
    pub cost: Cost,
}

/// A file that the boot included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct File {
    /// Path of the file.
    pub file: String,
    /// Number of times it was included.
    pub loads: u64,
    /// Number of times it was compiled because opcache did not have it.
    pub compiled: u64,
    /// Cost of compiling it, or of loading it from opcache.
    pub compiling: Cost,
    /// Wall time of compiling it during the prewarm boot; 0: it was not compiled then.
    pub cold_ns: i64,
    /// Cost of its own code and the functions that this code calls, without the files that these
    /// include.
    pub own: Cost,
    /// Total cost: compiling, its own code, and included files.
    pub total: Cost,
    /// Class whose autoloading included the file, or empty.
    pub class: String,
    /// Source line that caused the first load: `/srv/a.php:7`.
    pub place: String,
}

/// A folder, or a package below `vendor/`, with the cost of its files without the files they
/// include.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Folder {
    /// Path of the folder.
    pub folder: String,
    /// Number of files.
    pub files: u64,
    /// Cost of compiling and running the files.
    pub cost: Cost,
}

/// The prewarm boot, which fills the caches before the boot that serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rehearsal {
    /// Total cost.
    pub all: Cost,
    /// Number of compiled files.
    pub compiled: u64,
    /// Cost of compiling them.
    pub compiling: Cost,
}

/// Cost of a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    /// Time of the report, in seconds since 1970.
    pub at_s: u64,
    /// Total cost, up to the checkpoint.
    pub all: Cost,
    /// Parts; their sum is `all`.
    pub parts: Vec<Part>,
    /// Files, highest cost first.
    pub files: Vec<File>,
    /// Number of all files.
    pub files_all: u64,
    /// Folders of the files, highest cost first.
    pub folders: Vec<Folder>,
    /// Warm-up requests that the boot made.
    pub warmup: Vec<String>,
    /// Number of loads that did not fit into the process's table. Their cost is part of the load
    /// that caused them.
    pub lost: u64,
    /// The prewarm boot before this boot, if there was one.
    pub rehearsal: Option<Rehearsal>,
}

fn place(place: &str, line: u32) -> String {
    if place.is_empty() { String::new() } else { format!("{place}:{line}") }
}

fn parts(report: &Report, own: &[Cost]) -> Vec<Part> {
    let names = [
        "compiling files",
        "files from opcache",
        "the files' own code",
        "autoloaders",
        "warm-up requests",
        "Samovar\\warmup()",
        "preflight",
        "other",
    ];
    let mut parts = names.map(|name| Part { name: name.to_owned(), ..Part::default() });
    let mut add = |at: usize, cost: Cost| {
        parts[at].count += 1;
        parts[at].cost += cost;
    };
    for (load, own) in report.loads.iter().zip(own) {
        match load.kind {
            Kind::File => {
                add(usize::from(!load.was_compiled), load.compiling);
                add(2, *own - load.compiling);
            }
            Kind::Class => add(3, *own),
            Kind::Request => add(4, *own),
            Kind::Warmup => add(5, *own),
            Kind::Look => add(6, *own),
            Kind::Root => add(7, *own),
        }
    }
    parts.into_iter().filter(|part| part.count > 0).collect()
}

/// Returns the package's folder for a file below `vendor/`, such as `/srv/vendor/symfony/console`;
/// for others the file's folder.
fn folder_of(file: &str) -> &str {
    if let Some(at) = file.find("/vendor/").map(|at| at + "/vendor/".len()) {
        let mut slashes = file[at..].match_indices('/').map(|(slash, _)| at + slash);
        if let (_, Some(second)) = (slashes.next(), slashes.next()) {
            return &file[..second];
        }
    }
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Wall time of compiling each file during the prewarm boot.
type Cold = HashMap<String, i64>;

fn files(report: &Report, own: &[Cost], cold: &Cold) -> Vec<File> {
    let mut files: HashMap<&str, File> = HashMap::new();
    for (at, load) in report.loads.iter().enumerate() {
        if load.kind != Kind::File {
            continue;
        }
        let file = files.entry(&load.name).or_insert_with(|| File {
            file: load.name.clone(),
            cold_ns: cold.get(&load.name).copied().unwrap_or(0),
            class: report.class_of(at).unwrap_or_default().to_owned(),
            place: place(&load.place, load.line),
            ..File::default()
        });
        file.loads += 1;
        file.compiled += u64::from(load.was_compiled);
        file.compiling += load.compiling;
        file.own += own[at] - load.compiling;
        file.total += load.all;
    }
    let mut files: Vec<File> = files.into_values().collect();
    let key = |file: &File| {
        (-(file.own.wall_ns.saturating_add(file.compiling.wall_ns)), file.file.clone())
    };
    files.sort_by_cached_key(key);
    files
}

fn folders(files: &[File]) -> Vec<Folder> {
    let mut folders: BTreeMap<&str, Folder> = BTreeMap::new();
    for file in files {
        let name = folder_of(&file.file);
        let folder = folders.entry(name).or_default();
        folder.files += 1;
        folder.cost += file.own;
        folder.cost += file.compiling;
    }
    let named = |(name, folder): (&str, Folder)| Folder { folder: name.to_owned(), ..folder };
    let mut folders: Vec<Folder> = folders.into_iter().map(named).collect();
    folders.sort_by_key(|folder| -folder.cost.wall_ns);
    folders.truncate(FOLDERS_MAX);
    folders
}

fn compiled(report: &Report) -> impl Iterator<Item = (&str, Cost)> {
    let files = report.loads.iter().filter(|load| load.kind == Kind::File && load.was_compiled);
    files.map(|load| (&*load.name, load.compiling))
}

impl Boot {
    pub(super) fn of(report: &Report, rehearsal: Option<&Report>, at_s: u64) -> Boot {
        let own = report.own();
        let cold: Cold = rehearsal.map_or_else(Cold::new, |rehearsal| {
            compiled(rehearsal).map(|(name, cost)| (name.to_owned(), cost.wall_ns)).collect()
        });
        let mut files = files(report, &own, &cold);
        let folders = folders(&files);
        let files_all = files.len() as u64;
        files.truncate(FILES_MAX);
        let requests = report.loads.iter().filter(|load| load.kind == Kind::Request);
        let rehearsal = rehearsal.map(|rehearsal| {
            let mut it = Rehearsal { all: rehearsal.loads[0].all, ..Rehearsal::default() };
            for (_, cost) in compiled(rehearsal) {
                it.compiled += 1;
                it.compiling += cost;
            }
            it
        });
        Boot {
            at_s,
            all: report.loads[0].all,
            parts: parts(report, &own),
            files,
            files_all,
            folders,
            warmup: requests.map(|load| load.name.clone()).collect(),
            lost: report.lost,
            rehearsal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::{Load, ReportKind};
    use super::*;

    fn load(kind: Kind, parent: Option<usize>, wall: i64, compiling: i64, name: &str) -> Load {
        let cost = |wall_ns| Cost { wall_ns, cpu_ns: wall_ns, bytes: 0 };
        let (all, compiling) = (cost(wall), cost(compiling));
        let (was_compiled, is_once) = (compiling.wall_ns > 10, false);
        let (place, name) = ("/i.php".to_owned(), name.to_owned());
        Load { kind, parent, was_compiled, is_once, all, compiling, place, line: 3, name, at_ns: 0 }
    }

    fn report(of: ReportKind, loads: Vec<Load>) -> Report {
        Report { of, loads, ..Report::default() }
    }

    #[test]
    fn parts_of_boot_sum_to_total_cost() {
        let boot = report(
            ReportKind::Boot,
            vec![
                load(Kind::Root, None, 1_000, 0, ""),
                load(Kind::File, Some(0), 900, 5, "/srv/index.php"),
                load(Kind::Class, Some(1), 500, 0, "A\\B"),
                load(Kind::File, Some(2), 400, 20, "/srv/vendor/a/b/src/B.php"),
                load(Kind::File, Some(3), 100, 4, "/srv/vendor/a/c/C.php"),
                load(Kind::Request, Some(0), 50, 0, "/warm"),
                load(Kind::Look, Some(0), 30, 0, ""),
            ],
        );
        let cold = report(
            ReportKind::Rehearsal,
            vec![
                load(Kind::Root, None, 5_000, 0, ""),
                load(Kind::File, Some(0), 4_000, 700, "/srv/index.php"),
            ],
        );
        let boot = Boot::of(&boot, Some(&cold), 7);
        let sum: i64 = boot.parts.iter().map(|part| part.cost.wall_ns).sum();
        assert_eq!(sum, 1_000);
        let part = |name: &str| {
            boot.parts
                .iter()
                .find(|part| part.name == name)
                .map(|part| (part.count, part.cost.wall_ns))
        };
        assert_eq!(part("compiling files"), Some((1, 20)));
        assert_eq!(part("files from opcache"), Some((2, 9)));
        assert_eq!(part("the files' own code"), Some((3, 395 + 280 + 96)));
        assert_eq!(part("autoloaders"), Some((1, 100)));
        assert_eq!(part("other"), Some((1, 20)));
        let file = |name: &str| boot.files.iter().find(|file| file.file == name).expect("a file");
        assert_eq!(file("/srv/index.php").own.wall_ns, 395);
        assert_eq!(file("/srv/index.php").cold_ns, 700);
        assert_eq!(file("/srv/vendor/a/b/src/B.php").class, "A\\B");
        assert_eq!(file("/srv/vendor/a/c/C.php").class, "", "B.php has asked for it");
        assert_eq!(file("/srv/vendor/a/c/C.php").total.wall_ns, 100);
        let folders: Vec<_> = boot.folders.iter().map(|f| (&*f.folder, f.cost.wall_ns)).collect();
        assert_eq!(folders, [("/srv", 400), ("/srv/vendor/a/b", 300), ("/srv/vendor/a/c", 100)]);
        assert_eq!(boot.warmup, ["/warm"]);
        let rehearsal = boot.rehearsal.expect("one");
        assert_eq!((rehearsal.compiled, rehearsal.all.wall_ns), (1, 5_000));
    }

    #[test]
    fn folder_of_vendor_file_is_its_package() {
        for (file, folder) in [
            ("/srv/vendor/symfony/console/Command/A.php", "/srv/vendor/symfony/console"),
            ("/srv/vendor/autoload.php", "/srv/vendor"),
            ("/srv/vendor/composer/a.php", "/srv/vendor/composer"),
            ("/srv/src/Shop/A.php", "/srv/src/Shop"),
            ("a.php", ""),
        ] {
            assert_eq!(folder_of(file), folder, "{file}");
        }
    }
}
