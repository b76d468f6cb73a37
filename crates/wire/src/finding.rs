//! Findings about the health of a server. `health.rs` makes them from a status.

use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Importance of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Requests fail or wait, or soon will: the server is unhealthy.
    #[default]
    Problem,
    /// To be looked at; the server is healthy.
    Warning,
}

impl Severity {
    /// Returns the name in labels and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
        }
    }
}

/// Subject of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Whether the server accepts requests.
    #[default]
    Readiness,
    /// Responses with a status of 500 or above.
    Errors,
    /// Workers that crashed or were killed.
    Crashes,
    /// Requests that wait for a worker.
    Queue,
    /// Memory of the machine or of workers.
    Memory,
    /// The booted application.
    Image,
    /// The application of a new release or of a pool does not boot.
    Boot,
    /// Certificates.
    Certificates,
    /// The history on disk.
    Disk,
    /// The logs.
    Logs,
    /// The figures of routes.
    Routes,
    /// Schedules whose last run failed.
    Schedules,
    /// Queues of jobs.
    Jobs,
}

impl About {
    /// All subjects.
    pub const ALL: [About; 13] = [
        About::Readiness,
        About::Errors,
        About::Crashes,
        About::Queue,
        About::Memory,
        About::Image,
        About::Boot,
        About::Certificates,
        About::Disk,
        About::Logs,
        About::Routes,
        About::Schedules,
        About::Jobs,
    ];

    /// Returns the name in labels and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            About::Readiness => "readiness",
            About::Errors => "errors",
            About::Crashes => "crashes",
            About::Queue => "queue",
            About::Memory => "memory",
            About::Image => "image",
            About::Boot => "boot",
            About::Certificates => "certificates",
            About::Disk => "disk",
            About::Logs => "logs",
            About::Routes => "routes",
            About::Schedules => "schedules",
            About::Jobs => "jobs",
        }
    }
}

/// A health finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HealthProblem {
    /// Subject, such as `errors`. The guide lists all of them.
    pub about: About,
    /// Importance: `problem` or `warning`.
    pub severity: Severity,
    /// Description, written as the end of a sentence.
    pub text: String,
    /// Current value; empty if the text is all.
    pub value: String,
    /// Limit of the value; empty if there is none.
    pub limit: String,
    /// Action for the operator.
    pub hint: String,
}

impl HealthProblem {
    pub(crate) fn new(
        about: About,
        severity: Severity,
        text: impl Into<String>,
        hint: &str,
    ) -> HealthProblem {
        let (text, hint) = (text.into(), hint.to_owned());
        HealthProblem { about, severity, text, hint, ..HealthProblem::default() }
    }

    pub(crate) fn problem(about: About, text: impl Into<String>, hint: &str) -> HealthProblem {
        HealthProblem::new(about, Severity::Problem, text, hint)
    }

    pub(crate) fn warning(about: About, text: impl Into<String>, hint: &str) -> HealthProblem {
        HealthProblem::new(about, Severity::Warning, text, hint)
    }

    pub(crate) fn measured(self, value: &dyn Display, limit: &dyn Display) -> HealthProblem {
        HealthProblem { value: value.to_string(), limit: limit.to_string(), ..self }
    }
}

/// Health of the server. `status`, `top`, the dashboard, `/api/health` and the metrics show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Whether no finding is a problem.
    pub healthy: bool,
    /// Findings, worst first.
    pub findings: Vec<HealthProblem>,
}
