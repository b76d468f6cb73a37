//! Units: the tests that one fork runs.

use crate::filter;
use crate::framework::{Arguments, Framework};
use serde::Serialize;
use std::path::PathBuf;

/// The tests that one fork runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Its name for people.
    pub(crate) name: String,
    /// The class, if it has only one.
    pub(crate) class: Option<String>,
    /// The method, if it has only one.
    pub(crate) method: Option<String>,
    pub(crate) files: Vec<PathBuf>,
    /// Regular expression for the names of its tests, if it does not consist of whole files.
    pub(crate) pattern: Option<String>,
    /// Whether the framework finds its class by the name of the file. Otherwise it needs a
    /// configuration that names the files.
    pub(crate) is_plain: bool,
    /// The listed tests whose results count, in ascending order.
    pub(crate) tests: Vec<usize>,
    /// Tests that run before these, because these depend on them. Their results do not count.
    pub(crate) producers: Vec<usize>,
}

/// A configuration for a unit's files, written by the driver.
#[derive(Debug, Serialize)]
pub(crate) struct OwnConfiguration {
    pub(crate) name: String,
    pub(crate) files: Vec<String>,
    /// Whether files that no test covers are part of its coverage.
    #[serde(rename = "hasUncovered")]
    pub(crate) has_uncovered: bool,
    pub(crate) to: PathBuf,
}

impl Unit {
    /// Whether the result of a listed test counts.
    pub(crate) fn has(&self, test: usize) -> bool {
        self.tests.binary_search(&test).is_ok()
    }

    /// Returns the arguments for the framework, and the configuration that they name.
    pub(crate) fn arguments(
        &self,
        framework: &Framework,
        to: PathBuf,
        has_uncovered: bool,
    ) -> (Arguments, Option<OwnConfiguration>) {
        let mut arguments = framework.unit();
        let filter = filter::combined(self.pattern.as_deref(), framework.filter.as_deref());
        if let Some(filter) = filter {
            // PHPUnit 9 reads the other form up to the next `=`.
            arguments.option("--filter", &filter);
        }
        // The configuration's own reports of coverage would be written by each unit.
        if let ([file], true, false) =
            (self.files.as_slice(), self.is_plain, framework.coverage.is_wanted())
        {
            arguments.paths.push(file.to_string_lossy().into_owned());
            return (arguments, None);
        }
        arguments.configuration = Some(to.clone());
        let files = self.files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        (arguments, Some(OwnConfiguration { name: self.name.clone(), files, has_uncovered, to }))
    }
}
