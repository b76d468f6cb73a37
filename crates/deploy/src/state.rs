//! State of the releases: when each was deployed, and whether it has served.

use crate::disk::sync;
use crate::error::Error;

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Maximum size of the file, bytes.
const FILE_MAX: u64 = 1 << 20;

/// Result of a release's deploy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was unpacked; the deploy has not ended, or was killed.
    Unpacked,
    /// It did not boot, or a command failed.
    Failed,
    /// The server has served it.
    Served,
}

/// A release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Name of its folder.
    pub name: String,
    /// Time of the deploy, seconds since 1970.
    pub deployed_at: i64,
    /// Result of the deploy.
    pub verdict: Verdict,
    /// Name of the release that served before it; empty: unknown.
    #[serde(default)]
    pub before: String,
    /// Whether the link names it.
    #[serde(default)]
    pub is_current: bool,
}

/// All releases, the oldest deploy first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) releases: Vec<Release>,
}

impl State {
    /// Reads the file; without a file, no release is known.
    pub(crate) fn read(path: &Path) -> Result<State, Error> {
        let length = match path.metadata() {
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::default()),
            Err(error) => return Err(Error::file("read", path, &error)),
        };
        let wrong = |why: String| {
            Error::new(format!(
                "cannot read the state of the releases in `{}`: {why}\nhint: move the file away; \
                 the releases stay, but `samovar rollback` then needs a name",
                path.display()
            ))
        };
        if length > FILE_MAX {
            return Err(wrong(format!("it has {length} bytes; the limit is {FILE_MAX}")));
        }
        let text = fs::read(path).map_err(|error| Error::file("read", path, &error))?;
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
    }

    /// Replaces the file as a whole.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Error> {
        let new = path.with_extension("new");
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()
        });
        written.map_err(|error| Error::file("write", &new, &error))?;
        fs::rename(&new, path).map_err(|error| Error::file("rename", &new, &error))?;
        path.parent().map_or(Ok(()), sync)
    }

    /// Sets the release that served before another one.
    pub(crate) fn set_before(&mut self, name: &str, before: &str) {
        if let Some(release) = self.releases.iter_mut().find(|release| release.name == name) {
            before.clone_into(&mut release.before);
        }
    }

    /// Sets the result of a release's deploy.
    pub(crate) fn set(&mut self, name: &str, verdict: Verdict) {
        match self.releases.iter_mut().find(|release| release.name == name) {
            Some(release) => release.verdict = verdict,
            None => self.releases.push(Release {
                name: name.to_owned(),
                deployed_at: jiff::Timestamp::now().as_second(),
                verdict,
                before: String::new(),
                is_current: false,
            }),
        }
    }
}

/// Returns a time as text, in UTC.
pub fn time(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds);
    time.map_or_else(
        |_| seconds.to_string(),
        |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
    )
}
