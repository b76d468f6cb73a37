//! Orders for the driver, as it reads them from files.

use crate::framework::Coverage;
use crate::unit::OwnConfiguration;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The order for the driver.
#[derive(Default, Serialize)]
pub(crate) struct Order {
    #[serde(rename = "isUnit")]
    pub(crate) is_unit: bool,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) configuration: Option<OwnConfiguration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) learned: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) list: Option<PathBuf>,
    /// The filter of the user, for the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filter: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) units: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<Merge>,
}

/// Coverage of units, for one report.
#[derive(Serialize)]
pub(crate) struct Merge {
    pub(crate) files: Vec<PathBuf>,
    #[serde(flatten)]
    pub(crate) reports: Coverage,
}
