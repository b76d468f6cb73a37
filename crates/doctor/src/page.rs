//! The table of all checks in `docs/guide/doctor.md`.

use crate::check::Group;
use crate::checks;
use std::fmt::Write as _;

/// Returns a table of the checks of each group, in Markdown.
#[must_use]
pub fn table() -> String {
    let mut page = String::new();
    for group in Group::ALL {
        let name = group.name();
        let title = match group {
            Group::Php => "PHP".to_owned(),
            Group::Opcache => name.to_owned(),
            _ => format!("{}{}", name[..1].to_ascii_uppercase(), &name[1..]),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(page, "\n### {title}\n\n| check | finds | reason |\n|---|---|---|");
        for check in checks::all().iter().filter(|check| check.group == group) {
            let _ = writeln!(page, "| `{}` | {} | {} |", check.code, check.finds, check.why);
        }
    }
    page
}
