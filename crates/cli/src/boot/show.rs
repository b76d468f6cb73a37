//! Formats a boot for people: tables of parts, folders and files, and of the files that requests
//! load.

#![allow(clippy::cast_precision_loss)] // Times and sizes.

use samovar_profile::loads::{BootFunction, Cost, Explained, Lazy};
use samovar_wire::ImageFinding;
use std::fmt::Write as _;

/// Maximum number of rows of a table, unless all are requested.
const ROWS_MAX: usize = 15;
const NS_PER_MS: f64 = 1e6;

fn ms(ns: i64) -> String {
    format!("{:.2} ms", ns as f64 / NS_PER_MS)
}

fn kib(bytes: i64) -> String {
    format!("{:.0} K", bytes as f64 / 1_024.0)
}

fn costs(cost: &Cost) -> String {
    format!("{:>11} {:>11} {:>9}", ms(cost.wall_ns), ms(cost.cpu_ns), kib(cost.bytes))
}

/// Appends to a string, which cannot fail.
macro_rules! line {
    ($to:expr, $($text:tt)*) => {{ let _ = writeln!($to, $($text)*); }};
}

fn more(out: &mut String, all: usize, shown: usize, of: &str) {
    if all > shown {
        line!(out, "… and {} {of} more: --all", all - shown);
    }
}

pub(super) fn text(explained: &Explained, image_ms: f64, all: bool) -> String {
    let rows = if all { usize::MAX } else { ROWS_MAX };
    let boot = &explained.boot;
    let mut out = format!(
        "boot to the checkpoint: {} of time, {} of CPU, {} of PHP memory\n",
        ms(boot.all.wall_ns),
        ms(boot.all.cpu_ns),
        kib(boot.all.bytes)
    );
    if image_ms > 0.0 {
        line!(out, "including the image: {image_ms:.2} ms");
    }
    if let Some(rehearsal) = &boot.rehearsal {
        line!(
            out,
            "prewarm boot before it, to fill the caches: {}, {} files compiled in {}",
            ms(rehearsal.all.wall_ns),
            rehearsal.compiled,
            ms(rehearsal.compiling.wall_ns)
        );
    }
    line!(out, "\n       TIME         CPU    MEMORY   COUNT  PART");
    for part in &boot.parts {
        line!(out, "{} {:>7}  {}", costs(&part.cost), part.count, part.name);
    }
    line!(out, "\n       TIME         CPU    MEMORY   FILES  FOLDER");
    for folder in boot.folders.iter().take(rows) {
        line!(out, "{} {:>7}  {}", costs(&folder.cost), folder.files, folder.folder);
    }
    more(&mut out, boot.folders.len(), rows, "folders");
    line!(out, "\n        OWN         CPU    MEMORY          WITH INCLUDES    COMPILING  FILE");
    for file in boot.files.iter().take(rows) {
        line!(
            out,
            "{} {:>12} {:>9} {:>12}  {}{}",
            costs(&file.own),
            ms(file.total.wall_ns),
            kib(file.total.bytes),
            ms(file.compiling.wall_ns.max(file.cold_ns)),
            file.file,
            match (&*file.class, &*file.place) {
                ("", "") => String::new(),
                ("", place) => format!("  by {place}"),
                (class, _) => format!("  for {class}"),
            }
        );
    }
    more(&mut out, boot.files.len(), rows, "files");
    functions(&mut out, &explained.functions, rows);
    if boot.lost > 0 {
        line!(
            out,
            "{} loads exceeded the table; their cost is part of the file that loaded them",
            boot.lost
        );
    }
    out.push('\n');
    requests(&mut out, &explained.lazy, rows);
    out
}

/// Formats the findings of the boot's preflight; empty if there are none.
pub(super) fn findings(all: &[ImageFinding]) -> String {
    let mut out = String::new();
    if !all.is_empty() {
        line!(out, "\nfindings of the boot:");
    }
    for f in all {
        let place = if f.place.is_empty() { String::new() } else { format!(" ({})", f.place) };
        line!(out, "  {}: {}{place}\n    hint: {}", f.kind, f.what, f.advice);
    }
    out
}

fn functions(out: &mut String, all: &[BootFunction], rows: usize) {
    if all.is_empty() {
        return;
    }
    let ms = |ns: u64| format!("{:.0} ms", ns as f64 / NS_PER_MS);
    line!(
        out,
        "\n        OWN       TOTAL SAMPLES  FUNCTION (sampled in the prewarm boot and the boot)"
    );
    for BootFunction { function, file, line, samples, own_ns, total_ns } in all.iter().take(rows) {
        let place = if file.is_empty() { String::new() } else { format!("  {file}:{line}") };
        line!(out, "{:>11} {:>11} {samples:>7}  {function}{place}", ms(*own_ns), ms(*total_ns));
    }
    more(out, all.len(), rows, "functions");
}

fn requests(out: &mut String, lazy: &Lazy, rows: usize) {
    if lazy.requests == 0 {
        line!(out, "no request after a checkpoint was measured yet");
        return;
    }
    line!(out, "{} requests were measured, {} of them loaded files", lazy.requests, lazy.loading);
    if lazy.files.is_empty() {
        line!(out, "no file is left to warm up");
        return;
    }
    let each = lazy.cost.wall_ns as f64 / NS_PER_MS / lazy.requests as f64;
    line!(
        out,
        "these loads took {each:.3} ms per request, and declared {} classes in total",
        lazy.classes
    );
    line!(out, "\nREQUESTS   LOADS  COMPILED   TIME, EACH  FILE");
    for file in lazy.files.iter().take(rows) {
        let each = file.cost.wall_ns / i64::try_from(file.loads.max(1)).unwrap_or(1);
        line!(
            out,
            "{:>8} {:>7} {:>9} {:>12}  {}{}  {}",
            file.requests,
            file.loads,
            file.compiled,
            ms(each),
            file.file,
            if file.class.is_empty() { String::new() } else { format!("  for {}", file.class) },
            file.path
        );
    }
    more(out, lazy.files.len(), rows, "files");
    let advice = &lazy.advice;
    if !advice.setting.is_empty() {
        line!(
            out,
            "\nadd to samovar.toml, so that the boot loads these classes once:\n  {}",
            advice.setting
        );
    }
    if !advice.classes.is_empty() {
        let or = if advice.setting.is_empty() { "add" } else { "or add" };
        line!(out, "\n{or} before the checkpoint:\n  {}", advice.classes);
    }
    if !advice.files.is_empty() {
        line!(out, "\nadd before the checkpoint:\n  {}", advice.files.join("\n  "));
    }
    if !advice.uncached.is_empty() {
        line!(
            out,
            "\ncompiled repeatedly (check opcache.memory_consumption and \
             opcache.max_accelerated_files, and whether these files are rewritten):\n  {}",
            advice.uncached.join("\n  ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samovar_profile::loads::{Boot, File, LazyFile};

    #[test]
    fn findings_have_place_and_hint() {
        assert_eq!(findings(&[]), "");
        let finding = ImageFinding {
            kind: "request".into(),
            what: "reads of request data: $_GET".into(),
            place: "/srv/index.php:3".into(),
            advice: "read it after the checkpoint".into(),
            ..ImageFinding::default()
        };
        assert_eq!(
            findings(&[finding]),
            "\nfindings of the boot:\n  request: reads of request data: $_GET \
             (/srv/index.php:3)\n    hint: read it after the checkpoint\n"
        );
    }

    #[test]
    fn boot_text_contains_all_known_data() {
        let mut explained = Explained::default();
        assert!(text(&explained, 0.0, false).contains("no request after a checkpoint"));
        let own = Cost { wall_ns: 30_120_000, cpu_ns: 30_000_000, bytes: 2_048 };
        let file = File { file: "/srv/a.php".into(), own, class: "A".into(), ..File::default() };
        explained.boot = Boot { files: vec![file; 20], ..Boot::default() };
        explained.lazy = Lazy { requests: 8, ..Lazy::default() };
        let said = text(&explained, 3.5, false);
        assert!(said.contains("   30.12 ms    30.00 ms       2 K"), "{said}");
        assert!(said.contains("/srv/a.php  for A\n… and 5 files more: --all"), "{said}");
        assert!(said.ends_with("no file is left to warm up\n"), "{said}");
        explained.lazy.files =
            vec![LazyFile { file: "/srv/b.php".into(), loads: 4, ..LazyFile::default() }];
        explained.lazy.advice.setting = "warmup = [\"/b\"]".into();
        assert!(text(&explained, 0.0, true).contains("\n  warmup = [\"/b\"]\n"));
    }
}
