//! Retired names of files, types and functions: the glossary of docs/internals/decisions/language.md.

use crate::extract::kind;
use crate::{Area, Finding};

/// File names, and the names to use.
const FILES: &[(&str, &str)] = &[
    ("front/src/client/ends.rs", "peer_info.rs"),
    ("mates.rs", "thread_balancer.rs"),
    ("screen.rs", "head_filter.rs"),
    ("watched.rs", "io_observer.rs"),
    ("told.rs", "fastcgi_params.rs"),
    ("exchange/kept.rs", "spill_buffer.rs"),
    ("later.rs", "deferred_usage.rs"),
    ("gathering.rs", "wake_batching.rs"),
    ("upstream/course.rs", "timing.rs"),
    ("upstream/places.rs", "endpoints.rs"),
    ("remembered.rs", "lru.rs"),
    ("hands.rs", "disk_jobs.rs"),
    ("lots.rs", "random_sampling.rs"),
    ("mishap.rs", "panic_guard.rs"),
    ("serve/ways.rs", "exporters.rs"),
    ("reload/together.rs", "transaction.rs"),
    ("well.rs", "health.rs"),
    ("unseen.c", "skippable_destruction.c"),
    ("stain.c", "taint.c"),
    ("outside/kept.c", "inherited_fds.c"),
    ("outside/talk.c", "connection_protocols.c"),
    ("insight/ledger.c", "request_accounting.c"),
    ("inquest.rs", "overrun_diagnosis.rs"),
    ("turns.rs", "run_permits.rs"),
    ("bell.rs", "notifier.rs"),
    ("crew.rs", "front_group.rs"),
    ("seats.rs", "process_registry.rs"),
    ("sources/lay.rs", "merge.rs"),
    ("schema/sheet.rs", "macros.rs"),
    ("schema/finish.rs", "resolve.rs"),
    ("shed.rs", "rejected.rs"),
];

/// Type names without a noun.
const TYPES: &[&str] = &["Told", "Kept", "Whom", "Mood", "Of", "Me", "Shed", "Trouble", "Place"];

/// The findings of a file: its path and the types that it declares.
pub fn judge(file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |line: usize, message: String| {
        found.push(Finding { file: file.to_owned(), line, area: Area::Names, message });
    };
    for (retired, name) in FILES {
        let path = format!("/{file}");
        if path.ends_with(&format!("/{retired}")) {
            add(1, format!("file `{retired}`: name it `{name}`"));
        }
    }
    if kind(file) == "rs" {
        for (number, line) in text.lines().enumerate() {
            let declared = declared(line);
            if let Some(name) = declared.filter(|name| TYPES.contains(name)) {
                add(number + 1, format!("type `{name}`: name it with the domain's noun"));
            }
        }
    }
    found
}

fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    if !["struct", "enum", "trait", "type", "union"].contains(&keyword) {
        return None;
    }
    let name = words.next()?;
    Some(name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retired_files_and_types_are_found() {
        assert_eq!(judge("crates/ring/src/bell.rs", "").len(), 1);
        assert_eq!(judge("crates/ring/src/doorbell.rs", "").len(), 0);
        assert_eq!(judge("a.rs", "pub(crate) struct Kept<'a> {\nstruct KeptBody;\n").len(), 1);
    }
}
