//! Another program that writes to the application's `SQLite` file.

use samovar_testkit::php;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Writes to the same `SQLite` file. It opens and closes the file each time, as other programs may
/// do.
const BESIDE: &str = r#"
while (fgets(STDIN) !== false) {
    $db = new PDO('sqlite:' . $argv[1]); $db->exec('PRAGMA busy_timeout = 20000');
    $db->exec('PRAGMA synchronous = OFF');
    $db->exec("INSERT INTO cups VALUES ('beside')"); $db = null; echo "written\n";
}"#;

/// The writing process, ended on drop.
pub(crate) struct Beside(Child, BufReader<ChildStdout>);

impl Beside {
    pub(crate) fn start(file: &Path) -> Beside {
        let mut command = Command::new(php::program("php"));
        command.args(["-r", BESIDE, "--"]).arg(file);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("PHP's command line is installed");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        Beside(child, output)
    }

    /// Writes a row, and waits until it is written.
    pub(crate) fn write(&mut self) {
        let mut line = String::new();
        self.0.stdin.as_mut().expect("it was asked for").write_all(b"\n").expect("it reads");
        self.1.read_line(&mut line).expect("it answers");
        assert_eq!(line, "written\n");
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
