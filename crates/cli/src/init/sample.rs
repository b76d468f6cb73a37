//! Projects of some files, for tests.

use std::fs;
use std::path::PathBuf;

/// A project of these files, in a folder that is removed at the end.
pub(super) struct Sample(pub(super) PathBuf);

impl Sample {
    pub(super) fn new(name: &str, files: &[(&str, &str)]) -> Sample {
        let own = format!("samovar-project-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(own);
        fs::create_dir_all(&folder).expect("a folder");
        for (file, text) in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("our own folder");
        }
        Sample(folder)
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
