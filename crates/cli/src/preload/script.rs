//! A plan → the text of the preload file. Pure.

use super::plan::Plan;
use std::fmt::Write as _;
use std::path::Path;

/// First line of a file that this command may replace.
pub(super) const MARK: &str = "// Written by `samovar preload`.";

/// End of the list of files.
const END: &str = "] as $file) {
    // A file that a later release removes must not prevent the start.
    if (is_file($file)) {
        opcache_compile_file($file);
    }
}
";

/// Appends to a string, which cannot fail.
macro_rules! line {
    ($to:expr, $($text:tt)*) => {{ let _ = writeln!($to, $($text)*); }};
}

/// Returns the text. `folder` is the folder of the preload file: files below it are written
/// relative to it, so that the text is valid in each folder of a release. `remarks` are lines of
/// the head.
pub(super) fn text(plan: &Plan, folder: &Path, remarks: &[String]) -> String {
    let mut out = format!("<?php\n\n{MARK}\n//\n");
    for remark in remarks {
        line!(out, "{}", format!("// {}", one_line(remark)).trim_end());
    }
    out.push_str(
        "//\n// Each of these files only declares classes and functions, so it is compiled and \
         not run.\n// Parents come before children.\n\nforeach ([\n",
    );
    for chosen in &plan.files {
        line!(out, "    {}, // {:.0} %", path(&chosen.file, folder), chosen.share * 100.0);
    }
    out.push_str(END);
    if !plan.left_out.is_empty() {
        out.push_str("\n// Files that requests include, and that are not preloaded:\n//\n");
    }
    for left in &plan.left_out {
        line!(out, "// {}\n//     {}", one_line(&left.file), one_line(&left.reason));
    }
    out
}

/// Returns a PHP expression for the path.
fn path(file: &str, folder: &Path) -> String {
    let relative = Path::new(file).strip_prefix(folder).ok();
    match relative.and_then(Path::to_str).filter(|_| folder != Path::new("/")) {
        Some(relative) => format!("__DIR__ . {}", quoted(&format!("/{relative}"))),
        None => quoted(file),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Text for a comment: no line end and no `?>` ends the comment early.
fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace("?>", "? >")
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Chosen, LeftOut};
    use super::*;

    #[test]
    fn text_is_php_with_relative_paths_and_reasons() {
        let chosen = |file: &str| Chosen { file: file.to_owned(), share: 0.5 };
        let plan = Plan {
            files: vec![chosen("/srv/app/src/A.php"), chosen("/usr/share/php/it's\\.php")],
            left_out: vec![LeftOut { file: "/a\n?>b.php".into(), reason: "line 3 prints".into() }],
        };
        let text = text(&plan, Path::new("/srv/app"), &["gain 4.1 %".into(), String::new()]);
        assert!(
            text.starts_with("<?php\n\n// Written by `samovar preload`.\n//\n// gain 4.1 %\n//\n")
        );
        assert!(text.contains("\n    __DIR__ . '/src/A.php', // 50 %\n"), "{text}");
        assert!(text.contains("\n    '/usr/share/php/it\\'s\\\\.php', // 50 %\n"), "{text}");
        assert!(text.ends_with("\n// /a ? >b.php\n//     line 3 prints\n"), "{text}");
        let outline = samovar_migrate::outline(text.as_bytes());
        assert_eq!(outline.obstacle.map(|o| o.name).as_deref(), Some("foreach"), "it is PHP");
    }
}
