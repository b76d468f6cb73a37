//! A simulated machine for one page: a separate root with a home, a `PATH`, and free ports.

use samovar_testkit::copy::copy_of;
use samovar_testkit::family;
use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Ports as written in pages, and folders of the reader's machine. Each is mapped to one of this
/// place.
const PORTS: &[&str] = &["8080", "8000"];
const FOLDERS: &[&str] = &[
    "/srv/",
    "/run/mysqld/",
    "/run/samovar/",
    "/etc/nginx/sites-enabled/",
    "/etc/systemd/system/",
    "/usr/local/bin/",
];

/// A proxy address at which no server listens.
const NOBODY: &str = "http://127.0.0.1:9";

/// The parts of a reader's machine that pages use.
pub(crate) struct GuideMachine {
    root: TempDir,
    ports: Vec<String>,
}

impl GuideMachine {
    /// Creates a place with an empty home, and with `samovar` and `sudo` on the `PATH`.
    pub(crate) fn new() -> GuideMachine {
        let root = TempDir::with_prefix("samovar-guide-").expect("a temporary folder");
        let ports = PORTS.iter().map(|_| samovar_testkit::port().port().to_string()).collect();
        let place = GuideMachine { root, ports };
        for folder in FOLDERS.iter().chain(&["/home/", "/bin/", "/tmp/"]) {
            std::fs::create_dir_all(place.path(folder)).expect("our own folder");
        }
        for folder in ["/bin/", "/usr/local/bin/"] {
            place.link(&format!("{folder}samovar"), &samovar_testkit::binary());
        }
        // As in an interactive shell: no progress meter.
        std::fs::write(place.path("/home/.curlrc"), "silent\nshow-error\n").expect("our own file");
        // The reader may be any user; here no command needs other privileges.
        place.script("/bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
        place
    }

    /// Maps a path of the page to a path in this place.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// Maps the page's ports and folders in `text` to those of this place.
    pub(crate) fn ours(&self, text: &str) -> String {
        let text = PORTS.iter().zip(&self.ports).fold(text.to_owned(), |text, (theirs, own)| {
            text.replace(&format!(":{theirs}"), &format!(":{own}"))
        });
        let root = self.root.path().display();
        FOLDERS.iter().fold(text, |text, folder| text.replace(folder, &format!("{root}{folder}")))
    }

    /// Maps ports and folders of this place back to the page's.
    pub(crate) fn theirs(&self, text: &str) -> String {
        let text = text.replace(&self.root.path().display().to_string(), "");
        PORTS.iter().zip(&self.ports).fold(text, |text, (theirs, own)| {
            text.replace(&format!(":{own}"), &format!(":{theirs}"))
        })
    }

    /// The complete environment of the page's commands.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut paths = vec![self.path("/bin")];
        paths.extend(std::env::split_paths(&path));
        vec![
            ("PATH", std::env::join_paths(paths).expect("paths without a colon")),
            ("HOME", self.path("/home").into()),
            ("TMPDIR", self.path("/tmp").into()),
            ("XDG_RUNTIME_DIR", self.path("/tmp").into()),
            // Prevents requests to the internet: WordPress checks for updates.
            ("http_proxy", NOBODY.into()),
            ("https_proxy", NOBODY.into()),
            ("no_proxy", "127.0.0.1".into()),
            // Default address for pages that do not specify one.
            (family::RUN, family::run().into()),
            ("SAMOVAR_LISTEN", self.ours("127.0.0.1:8080").into()),
            // A reader is not root, but the tests may run as root.
            ("SAMOVAR_ALLOW_ROOT", "true".into()),
        ]
    }

    /// Copies an application to a path of the page.
    pub(crate) fn install(&self, application: &Path, to: &str) {
        let copy = copy_of(application).keep();
        let parent = self.path(to);
        let parent = parent.parent().expect("a path below the root");
        std::fs::create_dir_all(parent).expect("our own folder");
        std::fs::rename(copy, self.path(to)).expect("both are temporary folders");
    }

    /// Writes an executable script.
    pub(crate) fn script(&self, path: &str, text: &str) {
        let file = self.path(path);
        std::fs::write(&file, text).expect("our own file");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(file, mode).expect("our own file");
    }

    /// Creates a symbolic link from a path of the page to a real file.
    pub(crate) fn link(&self, path: &str, to: &Path) {
        symlink(to, self.path(path)).expect("a link in our own folder");
    }
}
