//! Tables of the documentation whose rows explain an error, a status or a reason.

/// The pages: their path and their text.
const PAGES: [(&str, &str); 10] = [
    ("docs/guide/troubleshooting.md", include_str!("../../../../docs/guide/troubleshooting.md")),
    ("docs/guide/limits.md", include_str!("../../../../docs/guide/limits.md")),
    ("docs/guide/checkpoint-model.md", include_str!("../../../../docs/guide/checkpoint-model.md")),
    (
        "docs/guide/status-and-health.md",
        include_str!("../../../../docs/guide/status-and-health.md"),
    ),
    ("docs/guide/doctor.md", include_str!("../../../../docs/guide/doctor.md")),
    ("docs/guide/workers.md", include_str!("../../../../docs/guide/workers.md")),
    ("docs/guide/profiling.md", include_str!("../../../../docs/guide/profiling.md")),
    ("docs/guide/deploy.md", include_str!("../../../../docs/guide/deploy.md")),
    ("docs/start/install.md", include_str!("../../../../docs/start/install.md")),
    ("docs/reference/errors.md", include_str!("../../../../docs/reference/errors.md")),
];

/// Heads of the first columns of these tables.
const HEADS: [&str; 13] = [
    "check",
    "symptom",
    "status",
    "message",
    "reason",
    "`reason`",
    "reason in `kills_reasons`",
    "kind",
    "state",
    "`image.mode`",
    "`about`",
    "exit status",
    "cause in the message",
];

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path of the page.
    pub(super) page: &'static str,
    /// The heading above the table.
    pub(super) heading: &'static str,
    /// The first cell: the code or the message.
    pub(super) subject: &'static str,
    /// Head and text of the other cells.
    pub(super) cells: Vec<(&'static str, &'static str)>,
}

/// Returns the rows of all tables.
pub(super) fn entries() -> Vec<Entry> {
    PAGES.iter().flat_map(|(page, text)| entries_of(page, text)).collect()
}

fn entries_of(page: &'static str, text: &'static str) -> Vec<Entry> {
    let (mut found, mut heading) = (Vec::new(), "");
    let mut heads: Option<Vec<&'static str>> = None;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim();
        }
        let Some(row) = cells(line) else {
            heads = None;
            continue;
        };
        let Some(heads) = &heads else {
            heads = Some(row);
            continue;
        };
        let is_rule = row.iter().all(|cell| cell.bytes().all(|byte| b"-: ".contains(&byte)));
        if is_rule || !heads.first().is_some_and(|head| HEADS.contains(head)) {
            continue;
        }
        if let [subject, rest @ ..] = row.as_slice() {
            let cells = heads.iter().skip(1).copied().zip(rest.iter().copied()).collect();
            found.push(Entry { page, heading, subject, cells });
        }
    }
    found
}

/// Returns the cells of a row. A column separator inside a cell is escaped.
fn cells(line: &'static str) -> Option<Vec<&'static str>> {
    let inside = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = Vec::new();
    let mut from = 0;
    for (at, _) in inside.match_indices('|') {
        if !inside[..at].ends_with('\\') {
            cells.push(inside[from..at].trim());
            from = at + 1;
        }
    }
    cells.push(inside[from..].trim());
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_all_pages_are_read() {
        let all = entries();
        for (page, _) in PAGES {
            assert!(all.iter().any(|entry| entry.page == page), "{page} has no table");
        }
        for head in HEADS {
            let row = format!("\n| {head} |");
            assert!(
                PAGES.iter().any(|(_, text)| text.contains(&row)),
                "no table begins with {head}"
            );
        }
        assert!(all.iter().all(|entry| !entry.cells.is_empty()));
    }

    #[test]
    fn separator_in_cell_is_escaped() {
        assert_eq!(cells("| a \\| b | c |"), Some(vec!["a \\| b", "c"]));
        assert_eq!(cells("text"), None);
    }
}
