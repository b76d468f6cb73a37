//! Baseline: known findings that a run does not report again.
//!
//! A finding is recognized by its rule, its file and the text of its line, so that it keeps its
//! entry when lines before it are added or removed.

use crate::finding::Finding;
use crate::scan::Checked;
use foldhash::HashMap;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::Path;

/// Version of the file's form.
const VERSION: u32 = 1;
/// Maximum size of the file.
const BYTES_MAX: u64 = 256 << 20;

/// Known findings.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Baseline {
    version: u32,
    findings: Vec<Known>,
}

#[derive(Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    file: String,
    rule: String,
    line: String,
    /// Number of such findings on lines with this text.
    count: u32,
}

/// Failure of a baseline file.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It has another form.
    #[error("it is not a baseline of this command: {0}")]
    Form(String),
}

type Key = (String, String, String);

impl Baseline {
    /// Returns the findings of a run as a baseline.
    pub fn of(checked: &Checked) -> Self {
        let mut counts: HashMap<Key, u32> = HashMap::default();
        for (path, findings) in &checked.files {
            for finding in findings {
                *counts.entry(key(path, finding)).or_default() += 1;
            }
        }
        let known = |((file, rule, line), count)| Known { file, rule, line, count };
        let mut findings: Vec<Known> = counts.into_iter().map(known).collect();
        findings.sort();
        Self { version: VERSION, findings }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, BaselineError> {
        let size = std::fs::metadata(path)?.len();
        if size > BYTES_MAX {
            return Err(BaselineError::Form(format!("it has {size} bytes")));
        }
        let text = std::fs::read(path)?;
        let baseline: Self = serde_json::from_slice(&text)
            .map_err(|error| BaselineError::Form(error.to_string()))?;
        if baseline.version != VERSION {
            return Err(BaselineError::Form(format!("its version is {}", baseline.version)));
        }
        Ok(baseline)
    }

    /// Writes a file, complete or not at all.
    pub fn write(&self, path: &Path) -> Result<(), BaselineError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            file.permissions(std::fs::Permissions::from_mode(0o644));
        }
        let mut file = file.tempfile_in(folder.unwrap_or(Path::new(".")))?;
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| BaselineError::Form(error.to_string()))?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the known findings. Returns how many there were.
    pub fn remove_known(&self, checked: &mut Checked) -> usize {
        let mut left: HashMap<Key, u32> = HashMap::default();
        for known in &self.findings {
            let key = (known.file.clone(), known.rule.clone(), known.line.clone());
            *left.entry(key).or_default() += known.count;
        }
        let mut removed = 0;
        for (path, findings) in &mut checked.files {
            findings.retain(|finding| match left.get_mut(&key(path, finding)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    removed += 1;
                    false
                }
                _ => true,
            });
        }
        checked.files.retain(|(_, findings)| !findings.is_empty());
        removed
    }

    /// Number of known findings.
    pub fn len(&self) -> usize {
        self.findings.iter().map(|known| known.count as usize).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }
}

fn key(path: &Path, finding: &Finding) -> Key {
    (path.to_string_lossy().into_owned(), finding.rule.to_owned(), finding.text.clone())
}
