//! The worker binary of a generation, kept open. A failed upgrade of a package may have replaced
//! the file, and the templates of this server must stay of its own version.

use rustix::fs::{Mode, OFlags, fstat, open, stat};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A binary that a generation starts its templates from.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    /// The file at the time when the generation was created; `None` if it could not be opened. The
    /// start then reports the error.
    file: Option<Arc<OwnedFd>>,
}

impl Program {
    /// Opens the binary.
    #[must_use]
    pub fn open(path: PathBuf) -> Program {
        let file = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok().map(Arc::new);
        Program { path, file }
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path that executes the opened file, in a child process of this one: its own path
    /// unless the file was replaced or removed.
    pub(crate) fn executable(&self) -> PathBuf {
        let Some(file) = &self.file else { return self.path.clone() };
        let is_same = match (fstat(file), stat(&self.path)) {
            (Ok(held), Ok(now)) => (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino),
            (Ok(_), Err(_)) => false,
            (Err(_), _) => true,
        };
        if is_same {
            self.path.clone()
        } else {
            PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    #[test]
    fn replaced_binary_still_executes_the_opened_file() {
        let folder = std::env::temp_dir().join(format!("samovar-program-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("program");
        // A copy of a binary: the interpreter of a script could not open the script.
        std::fs::copy("/bin/echo", &path).expect("our folder");
        let program = Program::open(path.clone());
        assert_eq!(program.executable(), path);
        let new = folder.join("new");
        std::fs::copy("/bin/false", &new).expect("our folder");
        std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).expect("our folder");
        std::fs::rename(&new, &path).expect("our folder");
        let run = || {
            let output = Command::new(program.executable()).arg("old").output().expect("it runs");
            String::from_utf8(output.stdout).expect("text")
        };
        assert_eq!(run(), "old\n");
        std::fs::remove_dir_all(&folder).expect("our folder");
        assert_eq!(run(), "old\n");
    }
}
