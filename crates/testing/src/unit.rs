//! Units: the tests that one fork runs.

use crate::framework::Framework;
use crate::options::By;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of units of a run.
pub(crate) const UNITS_MAX: usize = 200_000;

/// A class of tests, as the driver lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Listed {
    /// `None`: the file is a test in PHP's own format.
    pub(crate) class: Option<String>,
    pub(crate) file: PathBuf,
    pub(crate) methods: Vec<String>,
    /// Number of tests, one for each data set.
    pub(crate) tests: usize,
}

/// The driver's list.
#[derive(Debug, Deserialize)]
pub(crate) struct List {
    pub(crate) units: Vec<Listed>,
}

/// The tests that one fork runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its name for people.
    pub(crate) name: String,
    /// The class, if it has only one.
    pub(crate) class: Option<String>,
    pub(crate) file: PathBuf,
    /// The methods, if it consists of one class.
    pub(crate) methods: Vec<String>,
    /// Filter for the framework.
    pub(crate) filter: Option<String>,
    /// Whether the framework finds its class by the name of the file. Otherwise it needs a
    /// configuration that names the file.
    pub(crate) is_plain: bool,
    /// Number of tests.
    pub(crate) tests: usize,
}

/// A configuration for one file, written by the driver.
#[derive(Debug, Serialize)]
pub(crate) struct OwnConfiguration {
    pub(crate) name: String,
    pub(crate) file: String,
    /// Whether files that no test covers are part of its coverage.
    #[serde(rename = "hasUncovered")]
    pub(crate) has_uncovered: bool,
    pub(crate) to: PathBuf,
}

/// Divides the listed classes into units. A filter of the user excludes filters of units.
pub(crate) fn units(listed: &[Listed], by: By, has_filter: bool) -> Vec<Unit> {
    let mut files: BTreeMap<&Path, Vec<&Listed>> = BTreeMap::new();
    for class in listed {
        files.entry(&class.file).or_default().push(class);
    }
    let mut units = Vec::new();
    // In the order of the list.
    let mut done = std::collections::BTreeSet::new();
    for class in listed.iter().filter(|class| done.insert(class.file.as_path())) {
        let own = &files[class.file.as_path()];
        let is_plain = own.len() == 1 && own[0].is_named_as_file();
        match by {
            By::File => units.push(Unit::of_file(own, is_plain)),
            _ if own.len() > 1 && has_filter => units.push(Unit::of_file(own, is_plain)),
            By::Class => {
                let filtered = own.len() > 1;
                units.extend(own.iter().map(|class| Unit::of_class(class, is_plain, filtered)));
            }
            By::Test => units
                .extend(own.iter().flat_map(|class| Unit::of_class(class, is_plain, true).split())),
        }
    }
    units.truncate(UNITS_MAX);
    units
}

impl Listed {
    /// Whether the framework finds the class by the name of its file.
    fn is_named_as_file(&self) -> bool {
        let Some(class) = &self.class else { return true };
        let short = class.rsplit('\\').next().unwrap_or_default();
        self.file.file_stem().is_some_and(|stem| stem == short)
    }
}

impl Unit {
    fn of_file(classes: &[&Listed], is_plain: bool) -> Unit {
        let is_one = classes.len() == 1;
        let class = classes[0].class.clone().filter(|_| is_one);
        Unit {
            name: class.clone().unwrap_or_else(|| classes[0].file.display().to_string()),
            class,
            file: classes[0].file.clone(),
            methods: if is_one { classes[0].methods.clone() } else { Vec::new() },
            filter: None,
            is_plain,
            tests: classes.iter().map(|class| class.tests).sum(),
        }
    }

    fn of_class(class: &Listed, is_plain: bool, is_filtered: bool) -> Unit {
        let filter = class.class.as_ref().map(|name| format!("/^{}::/", quote(name)));
        Unit { filter: filter.filter(|_| is_filtered), ..Unit::of_file(&[class], is_plain) }
    }

    /// Divides the unit into one for each method.
    pub(crate) fn split(self) -> Vec<Unit> {
        let Some(class) = self.class.clone().filter(|_| self.methods.len() > 1) else {
            return vec![self];
        };
        let one = |method: &String| Unit {
            name: format!("{class}::{method}"),
            methods: vec![method.clone()],
            filter: Some(format!(
                "/^{}::{}(?: with data set .*)?$/s",
                quote(&class),
                quote(method)
            )),
            tests: 1,
            ..self.clone()
        };
        self.methods.iter().map(one).collect()
    }

    /// Returns the arguments for the framework, and the configuration that they name.
    pub(crate) fn arguments(
        &self,
        framework: &Framework,
        to: PathBuf,
        has_uncovered: bool,
    ) -> (Vec<String>, Option<OwnConfiguration>) {
        // The configuration's own reports of coverage would be written by each unit.
        if self.is_plain && !framework.coverage.is_wanted() {
            let words = framework.unit(None, self.filter.as_deref(), Some(&self.file));
            return (words, None);
        }
        let words = framework.unit(Some(&to), self.filter.as_deref(), None);
        let file = self.file.to_string_lossy().into_owned();
        (words, Some(OwnConfiguration { name: self.name.clone(), file, has_uncovered, to }))
    }
}

/// Quotes a text for a regular expression with `/` at both ends.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !(c.is_alphanumeric() || c == '_' || c == ' ' || !c.is_ascii()) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(class: &str, file: &str, methods: &[&str]) -> Listed {
        Listed {
            class: Some(class.to_owned()),
            file: file.into(),
            methods: methods.iter().map(|method| (*method).to_owned()).collect(),
            tests: methods.len(),
        }
    }

    fn suite() -> Vec<Listed> {
        vec![
            listed("A\\OneTest", "/t/OneTest.php", &["testA", "testB"]),
            listed("A\\TwoTest", "/t/TwoTest.php", &["testA"]),
            listed("A\\TwoMoreTest", "/t/TwoTest.php", &["testC"]),
            Listed { file: "/t/x.phpt".into(), tests: 1, ..Listed::default() },
        ]
    }

    #[test]
    fn file_with_two_classes_needs_a_configuration_and_filters() {
        let units = units(&suite(), By::Class, false);
        let found: Vec<_> = units
            .iter()
            .map(|unit| (unit.name.as_str(), unit.filter.as_deref(), unit.is_plain))
            .collect();
        assert_eq!(
            found,
            [
                ("A\\OneTest", None, true),
                ("A\\TwoTest", Some("/^A\\\\TwoTest::/"), false),
                ("A\\TwoMoreTest", Some("/^A\\\\TwoMoreTest::/"), false),
                ("/t/x.phpt", None, true),
            ]
        );
    }

    #[test]
    fn filter_of_user_keeps_files_whole() {
        let units = units(&suite(), By::Class, true);
        assert!(units.iter().all(|unit| unit.filter.is_none()));
        assert_eq!(units.len(), 3);
        assert_eq!(units[1].name, "/t/TwoTest.php");
    }

    #[test]
    fn unit_by_test_has_one_method() {
        let units = units(&suite(), By::Test, false);
        let names: Vec<_> = units.iter().map(|unit| unit.name.as_str()).collect();
        assert_eq!(
            names,
            ["A\\OneTest::testA", "A\\OneTest::testB", "A\\TwoTest", "A\\TwoMoreTest", "/t/x.phpt"]
        );
        assert_eq!(
            units[0].filter.as_deref(),
            Some("/^A\\\\OneTest::testA(?: with data set .*)?$/s")
        );
    }
}
