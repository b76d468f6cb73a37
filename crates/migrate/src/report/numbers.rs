//! Numbers of findings, and the package of a file.

use crate::finding::Severity;
use crate::scan::Checked;

/// Number of errors, warnings and notices.
pub(super) fn counts(checked: &Checked) -> [usize; 3] {
    let mut counts = [0; 3];
    for (_, findings) in &checked.files {
        for finding in findings {
            counts[match finding.severity() {
                Severity::Error => 0,
                Severity::Warning => 1,
                Severity::Notice => 2,
            }] += 1;
        }
    }
    counts
}

/// `name/package` of a path below a folder `vendor`.
pub(super) fn package(path: &std::path::Path) -> Option<String> {
    let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy());
    parts.by_ref().find(|part| part == "vendor")?;
    let (vendor, name) = (parts.next()?, parts.next()?);
    // The path of a file directly below `vendor/NAME` has no package.
    parts.next()?;
    Some(format!("{vendor}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn package_of_vendor_path_is_found() {
        assert_eq!(package(Path::new("a/vendor/b/c/d.php")).as_deref(), Some("b/c"));
        assert_eq!(package(Path::new("a/vendor/autoload.php")), None);
        assert_eq!(package(Path::new("src/a.php")), None);
    }
}
