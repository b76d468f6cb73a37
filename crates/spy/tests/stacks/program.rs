//! A test's PHP program, run by the installed PHP's command line.

use samovar_spy::{Stack, read_stack};
use samovar_testkit::{eventually, php};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tempfile::TempDir;

/// PHP settings of a run.
#[derive(Debug)]
pub(crate) struct Mode {
    pub(crate) name: &'static str,
    settings: &'static [&'static str],
}

pub(crate) const MODES: &[Mode] = &[
    Mode { name: "without opcache", settings: &[] },
    Mode {
        name: "with opcache",
        settings: &["zend_extension=opcache", "opcache.enable_cli=1", "opcache.jit=disable"],
    },
    Mode {
        name: "with the function JIT",
        settings: &[
            "zend_extension=opcache",
            "opcache.enable_cli=1",
            "opcache.jit_buffer_size=32M",
            "opcache.jit=1205",
        ],
    },
    Mode {
        name: "with the tracing JIT",
        settings: &[
            "zend_extension=opcache",
            "opcache.enable_cli=1",
            "opcache.jit_buffer_size=32M",
            "opcache.jit=tracing",
        ],
    },
];

/// A running program, which ends with the test.
pub(crate) struct Program {
    child: Child,
    out: BufReader<ChildStdout>,
    // Kept open: the program waits for it.
    _stdin: ChildStdin,
    /// Folder of its script.
    folder: Option<TempDir>,
}

impl Program {
    pub(crate) fn start(text: &str, mode: &Mode, arguments: &[&str]) -> Self {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().join("program.php");
        std::fs::write(&file, text).expect("written");
        let mut command = Command::new(php::program("php"));
        // From 8.5 on, opcache is part of PHP.
        let is_built_in = !matches!(php::version(), "8.1" | "8.2" | "8.3" | "8.4");
        let is_wanted = |setting: &&&str| !is_built_in || **setting != "zend_extension=opcache";
        let settings = mode.settings.iter().filter(is_wanted);
        command.arg("-n").args(settings.flat_map(|setting| ["-d", setting]));
        command.arg(&file).args(arguments);
        let mut program = Self::of(&mut command);
        program.folder = Some(folder);
        program
    }

    /// A program that is not only a script.
    pub(crate) fn of(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("PHP's command line is there");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let stdin = child.stdin.take().expect("piped");
        Self { child, out, _stdin: stdin, folder: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("it writes");
        assert!(!line.is_empty(), "the program has ended");
        line
    }

    /// Its output until it ends.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("it writes");
        rest
    }

    /// The stack, once its innermost call is the one in which programs wait.
    pub(crate) fn when_it_waits(&self) -> Stack {
        eventually("the program waits", || {
            let stack = read_stack(self.pid()).ok()?;
            (stack.frames.first()?.function.name == "fgets").then_some(stack)
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
