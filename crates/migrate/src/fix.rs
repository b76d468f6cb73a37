//! Writes the edits of findings into files.

use crate::finding::{Edit, Finding};
use crate::parser;
use crate::scan;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// A file with its edits.
#[derive(Debug)]
pub struct Fixed {
    /// Text before.
    pub before: Vec<u8>,
    /// Text with all edits.
    pub after: Vec<u8>,
    /// Number of findings that the edits remove.
    pub count: usize,
}

/// Returns the file with the edits of its findings; `None`: none has any, or the file would have
/// more parse errors than before.
pub fn fix(path: &Path, findings: &[Finding]) -> io::Result<Option<Fixed>> {
    if findings.iter().all(|finding| finding.edits.is_empty()) {
        return Ok(None);
    }
    let before = scan::read(path)?;
    let (after, count) = apply(&before, findings);
    if count == 0 || parser::error_count(&after) > parser::error_count(&before) {
        return Ok(None);
    }
    Ok(Some(Fixed { before, after, count }))
}

impl Fixed {
    /// Replaces the file. It has the same mode, and is never there in part.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        // A link stays a link.
        let path = fs::canonicalize(path)?;
        let metadata = fs::metadata(&path)?;
        if fs::read(&path)? != self.before {
            return Err(io::Error::other("another process has changed it"));
        }
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut file = tempfile::Builder::new().prefix(".samovar-fix").tempfile_in(folder)?;
        file.write_all(&self.after)?;
        file.as_file().set_permissions(metadata.permissions())?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Applies the edits of each finding, or none of them if they meet those of another one.
fn apply(text: &[u8], findings: &[Finding]) -> (Vec<u8>, usize) {
    let mut taken: Vec<&Edit> = Vec::new();
    let mut count = 0;
    for finding in findings.iter().filter(|finding| !finding.edits.is_empty()) {
        let is_free = finding.edits.iter().all(|edit| {
            let is_inside = edit.start <= edit.end && edit.end as usize <= text.len();
            is_inside
                && taken.iter().all(|other| edit.end <= other.start || other.end <= edit.start)
        });
        if is_free {
            taken.extend(&finding.edits);
            count += 1;
        }
    }
    // Insertions at one place stay in the order of their findings.
    taken.sort_by_key(|edit| (edit.start, edit.end));
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    for edit in taken {
        result.extend_from_slice(&text[at..edit.start as usize]);
        result.extend_from_slice(&edit.text);
        at = edit.end as usize;
    }
    result.extend_from_slice(&text[at..]);
    (result, count)
}
