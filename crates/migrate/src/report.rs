//! Reports: for people, as JSON, as SARIF, and as annotations of GitHub Actions.

mod github;
mod json;
mod numbers;
mod sarif;
mod text;

use crate::scan::Checked;
use crate::version::Range;

pub use github::{Annotation, annotation};

/// Form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0.
    Sarif,
    /// Commands of GitHub Actions, and the summary.
    Github,
}

impl Format {
    /// Names of the forms.
    pub const NAMES: [&'static str; 4] = ["text", "json", "sarif", "github"];

    /// Returns the form of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            "sarif" => Some(Self::Sarif),
            "github" => Some(Self::Github),
            _ => None,
        }
    }
}

/// Returns the report.
pub fn render(checked: &Checked, range: Range, known: usize, format: Format) -> String {
    match format {
        Format::Text => text::render(checked, range, known),
        Format::Json => json::render(checked, range, known),
        Format::Sarif => sarif::render(checked),
        Format::Github => github::render(checked, range, known),
    }
}
