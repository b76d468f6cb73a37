//! The listed tests, and their division into units.
//!
//! Tests that depend on each other (`@depends`) are in one unit. After a crash, each test of a unit
//! runs in a process of its own, after the tests that it depends on.

use crate::case::Case;
use crate::filter::quote;
use crate::options::By;
use crate::unit::Unit;
use anyhow::{Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Maximum number of units of a run.
const UNITS_MAX: usize = 200_000;
/// Maximum length of a regular expression for names, bytes: PCRE compiles up to 64 KiB.
const PATTERN_BYTES_MAX: usize = 16 << 10;
/// Names that are no names of tests: messages, such as that about a data provider that fails.
const MESSAGES: &str = "(?![^\\s:]+::)";

/// A class of tests, as the driver lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Listed {
    /// `None`: the file is a test in PHP's own format.
    pub(crate) class: Option<String>,
    pub(crate) file: PathBuf,
    pub(crate) methods: Vec<String>,
    /// Number of tests, one for each data set.
    pub(crate) tests: usize,
    /// The tests that a method depends on: `Class::method`, or `Class::class` for all of a class.
    #[serde(default)]
    pub(crate) depends: BTreeMap<String, Vec<String>>,
}

/// The driver's list.
#[derive(Debug, Deserialize)]
pub(crate) struct List {
    pub(crate) units: Vec<Listed>,
}

/// All listed tests. A test has a number: its place in the list. A class without methods, such as
/// one whose data provider fails, has a number too.
#[derive(Debug, Default)]
pub(crate) struct Suite {
    classes: Vec<Listed>,
    /// Number of the first test of each class.
    first: Vec<usize>,
    /// Index of the class of each test.
    class_of: Vec<usize>,
    by_name: BTreeMap<String, usize>,
    /// Number of the test of each method, by class.
    methods: Vec<BTreeMap<String, usize>>,
    by_file: BTreeMap<PathBuf, Vec<usize>>,
}

impl Suite {
    pub(crate) fn new(classes: Vec<Listed>) -> Suite {
        let mut suite = Suite::default();
        for (n, class) in classes.iter().enumerate() {
            let first = suite.class_of.len();
            suite.first.push(first);
            let methods = class.methods.iter().enumerate();
            suite.methods.push(methods.map(|(at, name)| (name.clone(), first + at)).collect());
            suite.class_of.extend(std::iter::repeat_n(n, class.methods.len().max(1)));
            suite.by_file.entry(class.file.clone()).or_default().push(n);
            if let Some(name) = &class.class {
                suite.by_name.insert(name.clone(), n);
            }
        }
        suite.classes = classes;
        suite
    }

    /// Number of tests, with one for each data set.
    pub(crate) fn tests(&self) -> usize {
        self.classes.iter().map(|class| class.tests).sum()
    }

    /// Divides the tests into units.
    ///
    /// # Errors
    ///
    /// There are too many units.
    pub(crate) fn units(&self, by: By) -> Result<Vec<Unit>> {
        let mut groups = Groups((0..self.class_of.len()).collect());
        for test in 0..self.class_of.len() {
            let class = self.class_of[test];
            if by != By::Test {
                groups.join(self.first[class], test);
            }
            if by == By::File {
                let of_file = &self.by_file[&self.classes[class].file];
                groups.join(self.first[of_file[0]], test);
            }
            for other in self.depends(test) {
                groups.join(test, other);
            }
        }
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for test in 0..self.class_of.len() {
            // The group has the number of its first test.
            members.entry(groups.of(test)).or_default().push(test);
        }
        if members.len() > UNITS_MAX {
            bail!(
                "{} processes are needed; the maximum is {UNITS_MAX}\nhint: use --by class",
                members.len()
            );
        }
        let mut files = BTreeSet::new();
        let units = members.into_values().map(|tests| {
            let own = tests.iter().map(|test| self.class(*test).file.as_path());
            // Messages about a file are results of its first unit.
            let with_messages = own.filter(|file| files.insert(*file)).count() > 0;
            self.unit(tests, Vec::new(), with_messages)
        });
        Ok(units.collect())
    }

    /// Divides a unit into one for each test.
    pub(crate) fn split(&self, unit: Unit) -> Vec<Unit> {
        if unit.tests.len() < 2 {
            return vec![unit];
        }
        let split = unit.tests.iter().enumerate().map(|(n, test)| {
            let mut part = self.unit(vec![*test], self.producers(*test), n == 0);
            if n == 0 && unit.files.len() > part.files.len() {
                part.files.clone_from(&unit.files);
                part.is_plain = false;
            }
            part
        });
        split.collect()
    }

    /// Whether a case of a unit's log is a result of another unit: a producer, or a test that the
    /// framework reports although it has not run.
    pub(crate) fn is_of_other(&self, unit: &Unit, case: &Case) -> bool {
        self.test_of(case).is_some_and(|test| !unit.has(test))
    }

    /// Whether a case of a unit's log is a result of one of its listed tests.
    pub(crate) fn is_own(&self, unit: &Unit, case: &Case) -> bool {
        self.test_of(case).is_some_and(|test| unit.has(test))
    }

    fn test_of(&self, case: &Case) -> Option<usize> {
        let is_end = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_';
        self.find(&case.class, case.name.split(is_end).next()?)
    }

    /// Returns the name of a test.
    pub(crate) fn name(&self, test: usize) -> String {
        let class = self.class(test);
        let name = class.class.clone().unwrap_or_else(|| class.file.display().to_string());
        match self.method(test) {
            Some(method) => format!("{name}::{method}"),
            None => name,
        }
    }

    fn class(&self, test: usize) -> &Listed {
        &self.classes[self.class_of[test]]
    }

    fn method(&self, test: usize) -> Option<&str> {
        let n = test - self.first[self.class_of[test]];
        self.class(test).methods.get(n).map(String::as_str)
    }

    fn find(&self, class: &str, method: &str) -> Option<usize> {
        self.methods[*self.by_name.get(class)?].get(method).copied()
    }

    /// Returns the listed tests that a test depends on.
    fn depends(&self, test: usize) -> Vec<usize> {
        let targets = self.method(test).and_then(|method| self.class(test).depends.get(method));
        let mut found = Vec::new();
        for target in targets.into_iter().flatten() {
            match target.split_once("::") {
                Some((class, "class")) => {
                    if let Some(class) = self.by_name.get(class) {
                        let first = self.first[*class];
                        found.extend(first..first + self.classes[*class].methods.len());
                    }
                }
                Some((class, method)) => found.extend(self.find(class, method)),
                None => {}
            }
        }
        found
    }

    /// Returns all tests that a test needs, also those that its producers need.
    fn producers(&self, test: usize) -> Vec<usize> {
        let (mut found, mut open) = (BTreeSet::from([test]), vec![test]);
        while let Some(next) = open.pop() {
            open.extend(self.depends(next).into_iter().filter(|other| found.insert(*other)));
        }
        found.remove(&test);
        found.into_iter().collect()
    }

    fn unit(&self, tests: Vec<usize>, producers: Vec<usize>, with_messages: bool) -> Unit {
        let mut by_class: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut all: Vec<_> = tests.iter().chain(&producers).copied().collect();
        all.sort_unstable();
        for test in &all {
            by_class.entry(self.class_of[*test]).or_default().push(*test);
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for class in by_class.keys() {
            let file = &self.classes[*class].file;
            if !files.contains(file) {
                files.push(file.clone());
            }
        }
        let is_whole = |class: &usize| {
            let size = self.classes[*class].methods.len().max(1);
            by_class.get(class).is_some_and(|tests| tests.len() == size)
        };
        let is_of_whole_files = files.iter().all(|file| self.by_file[file].iter().all(is_whole));
        let (class, method) = match (by_class.len(), tests.as_slice()) {
            (_, [test]) => (self.class(*test).class.clone(), self.method(*test)),
            (1, tests) => (self.class(tests[0]).class.clone(), None),
            _ => (None, None),
        };
        Unit {
            name: self.name_of(&tests, by_class.keys().all(is_whole)),
            method: method.filter(|_| class.is_some()).map(str::to_owned),
            class,
            pattern: if is_of_whole_files && producers.is_empty() {
                None
            } else {
                self.pattern(&by_class, with_messages, is_whole)
            },
            is_plain: files.len() == 1
                && self.by_file[&files[0]].len() == 1
                && self.class(all[0]).is_named_as_file(),
            files,
            tests,
            producers,
        }
    }

    fn name_of(&self, tests: &[usize], is_of_whole_classes: bool) -> String {
        let first = self.class(tests[0]);
        let classes: BTreeSet<_> = tests.iter().map(|test| self.class_of[*test]).collect();
        let of_file = &self.by_file[&first.file];
        if classes.len() > 1 && of_file.len() == classes.len() && is_of_whole_classes {
            return first.file.display().to_string();
        }
        match (classes.len(), tests.len()) {
            (1, _) if is_of_whole_classes => self.name_of_class(tests[0]),
            (_, 1) => self.name(tests[0]),
            (1, n) => format!("{} and {} more", self.name(tests[0]), n - 1),
            (n, _) => format!("{} and {} more", self.name_of_class(tests[0]), n - 1),
        }
    }

    fn name_of_class(&self, test: usize) -> String {
        let class = self.class(test);
        class.class.clone().unwrap_or_else(|| class.file.display().to_string())
    }

    /// Returns a regular expression for the names of tests; `None` if it is too long.
    fn pattern(
        &self,
        by_class: &BTreeMap<usize, Vec<usize>>,
        with_messages: bool,
        is_whole: impl Fn(&usize) -> bool,
    ) -> Option<String> {
        let of_class = |(class, tests): (&usize, &Vec<usize>)| -> Option<String> {
            let name = quote(self.classes[*class].class.as_deref()?);
            if is_whole(class) && self.by_file[&self.classes[*class].file].len() > 1 {
                return Some(format!("{name}::"));
            }
            let methods: Vec<_> =
                tests.iter().filter_map(|test| self.method(*test)).map(quote).collect();
            let methods = match methods.as_slice() {
                [] => return Some(format!("{name}::")),
                [one] => one.clone(),
                more => format!("(?:{})", more.join("|")),
            };
            Some(format!("{name}::{methods}(?:[ #@].*)?\\z"))
        };
        let mut parts = by_class.iter().map(of_class).collect::<Option<Vec<_>>>()?;
        if with_messages {
            parts.push(MESSAGES.to_owned());
        }
        Some(parts.join("|")).filter(|pattern| pattern.len() <= PATTERN_BYTES_MAX)
    }
}

impl Listed {
    /// Whether the framework finds the class by the name of its file.
    fn is_named_as_file(&self) -> bool {
        let Some(class) = &self.class else { return true };
        let short = class.rsplit('\\').next().unwrap_or_default();
        self.file.file_stem().is_some_and(|stem| stem == short)
    }
}

/// Disjoint groups of numbers: each has a parent in its group, which is not greater.
struct Groups(Vec<usize>);

impl Groups {
    /// Returns the smallest number of a group.
    fn of(&mut self, mut n: usize) -> usize {
        while self.0[n] != n {
            self.0[n] = self.0[self.0[n]];
            n = self.0[n];
        }
        n
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;
    use std::path::Path;

    fn listed(class: &str, file: &str, methods: &[&str]) -> Listed {
        Listed {
            class: Some(class.to_owned()),
            file: file.into(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            tests: methods.len(),
            depends: BTreeMap::new(),
        }
    }

    fn suite(depends: &[(&str, &str, &str)]) -> Suite {
        let mut classes = vec![
            listed("A\\OneTest", "/t/OneTest.php", &["testA", "testB", "testC"]),
            listed("A\\TwoTest", "/t/TwoTest.php", &["testA"]),
            listed("A\\TwoMoreTest", "/t/TwoTest.php", &["testC"]),
            Listed { file: "/t/x.phpt".into(), tests: 1, ..Listed::default() },
        ];
        for (class, method, target) in depends {
            let class = classes.iter_mut().find(|own| own.class.as_deref() == Some(class));
            let depends = &mut class.expect("a class").depends;
            depends.entry((*method).to_owned()).or_default().push((*target).to_owned());
        }
        Suite::new(classes)
    }

    fn named(units: &[Unit]) -> Vec<(&str, Option<&str>, bool)> {
        units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.pattern.as_deref(), unit.is_plain))
            .collect()
    }

    #[test]
    fn file_with_two_classes_needs_a_configuration_and_filters() {
        let units = suite(&[]).units(By::Class).expect("few");
        assert_eq!(
            named(&units),
            [
                ("A\\OneTest", None, true),
                ("A\\TwoTest", Some("A\\\\TwoTest::|(?![^\\s:]+::)"), false),
                ("A\\TwoMoreTest", Some("A\\\\TwoMoreTest::"), false),
                ("/t/x.phpt", None, true),
            ]
        );
        let units = suite(&[]).units(By::File).expect("few");
        assert_eq!(
            named(&units),
            [
                ("A\\OneTest", None, true),
                ("/t/TwoTest.php", None, false),
                ("/t/x.phpt", None, true)
            ]
        );
    }

    #[test]
    fn unit_by_test_has_one_method_and_the_first_the_messages() {
        let units = suite(&[]).units(By::Test).expect("few");
        let names: Vec<_> = units.iter().map(|unit| unit.name.as_str()).collect();
        let one = "A\\OneTest::test";
        let expected = [
            &format!("{one}A"),
            &format!("{one}B"),
            &format!("{one}C"),
            "A\\TwoTest",
            "A\\TwoMoreTest",
            "/t/x.phpt",
        ];
        assert_eq!(names, expected);
        let pattern = |n: usize| units[n].pattern.as_deref();
        assert_eq!(pattern(0), Some("A\\\\OneTest::testA(?:[ #@].*)?\\z|(?![^\\s:]+::)"));
        assert_eq!(pattern(1), Some("A\\\\OneTest::testB(?:[ #@].*)?\\z"));
        assert_eq!(pattern(5), None);
    }

    #[test]
    fn tests_that_depend_on_each_other_are_in_one_unit() {
        let in_class = [("A\\OneTest", "testC", "A\\OneTest::testA")];
        let across = [("A\\OneTest", "testC", "A\\TwoTest::testA")];
        let whole = [("A\\OneTest", "testA", "A\\TwoMoreTest::class")];
        let unknown = [("A\\OneTest", "testA", "B::testB"), ("A\\OneTest", "testB", "garbage")];
        for (depends, by, expected) in [
            (&in_class[..], By::Class, &[&[0, 1, 2][..], &[3], &[4], &[5]][..]),
            (&in_class, By::Test, &[&[0, 2], &[1], &[3], &[4], &[5]]),
            (&across, By::Class, &[&[0, 1, 2, 3], &[4], &[5]]),
            (&across, By::File, &[&[0, 1, 2, 3, 4], &[5]]),
            (&across, By::Test, &[&[0], &[1], &[2, 3], &[4], &[5]]),
            (&whole, By::Test, &[&[0, 4], &[1], &[2], &[3], &[5]]),
            (&unknown, By::Test, &[&[0], &[1], &[2], &[3], &[4], &[5]]),
        ] {
            let units = suite(depends).units(by).expect("few");
            let tests: Vec<_> = units.iter().map(|unit| unit.tests.as_slice()).collect();
            assert_eq!(tests, expected, "{depends:?} by {by:?}");
        }
        let units = suite(&across).units(By::Class).expect("few");
        assert_eq!(units[0].files, [Path::new("/t/OneTest.php"), Path::new("/t/TwoTest.php")]);
        assert_eq!(units[0].name, "A\\OneTest and 1 more");
        assert!(!units[0].is_plain);
    }

    #[test]
    fn split_test_runs_after_its_producers() {
        let suite = suite(&[
            ("A\\OneTest", "testC", "A\\OneTest::testB"),
            ("A\\OneTest", "testB", "A\\TwoTest::testA"),
            ("A\\TwoTest", "testA", "A\\OneTest::testC"), // A circle.
        ]);
        let units = suite.units(By::Class).expect("few");
        let split = suite.split(units[0].clone());
        let found: Vec<_> =
            split.iter().map(|unit| (&unit.tests[..], &unit.producers[..])).collect();
        assert_eq!(found, [(&[0][..], &[][..]), (&[1], &[2, 3]), (&[2], &[1, 3]), (&[3], &[1, 2])]);
        assert_eq!(split[0].files.len(), 2, "messages about all files");
        assert_eq!(split[1].name, "A\\OneTest::testB");
        assert_eq!(suite.split(split[1].clone()), [split[1].clone()]);
        let case = |class: &str, name: &str| Case::new(class, name, Verdict::Passed);
        for (class, name, is_other) in [
            ("A\\OneTest", "testB with data set #0", false),
            ("A\\OneTest", "testC", true),
            ("A\\OneTest", "testC with data set \"a::b\"", true),
            ("A\\OneTest", "testUnknown", false),
            ("", "Warning", false),
        ] {
            assert_eq!(suite.is_of_other(&split[1], &case(class, name)), is_other, "{name}");
        }
    }
}
