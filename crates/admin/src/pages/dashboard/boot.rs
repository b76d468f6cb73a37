//! `/boot`: cost of the application's boot by part, folder and file; files that its requests still
//! load, and the lines that would avoid these loads.

use super::pools::Pools;
use super::view::{Shown, View};
use crate::chart::bar;
use crate::format;
use crate::frame::{moment, nothing, part, tile};
use maud::{Markup, html};
use samovar_profile::loads::{Advice, Boot, BootFunction, Cost, Explained, Lazy};

/// Maximum number of files in a table.
const FILES_MAX: usize = 100;
const FOLDERS_MAX: usize = 30;
/// Maximum number of characters of a path. The end is kept: the beginning is the same for all
/// files.
const PATH_CHARS_MAX: usize = 90;
const TITLE: &str = "Boot";
const NONE: &str = "No boot to show: only an application that calls Samovar\\checkpoint() or \
                    Samovar\\serve() is booted before its requests.";

pub(super) fn show(view: &View) -> Shown {
    let pools = match Pools::of(view, &view.sources.host.status(), TITLE) {
        Ok(pools) => pools,
        Err(unknown) => return unknown,
    };
    let main = html! {
        h1 { (TITLE) (pools.title()) }
        (pools.form("/boot"))
        @match view.sources.host.boot(pools.chosen()) {
            None => (nothing(NONE)),
            Some(Explained { boot, lazy, functions: seen }) => {
                (part("tiles", "", &tiles(&boot)))
                (part("advice", "Suggested warm-up", &advice(&lazy)))
                (part("parts", "Time by part", &parts(&boot)))
                (part("folders", "Folders and packages", &folders(&boot)))
                (part("files", "Files", &files(&boot)))
                @if !seen.is_empty() {
                    (part("functions", "Functions", &functions(&seen)))
                }
                (part("lazy", "Files loaded by requests", &requests(&lazy)))
            }
        }
    };
    Shown::new(TITLE, main)
}

fn time(ns: i64) -> String {
    format::time(ns.max(0).unsigned_abs())
}

fn bytes(of: i64) -> String {
    let sign = if of < 0 { "−" } else { "" };
    format!("{sign}{}", format::bytes(of.unsigned_abs()))
}

fn short(path: &str) -> String {
    let chars = path.chars().count();
    if chars <= PATH_CHARS_MAX {
        return path.to_owned();
    }
    let end: String = path.chars().skip(chars - PATH_CHARS_MAX).collect();
    format!("…{end}")
}

fn tiles(boot: &Boot) -> Markup {
    let cold = boot.rehearsal.map(|rehearsal| {
        let note = format!("{} files compiled", format::count(rehearsal.compiled));
        tile("Prewarm boot time", &time(rehearsal.all.wall_ns), &note)
    });
    html! {
        p { "Latest boot: " (moment(boot.at_s)) ". All figures are up to its checkpoint." }
        dl.tiles {
            (tile("Boot time", &time(boot.all.wall_ns), ""))
            (tile("CPU time", &time(boot.all.cpu_ns), ""))
            (tile("PHP memory", &bytes(boot.all.bytes), "allocated by the boot"))
            (tile("Files", &format::count(boot.files_all), ""))
            @if let Some(cold) = cold { (cold) }
        }
    }
}

fn cells(cost: &Cost) -> Markup {
    html! {
        td.number { (time(cost.wall_ns)) }
        td.number { (time(cost.cpu_ns)) }
        td.number { (bytes(cost.bytes)) }
    }
}

fn parts(boot: &Boot) -> Markup {
    let most = boot.parts.iter().map(|part| part.cost.wall_ns).max().unwrap_or(0).max(1);
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Part" }
                th.number scope="col" { "Count" }
                th.number scope="col" { "Time" }
                th.number scope="col" { "CPU time" }
                th.number scope="col" { "Memory" }
                th.bars scope="col" aria-hidden="true" {}
            } }
            tbody { @for part in &boot.parts {
                tr {
                    th scope="row" { (part.name) }
                    td.number { (format::count(part.count)) }
                    (cells(&part.cost))
                    td.bars { (bar("c-php", part.cost.wall_ns.max(0) as f64, most as f64)) }
                }
            } }
        } }
        p.faint.small {
            "The parts add up to the whole boot: the time of a part excludes the other parts that "
            "it used."
        }
    }
}

fn folders(boot: &Boot) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Folder" }
                th.number scope="col" { "Files" }
                th.number scope="col" { "Time" }
                th.number scope="col" { "CPU time" }
                th.number scope="col" { "Memory" }
            } }
            tbody { @for folder in boot.folders.iter().take(FOLDERS_MAX) {
                tr {
                    th.name scope="row" { (short(&folder.folder)) }
                    td.number { (format::count(folder.files)) }
                    (cells(&folder.cost))
                }
            } }
        } }
        @if boot.folders.len() > FOLDERS_MAX {
            p.faint {
                "… and " (format::count((boot.folders.len() - FOLDERS_MAX) as u64)) " more folders."
            }
        }
    }
}

fn files(boot: &Boot) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "File" }
                th.number scope="col" { "Own code" }
                th.number scope="col" { "CPU time" }
                th.number scope="col" { "Memory" }
                th.number scope="col" { "Total with included files" }
                th.number scope="col" { "Memory" }
                th.number scope="col" { "Compiling" }
                th scope="col" { "Loaded for" }
            } }
            tbody { @for file in boot.files.iter().take(FILES_MAX) {
                tr {
                    th.name scope="row" { (short(&file.file)) }
                    (cells(&file.own))
                    td.number { (time(file.total.wall_ns)) }
                    td.number { (bytes(file.total.bytes)) }
                    td.number { (time(file.compiling.wall_ns.max(file.cold_ns))) }
                    td.name {
                        (short(if file.class.is_empty() { &file.place } else { &file.class }))
                    }
                }
            } }
        } }
        @if boot.files_all > FILES_MAX as u64 {
            p.faint {
                "… and " (format::count(boot.files_all - FILES_MAX as u64))
                " more files: run samovar boot --all"
            }
        }
        p.faint.small {
            "Own code is the code of the file outside functions, including the functions that it "
            "calls. Compiling is the time to compile the file if it was not in opcache, usually in "
            "the prewarm boot."
        }
    }
}

fn functions(seen: &[BootFunction]) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Self" }
                th.number scope="col" { "Total" }
                th.number scope="col" { "Samples" }
                th scope="col" { "Declared in" }
            } }
            tbody { @for one in seen {
                tr {
                    th.name scope="row" { (short(&one.function)) }
                    td.number { (format::time(one.own_ns)) }
                    td.number { (format::time(one.total_ns)) }
                    td.number { (format::count(one.samples)) }
                    td.name { @if !one.file.is_empty() { (short(&one.file)) ":" (one.line) } }
                }
            } }
        } }
        p.faint.small {
            "Sampled from outside, 500 times a second, in the prewarm boot and the boot. Only "
            "functions that take some milliseconds appear here. The call graph of a traced boot "
            "has every call."
        }
    }
}

fn advice(lazy: &Lazy) -> Markup {
    if lazy.requests == 0 {
        return nothing("No request after a checkpoint has been examined yet.");
    }
    let Advice { setting, classes, files, uncached } = &lazy.advice;
    let each = lazy.cost.wall_ns / i64::try_from(lazy.requests).unwrap_or(i64::MAX).max(1);
    html! {
        p {
            (format::count(lazy.requests)) " requests examined; " (format::count(lazy.loading))
            " of them loaded files. Mean cost: " (time(each)) " per request."
        }
        @if lazy.files.is_empty() {
            p.good { "No warm-up needed: requests load no files." }
        }
        @if !setting.is_empty() {
            p { "Add this to samovar.toml, so that the boot loads these classes once:" }
            pre { code { (setting) } }
        }
        @if !classes.is_empty() {
            p { @if setting.is_empty() { "Add" } @else { "Or add" } " this before the checkpoint:" }
            pre { code { (classes) } }
        }
        @if !files.is_empty() {
            p { "Load these files before the checkpoint:" }
            pre { code { (files.join("\n")) } }
        }
        @if !uncached.is_empty() {
            p { "Compiled repeatedly, because opcache is full or the files are rewritten:" }
            pre { code { (uncached.join("\n")) } }
        }
    }
}

fn requests(lazy: &Lazy) -> Markup {
    if lazy.files.is_empty() {
        return nothing("None.");
    }
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "File" }
                th scope="col" { "Loaded for" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Count" }
                th.number scope="col" { "Compiled" }
                th.number scope="col" { "Time per load" }
                th scope="col" { "Example path" }
            } }
            tbody { @for file in lazy.files.iter().take(FILES_MAX) {
                tr {
                    th.name scope="row" { (short(&file.file)) }
                    td.name {
                        (short(if file.class.is_empty() { &file.place } else { &file.class }))
                    }
                    td.number { (format::count(file.requests)) }
                    td.number { (format::count(file.loads)) }
                    td.number { (format::count(file.compiled)) }
                    @let loads = i64::try_from(file.loads).unwrap_or(i64::MAX).max(1);
                    td.number { (time(file.cost.wall_ns / loads)) }
                    td.name { (short(&file.path)) }
                }
            } }
        } }
    }
}
