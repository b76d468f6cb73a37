//! The test framework's command line: the words that the user typed, and the words for one unit.

use anyhow::{Result, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Options of `PHPUnit` whose value is the next word.
const WITH_VALUE: [&str; 38] = [
    "--atleast-version",
    "--bootstrap",
    "--cache-directory",
    "--cache-result-file",
    "--check-version",
    "--columns",
    "--configuration",
    "--covers",
    "--coverage-cache",
    "--coverage-clover",
    "--coverage-cobertura",
    "--coverage-crap4j",
    "--coverage-filter",
    "--coverage-html",
    "--coverage-php",
    "--coverage-xml",
    "--default-time-limit",
    "--exclude-group",
    "--exclude-testsuite",
    "--extension",
    "--filter",
    "--group",
    "--include-path",
    "--list-tests-xml",
    "--loader",
    "--log-junit",
    "--log-teamcity",
    "--order-by",
    "--printer",
    "--random-order-seed",
    "--repeat",
    "--requires-php-extension",
    "--test-suffix",
    "--testsuite",
    "--uses",
    "--whitelist",
    "-c",
    "-d",
];
/// Options that run no tests, or that would write one file from several processes.
const REFUSED: [(&str, &str); 16] = [
    ("--list-tests", "run phpunit for it"),
    ("--list-tests-xml", "run phpunit for it"),
    ("--list-groups", "run phpunit for it"),
    ("--list-suites", "run phpunit for it"),
    ("--version", "run phpunit for it"),
    ("--help", "run phpunit for it"),
    ("-h", "run phpunit for it"),
    ("--generate-configuration", "run phpunit for it"),
    ("--migrate-configuration", "run phpunit for it"),
    ("--log-teamcity", "use --log-junit"),
    ("--testdox-html", "use --log-junit"),
    ("--testdox-text", "use --log-junit"),
    ("--testdox-xml", "use --log-junit"),
    ("--coverage-text", "use --coverage-clover or --coverage-html"),
    ("--coverage-crap4j", "use --coverage-clover or --coverage-html"),
    ("--coverage-xml", "use --coverage-clover or --coverage-html"),
];
/// Options that select tests for the list, and are useless for one file.
const SELECTING: [&str; 2] = ["--testsuite", "--exclude-testsuite"];
/// Configuration files that `PHPUnit` looks for. Version 10 added the second one.
const CONFIGURATIONS: [&str; 3] = ["phpunit.xml", "phpunit.dist.xml", "phpunit.xml.dist"];
/// Autoloader of Debian's package, on PHP's include path.
const DEBIAN: &str = "PHPUnit/Autoload.php";
/// Maximum number of words.
const WORDS_MAX: usize = 1000;

/// Reports of the coverage of all units together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Clover's XML.
    pub clover: Option<PathBuf>,
    /// Cobertura's XML.
    pub cobertura: Option<PathBuf>,
    /// The objects of PHP that `phpcov merge` reads.
    pub php: Option<PathBuf>,
    /// Folder with pages.
    pub html: Option<PathBuf>,
}

impl Coverage {
    fn report(&mut self, option: &str) -> Option<&mut Option<PathBuf>> {
        match option {
            "--coverage-clover" => Some(&mut self.clover),
            "--coverage-cobertura" => Some(&mut self.cobertura),
            "--coverage-php" => Some(&mut self.php),
            "--coverage-html" => Some(&mut self.html),
            _ => None,
        }
    }

    /// Whether a report is wanted.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        *self != Coverage::default()
    }
}

/// The framework with the user's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Framework {
    /// Its script.
    pub script: PathBuf,
    /// Its configuration.
    pub configuration: Option<PathBuf>,
    /// The bootstrap of the command line or of the configuration.
    pub bootstrap: Option<PathBuf>,
    /// The user's filter, if there is one.
    pub filter: Option<String>,
    /// The file for results, typed as an option of the framework.
    pub log_junit: Option<PathBuf>,
    /// Reports of coverage, typed as options of the framework.
    pub coverage: Coverage,
    /// Options for each unit.
    pub options: Vec<String>,
    /// Options and paths that only select tests.
    pub selection: Vec<String>,
    /// Whether it stops at the first failure.
    pub stops_early: bool,
}

/// Arguments for the framework. Its options can be extended until the command is complete: a later
/// option replaces an earlier one, and paths are the last words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The configuration file; `None`: the framework reads none.
    pub(crate) configuration: Option<PathBuf>,
    pub(crate) options: Vec<String>,
    pub(crate) paths: Vec<String>,
}

impl Arguments {
    /// Adds an option with its value.
    pub(crate) fn option(&mut self, name: &str, value: &str) {
        self.options.extend([name.to_owned(), value.to_owned()]);
    }

    /// Returns the words of the command.
    pub(crate) fn words(self) -> Vec<String> {
        let configuration = match self.configuration {
            Some(file) => vec!["--configuration".to_owned(), file.to_string_lossy().into_owned()],
            None => vec!["--no-configuration".to_owned()],
        };
        [configuration, self.options, self.paths].concat()
    }
}

/// Returns the command without which none was typed.
#[must_use]
pub fn default_command() -> Vec<String> {
    vec!["phpunit".to_owned()]
}

impl Framework {
    /// Reads a command such as `phpunit --filter Cart tests`, typed in `folder`. `path` is the
    /// variable with the folders of programs.
    ///
    /// # Errors
    ///
    /// The program does not exist, or an option cannot be used.
    pub fn new(words: &[String], folder: &Path, path: &std::ffi::OsStr) -> Result<Framework> {
        if words.len() > WORDS_MAX {
            bail!("the command has {} words; the maximum is {WORDS_MAX}", words.len());
        }
        let (program, words) = match words.split_first() {
            Some((program, words)) if !program.starts_with('-') => (program.as_str(), words),
            _ => ("phpunit", words),
        };
        let mut framework = Framework { script: find(program, folder, path)?, ..Self::default() };
        let mut has_configuration = true;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, mut value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            if let Some((_, hint)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
                bail!("`{name}` cannot be used with samovar test\nhint: {hint}");
            }
            let is_separate = value.is_none() && WITH_VALUE.contains(&name);
            if is_separate {
                let Some(next) = words.next() else { bail!("`{name}` takes a value") };
                value = Some(next.clone());
            }
            let typed = || match &value {
                Some(value) if is_separate => vec![name.to_owned(), value.clone()],
                _ => vec![word.clone()],
            };
            let file = || folder.join(value.as_deref().unwrap_or_default());
            if let Some(report) = framework.coverage.report(name) {
                *report = Some(file());
                continue;
            }
            match name {
                "-c" | "--configuration" => framework.configuration = Some(configuration(&file())?),
                "--no-configuration" => has_configuration = false,
                "--bootstrap" => {
                    framework.bootstrap = Some(file());
                    framework.options.extend(typed());
                }
                "--log-junit" => framework.log_junit = Some(file()),
                "--filter" => framework.filter.clone_from(&value),
                "--stop-on-failure" | "--stop-on-error" | "--stop-on-defect" => {
                    framework.stops_early = true;
                    framework.options.extend(typed());
                }
                // Each unit would replace the file of the others.
                "--cache-result" | "--cache-result-file" => {}
                name if SELECTING.contains(&name) => framework.selection.extend(typed()),
                name if !name.starts_with('-') => framework.selection.extend(typed()),
                _ => framework.options.extend(typed()),
            }
        }
        if has_configuration && framework.configuration.is_none() {
            let files = CONFIGURATIONS.iter().map(|name| folder.join(name));
            framework.configuration = files.into_iter().find(|file| file.is_file());
        }
        if !has_configuration {
            framework.configuration = None;
        }
        if let (None, Some(file)) = (&framework.bootstrap, &framework.configuration) {
            framework.bootstrap = bootstrap(file);
        }
        Ok(framework)
    }

    /// Returns the arguments that make the framework write the list of its tests.
    #[must_use]
    pub(crate) fn list(&self, to: &Path) -> Arguments {
        let mut arguments = self.arguments();
        // PHPUnit 9 refuses a filter together with a list. Units get the filter.
        arguments.option("--list-tests-xml", &to.to_string_lossy());
        arguments.paths.clone_from(&self.selection);
        arguments
    }

    /// Returns the arguments that run one unit, without its configuration, filter and file.
    #[must_use]
    pub(crate) fn unit(&self) -> Arguments {
        let mut arguments = self.arguments();
        arguments.options.push("--do-not-cache-result".to_owned());
        // Each unit would replace the files that the configuration names.
        arguments.options.push("--no-logging".to_owned());
        if !self.coverage.is_wanted() {
            arguments.options.push("--no-coverage".to_owned());
        }
        arguments
    }

    fn arguments(&self) -> Arguments {
        Arguments {
            configuration: self.configuration.clone(),
            options: self.options.clone(),
            paths: Vec::new(),
        }
    }

    /// Returns the autoloaders of the framework that exist: files that may be loaded before it.
    #[must_use]
    pub(crate) fn autoloaders(&self, folder: &Path) -> Vec<PathBuf> {
        let real = self.script.canonicalize().unwrap_or_else(|_| self.script.clone());
        let text = std::fs::read(&real).unwrap_or_default();
        let is_debian = text.windows(DEBIAN.len()).any(|part| part == DEBIAN.as_bytes());
        let debian = is_debian.then(|| Path::new("/usr/share/php").join(DEBIAN));
        let at = |file: &Path, path: &str| file.parent().map(|folder| folder.join(path));
        let composer = [
            at(&self.script, "../autoload.php"),
            at(&real, "../../autoload.php"),
            at(&real, "vendor/autoload.php"),
            Some(folder.join("vendor/autoload.php")),
        ];
        let composer = composer.into_iter().flatten().find(|file| file.is_file());
        let files = debian.into_iter().chain(composer).filter(|file| file.is_file());
        files.map(|file| file.canonicalize().unwrap_or(file)).collect()
    }
}

fn find(program: &str, folder: &Path, path: &std::ffi::OsStr) -> Result<PathBuf> {
    let candidates: Vec<PathBuf> = if program.contains('/') {
        vec![folder.join(program)]
    } else {
        let own = [folder.join("vendor/bin").join(program), folder.join(program)];
        let others = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        own.into_iter().chain(others.map(|folder| folder.join(program))).collect()
    };
    let Some(file) = candidates.into_iter().find(|file| file.is_file()) else {
        if folder.join(program).is_dir() {
            bail!(
                "`{program}` is a folder, and not the command of a test framework\nhint: put the \
                 command before it: samovar test -- phpunit {program}"
            );
        }
        bail!(
            "cannot find `{program}`\nhint: install it with `composer require --dev \
             phpunit/phpunit`, or name its script: samovar test -- path/to/phpunit"
        );
    };
    if file.extension().is_some_and(|name| name == "php") && is_test(&file) {
        bail!(
            "`{program}` is a file with tests, and not the command of a test framework\nhint: put \
             the command before it: samovar test -- phpunit {program}"
        );
    }
    if file.file_name().is_some_and(|name| name == "simple-phpunit") {
        bail!(
            "`{}` starts another PHP for the tests\nhint: name the script of phpunit that it has \
             installed, such as vendor/bin/.phpunit/phpunit/phpunit",
            file.display()
        );
    }
    Ok(file)
}

/// Whether the name of a file is that of a test: `CartTest.php`.
fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("Test"))
}

/// Returns the configuration file for the value of `--configuration`: a file, or a folder with one.
fn configuration(path: &Path) -> Result<PathBuf> {
    let files = CONFIGURATIONS.iter().map(|name| path.join(name));
    let found = std::iter::once(path.to_owned()).chain(files).find(|file| file.is_file());
    let Some(found) = found else {
        bail!("cannot read the configuration `{}`\nhint: name a phpunit.xml", path.display());
    };
    Ok(found)
}

/// Returns the bootstrap that a configuration names in its first tag.
fn bootstrap(configuration: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(configuration).ok()?;
    let tag = text.get(text.find("<phpunit")?..)?;
    let tag = tag.get(..tag.find('>')?)?;
    let value = tag.split_once("bootstrap=")?.1;
    let quote = value.chars().next()?;
    let value = value.get(1..)?.split_once(quote)?.0.trim();
    let folder = configuration.parent()?;
    Some(folder.join(value)).filter(|file| !value.is_empty() && file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn project() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("vendor/bin")).expect("our folder");
        for (file, text) in [
            ("vendor/bin/phpunit", ""),
            ("vendor/bin/simple-phpunit", ""),
            ("boot.php", ""),
            ("CartTest.php", ""),
            (
                "phpunit.xml.dist",
                "<?xml version=\"1.0\"?>\n<phpunit colors='1' bootstrap=\"boot.php\">",
            ),
        ] {
            std::fs::write(folder.path().join(file), text).expect("our folder");
        }
        folder
    }

    fn read(folder: &Path, command: &str) -> Result<Framework, String> {
        let words: Vec<_> = command.split_whitespace().map(str::to_owned).collect();
        Framework::new(&words, folder, OsStr::new("")).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_kept_for_units_and_paths_for_the_list() {
        let folder = project();
        let command =
            "phpunit --group fast --testsuite=unit --filter Cart --log-junit out.xml tests";
        let framework = read(folder.path(), command).expect("a good command");
        assert_eq!(framework.script, folder.path().join("vendor/bin/phpunit"));
        assert_eq!(framework.bootstrap, Some(folder.path().join("boot.php")));
        assert_eq!(framework.options, ["--group", "fast"]);
        assert_eq!(framework.selection, ["--testsuite=unit", "tests"]);
        assert_eq!(framework.filter.as_deref(), Some("Cart"));
        assert_eq!(framework.log_junit, Some(folder.path().join("out.xml")));
        let configuration = folder.path().join("phpunit.xml.dist");
        let configuration = configuration.to_str().expect("UTF-8");
        assert_eq!(
            framework.list(Path::new("/l")).words(),
            [
                "--configuration",
                configuration,
                "--group",
                "fast",
                "--list-tests-xml",
                "/l",
                "--testsuite=unit",
                "tests"
            ]
        );
        let mut unit = framework.unit();
        unit.paths.push("/t/ATest.php".to_owned());
        unit.option("--log-junit", "/l");
        let options = ["--group", "fast", "--do-not-cache-result", "--no-logging", "--no-coverage"];
        assert_eq!(unit.clone().words()[2..7], options);
        assert_eq!(unit.clone().words()[7..], ["--log-junit", "/l", "/t/ATest.php"]);
        unit.configuration = None;
        assert_eq!(unit.words()[..2], ["--no-configuration", "--group"]);
    }

    #[test]
    fn default_program_is_phpunit_and_configuration_is_optional() {
        let folder = project();
        let framework = read(folder.path(), "--no-configuration --stop-on-failure").expect("good");
        assert_eq!(framework.configuration, None);
        assert_eq!(framework.bootstrap, None);
        assert!(framework.stops_early);
        assert_eq!(framework.unit().words()[0], "--no-configuration");
    }

    #[test]
    fn coverage_is_reported_once_for_all_units() {
        let folder = project();
        let command = "--coverage-clover clover.xml --coverage-html=html --coverage-filter src";
        let framework = read(folder.path(), command).expect("a good command");
        assert_eq!(framework.coverage.clover, Some(folder.path().join("clover.xml")));
        assert_eq!(framework.coverage.html, Some(folder.path().join("html")));
        assert_eq!(framework.options, ["--coverage-filter", "src"]);
        assert!(!framework.unit().options.contains(&"--no-coverage".to_owned()));
    }

    #[test]
    fn command_that_cannot_work_is_refused() {
        let folder = project();
        for (command, word) in [
            ("phpunit --list-tests", "`--list-tests` cannot be used"),
            ("phpunit --testdox-html=x.html", "`--testdox-html` cannot be used"),
            ("phpunit --filter", "`--filter` takes a value"),
            ("phpunit -c missing.xml", "missing.xml"),
            ("pest", "cannot find `pest`"),
            ("vendor", "hint: put the command before it: samovar test -- phpunit vendor"),
            ("./vendor/", "`./vendor/` is a folder"),
            (
                "CartTest.php",
                "hint: put the command before it: samovar test -- phpunit CartTest.php",
            ),
            ("simple-phpunit", "starts another PHP"),
        ] {
            let error = read(folder.path(), command).expect_err(command);
            assert!(error.contains(word), "{error}");
        }
    }
}
