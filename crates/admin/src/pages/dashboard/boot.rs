//! `/boot`: what the booted application's start went to, by part, folder and file; and what its requests still load, with the lines
//! that would spare them that.

use super::pools::Pools;
use super::{Shown, View};
use crate::chart::{bar, without_controls};
use crate::frame::{moment, nothing, part, tile};
use crate::human;
use maud::{Markup, html};
use samovar_profile::loads::{Advice, Boot, BootFunction, Cost, Explained, Lazy};

/// Files of a table.
const FILES_MAX: usize = 100;
const FOLDERS_MAX: usize = 30;
/// Of a path the end is kept: its beginning is that of all others.
const PATH_CHARS_MAX: usize = 90;
const TITLE: &str = "Boot";
const NONE: &str = "No application has been booted ahead of its requests: that is done for one that calls Samovar\\checkpoint() or Samovar\\serve().";

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
                (part("advice", "What to warm up", &advice(&lazy)))
                (part("parts", "Where the time went", &parts(&boot)))
                (part("folders", "Folders and packages", &folders(&boot)))
                (part("files", "Files", &files(&boot)))
                @if !seen.is_empty() {
                    (part("functions", "Functions", &functions(&seen)))
                }
                (part("lazy", "What requests still load", &requests(&lazy)))
            }
        }
    };
    Shown::new(TITLE, main)
}

fn time(ns: i64) -> String {
    human::time(ns.max(0).unsigned_abs())
}

fn bytes(of: i64) -> String {
    let sign = if of < 0 { "−" } else { "" };
    format!("{sign}{}", human::bytes(of.unsigned_abs()))
}

fn short(path: &str) -> String {
    let path = &*without_controls(path);
    let chars = path.chars().count();
    if chars <= PATH_CHARS_MAX {
        return path.to_owned();
    }
    let end: String = path.chars().skip(chars - PATH_CHARS_MAX).collect();
    format!("…{end}")
}

fn tiles(boot: &Boot) -> Markup {
    let cold = boot.rehearsal.map(|rehearsal| {
        let note = format!("{} files compiled", human::count(rehearsal.compiled));
        tile("Rehearsed before in", &time(rehearsal.all.wall_ns), &note)
    });
    html! {
        p { "The latest boot, " (moment(boot.at_s)) ", down to its checkpoint." }
        dl.tiles {
            (tile("Booted in", &time(boot.all.wall_ns), ""))
            (tile("On CPU", &time(boot.all.cpu_ns), ""))
            (tile("PHP's memory", &bytes(boot.all.bytes), "more than before"))
            (tile("Files", &human::count(boot.files_all), ""))
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
                th scope="col" { "What" }
                th.number scope="col" { "Times" }
                th.number scope="col" { "Time" }
                th.number scope="col" { "On CPU" }
                th.number scope="col" { "Memory" }
                th.bars scope="col" aria-hidden="true" {}
            } }
            tbody { @for part in &boot.parts {
                tr {
                    th scope="row" { (part.name) }
                    td.number { (human::count(part.count)) }
                    (cells(&part.cost))
                    td.bars { (bar("c-php", part.cost.wall_ns.max(0) as f64, most as f64)) }
                }
            } }
        } }
        p.faint.small { "Together they are all of it: each is without what it has asked for of the others." }
    }
}

fn folders(boot: &Boot) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Folder" }
                th.number scope="col" { "Files" }
                th.number scope="col" { "Time" }
                th.number scope="col" { "On CPU" }
                th.number scope="col" { "Memory" }
            } }
            tbody { @for folder in boot.folders.iter().take(FOLDERS_MAX) {
                tr {
                    th.name scope="row" { (short(&folder.folder)) }
                    td.number { (human::count(folder.files)) }
                    (cells(&folder.cost))
                }
            } }
        } }
        @if boot.folders.len() > FOLDERS_MAX {
            p.faint { "… and " (human::count((boot.folders.len() - FOLDERS_MAX) as u64)) " folders more." }
        }
    }
}

fn files(boot: &Boot) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "File" }
                th.number scope="col" { "Its own code" }
                th.number scope="col" { "On CPU" }
                th.number scope="col" { "Memory" }
                th.number scope="col" { "With what it includes" }
                th.number scope="col" { "Memory" }
                th.number scope="col" { "Compiling" }
                th scope="col" { "For" }
            } }
            tbody { @for file in boot.files.iter().take(FILES_MAX) {
                tr {
                    th.name scope="row" { (short(&file.file)) }
                    (cells(&file.own))
                    td.number { (time(file.total.wall_ns)) }
                    td.number { (bytes(file.total.bytes)) }
                    td.number { (time(file.compiling.wall_ns.max(file.cold_ns))) }
                    td.name { (short(if file.class.is_empty() { &file.place } else { &file.class })) }
                }
            } }
        } }
        @if boot.files_all > FILES_MAX as u64 {
            p.faint { "… and " (human::count(boot.files_all - FILES_MAX as u64)) " files more: samovar boot --all" }
        }
        p.faint.small {
            "Its own code is what stands in the file outside functions, with the functions that it calls. Compiling is what it took
            where opcache did not have it: in the rehearsal, most often."
        }
    }
}

fn functions(seen: &[BootFunction]) -> Markup {
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "Function" }
                th.number scope="col" { "Own" }
                th.number scope="col" { "With callees" }
                th.number scope="col" { "Seen" }
                th scope="col" { "Declared in" }
            } }
            tbody { @for one in seen {
                tr {
                    th.name scope="row" { (short(&one.function)) }
                    td.number { (human::time(one.own_ns)) }
                    td.number { (human::time(one.total_ns)) }
                    td.number { (human::count(one.samples)) }
                    td.name { @if !one.file.is_empty() { (short(&one.file)) ":" (one.line) } }
                }
            } }
        } }
        p.faint.small {
            "Of the rehearsal and the boot, by looks from outside, 500 a second: functions that take some milliseconds are here. Each call is
            in the call graph of a traced boot."
        }
    }
}

fn advice(lazy: &Lazy) -> Markup {
    if lazy.requests == 0 {
        return nothing("No request below a checkpoint was looked at yet.");
    }
    let Advice { setting, classes, files, uncached } = &lazy.advice;
    let each = lazy.cost.wall_ns / i64::try_from(lazy.requests).unwrap_or(i64::MAX).max(1);
    html! {
        p {
            (human::count(lazy.requests)) " requests were looked at; " (human::count(lazy.loading))
            " of them have loaded something, which took " (time(each)) " per request."
        }
        @if lazy.files.is_empty() {
            p.good { "Nothing is left to be warmed up." }
        }
        @if !setting.is_empty() {
            p { "In samovar.toml, so that the boot loads these classes once:" }
            pre { code { (setting) } }
        }
        @if !classes.is_empty() {
            p { @if setting.is_empty() { "Above" } @else { "Or above" } " the checkpoint:" }
            pre { code { (classes) } }
        }
        @if !files.is_empty() {
            p { "Above the checkpoint:" }
            pre { code { (files.join("\n")) } }
        }
        @if !uncached.is_empty() {
            p { "Compiled again and again; opcache has no room for them, or they are written anew:" }
            pre { code { (uncached.join("\n")) } }
        }
    }
}

fn requests(lazy: &Lazy) -> Markup {
    if lazy.files.is_empty() {
        return nothing("Nothing.");
    }
    html! {
        div.scroll tabindex="0" { table {
            thead { tr {
                th scope="col" { "File" }
                th scope="col" { "For" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Times" }
                th.number scope="col" { "Compiled" }
                th.number scope="col" { "Time, each" }
                th scope="col" { "As by" }
            } }
            tbody { @for file in lazy.files.iter().take(FILES_MAX) {
                tr {
                    th.name scope="row" { (short(&file.file)) }
                    td.name { (short(if file.class.is_empty() { &file.place } else { &file.class })) }
                    td.number { (human::count(file.requests)) }
                    td.number { (human::count(file.loads)) }
                    td.number { (human::count(file.compiled)) }
                    td.number { (time(file.cost.wall_ns / i64::try_from(file.loads).unwrap_or(i64::MAX).max(1))) }
                    td.name { (short(&file.path)) }
                }
            } }
        } }
    }
}
